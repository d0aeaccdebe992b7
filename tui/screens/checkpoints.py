"""The checkpoints of the selected behavior: looked at, copied, gone back to."""

from __future__ import annotations

from textual.app import ComposeResult

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.chart import MetricChart
from rl_tui.tui.panes.checkpoint_list import CheckpointDetails, CheckpointList
from rl_tui.tui.screens.base import RunScreen
from rl_tui.tui.screens.context import Context


class CheckpointsScreen(RunScreen):
    """enter shows and hides the details; R goes back to the checkpoint below the cursor, after asking."""

    BINDINGS = bindings("checkpoints")
    places = ("checkpoints",)

    def __init__(self, context: Context, name: str) -> None:
        super().__init__(context, name)
        self._list = CheckpointList()

    def body(self) -> ComposeResult:
        """The list, the details, and where there is room the returns or the rating with a sign at each checkpoint."""
        yield self._list
        yield CheckpointDetails(self._list)
        yield MetricChart(0, "")

    def action_open(self) -> None:
        """The details, or more room for the list."""
        self.toggle_class("-without-details")
        self.call_after_refresh(self.context.redraw)

    def action_copy(self) -> None:
        """Copy the path."""
        entry = self._list.chosen()
        if entry is None:
            super().action_copy()
        else:
            self.copy(safe_text(entry.key))

    def action_roll_back(self) -> None:
        """Ask, and then go on from the checkpoint below the cursor."""
        behavior, entry = self.context.controls.selected, self._list.chosen()
        if behavior is None or entry is None:
            self.say(f"roll back: {self._why_no_checkpoint(behavior)}")
            return
        found = next(((at, saved) for at, saved in behavior.checkpoints if saved.path == entry.key), None)
        if found is None:  # the view is frozen, and time went on
            self.say("roll back: this checkpoint is no longer on disk")
        else:
            self.roll_back(behavior, *found)

    def _why_no_checkpoint(self, behavior: BehaviorView | None) -> str:
        if behavior is not None and behavior.checkpoints:
            return "no checkpoint matches the filter; esc shows all"
        name, keymap = safe_text(behavior.name) if behavior else "the run", self.context.keymap
        return f"{name} has no checkpoint to roll back to yet; {keymap.of_id('checkpoint').shown} saves one"
