"""The question before a behavior is rolled back to one of its checkpoints."""

from __future__ import annotations

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.messages import CheckpointSaved
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.text import count, number
from rl_tui.tui.panes.checkpoint_list import given_up, set_aside
from rl_tui.tui.screens.confirm import ConfirmScreen


def roll_back_dialog(behavior: BehaviorView, at: float, saved: CheckpointSaved, now: float) -> ConfirmScreen:
    """Says what rolling back to that checkpoint, saved at time `at`, costs."""
    name, step = safe_text(behavior.name), count(saved.step)
    reward = "" if saved.mean_return is None else f" (return {number(saved.mean_return)})"
    cost, aside = given_up(behavior, at, saved, now), set_aside(behavior, saved)
    return ConfirmScreen(
        f"Roll {name} back to step {step}?",
        [
            f"{name} continues from step {step}{reward}.",
            f"{cost[0].upper()}{cost[1:]}; {aside}.",
            "Hyperparameters return to their values at that step.",
        ],
        yes="roll back",
    )
