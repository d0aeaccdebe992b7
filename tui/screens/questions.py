"""What is asked before a run of the folder is resumed or removed, or a behavior is rolled back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.text import count, number, size
from rl_tui.tui.panes.checkpoint_list import given_up, set_aside
from rl_tui.tui.screens.confirm import ConfirmScreen
from rl_tui.tui.screens.prompt import PromptScreen, Verdict
from rl_tui.tui.terminal.relaunch import shell_command

if TYPE_CHECKING:
    from rl_tui.engine.session.behavior_view import BehaviorView
    from rl_tui.engine.session.messages import CheckpointSaved
    from rl_tui.engine.session.summaries import Removal, RunSummary


def removal_prompt(run: RunSummary, found: Removal) -> PromptScreen:
    """Only the run's name is an answer; what is there at first is none."""
    name, plural = safe_text(run.run_id), "" if found.num_checkpoints == 1 else "s"
    what = f"{size(found.num_bytes)}, {found.num_checkpoints} checkpoint{plural}"

    def check(text: str) -> Verdict:
        if text == run.run_id:
            return Verdict(f"enter removes {name} for good")
        return Verdict(f"type {name} to delete it, or esc to keep it", is_good=False)

    return PromptScreen(f"Delete {name} with everything in its folder?\n\n{safe_text(found.path)}\n{what}", check)


def behavior_prompt(run: RunSummary) -> PromptScreen:
    """Which of its behaviors; the first is there already."""
    names = [behavior.name for behavior in run.behaviors]

    def check(text: str) -> Verdict:
        listed = ", ".join(safe_text(name) for name in names)
        return Verdict(f"one of {listed}", is_good=text in names)

    return PromptScreen(f"Which behavior of {safe_text(run.run_id)} should be evaluated?", check, value=names[0])


def control_dialog(other: str) -> ConfirmScreen:
    """Another screen controls the run."""
    paragraphs = [f"{safe_text(other)} controls it now. It will show that this screen does, and can take over again."]
    return ConfirmScreen("Control the run from this screen?", paragraphs, yes="take control")


def resume_here(run: RunSummary, words: Sequence[str]) -> ConfirmScreen:
    """Nothing trains on this screen: it can make room."""
    return ConfirmScreen(
        f"Resume {safe_text(run.run_id)}?",
        [f"This screen closes, and the run continues in this terminal {_from(run)}:", _command(words), *_warning(run)],
        yes="resume",
    )


def resume_elsewhere(run: RunSummary, words: Sequence[str]) -> ConfirmScreen:
    """A run trains in this process, which goes on."""
    return ConfirmScreen(
        f"Resume {safe_text(run.run_id)} in another terminal",
        [f"The run on this screen keeps training. This continues {_from(run)}:", _command(words), *_warning(run)],
        yes="copy the command",
    )


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


def _command(words: Sequence[str]) -> str:
    return safe_text(shell_command(words))


def _from(run: RunSummary) -> str:
    step = max((behavior.step for behavior in run.behaviors), default=0)
    return f"from its last checkpoint (it had reached step {count(step)})" if step else "from the beginning"


def _warning(run: RunSummary) -> list[str]:
    is_done = run.behaviors and all(0 < each.max_steps <= each.step for each in run.behaviors)
    more = "--set behaviors.NAME.max_steps=... trains it further"
    return [f"It has reached its max_steps and would end at once; {more}."] if is_done else []
