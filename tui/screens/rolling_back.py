"""A behavior goes on from one of its checkpoints, after asking."""

from __future__ import annotations

from rl_tui.engine.session.messages import CheckpointSaved, RollBack
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import BehaviorView
from rl_tui.tui.drawing.text import count, number
from rl_tui.tui.panes.checkpoint_list import given_up, set_aside
from rl_tui.tui.screens.base import RunScreen
from rl_tui.tui.screens.confirm import ConfirmScreen


def roll_back(screen: RunScreen, behavior: BehaviorView, at: float, saved: CheckpointSaved) -> None:
    """Ask, and then go back to that checkpoint, saved at time `at`; or say why that cannot be."""
    controls = screen.context.controls
    if not controls.may(f"roll back {safe_text(behavior.name)}"):
        screen.context.redraw()
        return
    command = RollBack(behavior.name, saved.path)
    question = _question(behavior, at, saved, now=screen.context.view.now)
    screen.open_dialog(question, lambda is_yes: controls.ask(command) if is_yes else None)


def _question(behavior: BehaviorView, at: float, saved: CheckpointSaved, now: float) -> ConfirmScreen:
    name, step = safe_text(behavior.name), count(saved.step)
    reward = "" if saved.mean_return is None else f" (return {number(saved.mean_return)})"
    cost, aside = given_up(behavior, at, saved, now), set_aside(behavior, saved)
    return ConfirmScreen(
        f"Roll {name} back to step {step}?",
        [
            f"{name} goes on from step {step}{reward}.",
            f"{cost[0].upper()}{cost[1:]}; {aside}.",
            "Hyperparameters are again what they were then.",
        ],
        yes="roll back",
    )
