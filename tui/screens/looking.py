"""A screen of one list, with a place for all of what the cursor stands on."""

from __future__ import annotations

from textual.app import ComposeResult

from rl_tui.tui.panes.list import ListPane
from rl_tui.tui.panes.whole_text import WholeTextPane
from rl_tui.tui.screens.base import RunScreen
from rl_tui.tui.screens.context import Context


class LookingScreen(RunScreen):
    """enter opens all of a line that is too long, and closes it; so does esc."""

    def __init__(self, context: Context, name: str, entries: ListPane) -> None:
        super().__init__(context, name)
        self.entries = entries

    def body(self) -> ComposeResult:
        """The list, and a place for a whole line."""
        yield self.entries
        yield WholeTextPane(self.entries)

    def action_open(self) -> None:
        """All of the line below the cursor, or no longer."""
        self.toggle_class("-whole-text")
        self.call_after_refresh(self.context.redraw)

    def action_back(self) -> None:
        """One step back."""
        if self.has_class("-whole-text"):
            self.action_open()
        else:
            super().action_back()
