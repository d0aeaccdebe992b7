"""A screen of one list, with a pane that shows an entry in full."""

from __future__ import annotations

import math

from textual.app import ComposeResult

from rl_tui.tui.drawing.lines import Line, Span, line
from rl_tui.tui.drawing.text import wrapped
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.panes.list import ListPane
from rl_tui.tui.screens.base import RunScreen
from rl_tui.tui.screens.context import Context


class ListScreen(RunScreen):
    """enter shows in full an entry that is too long for its line, and hides it again; so does esc."""

    def __init__(self, context: Context, name: str, entries: ListPane) -> None:
        super().__init__(context, name)
        self.entries = entries

    def body(self) -> ComposeResult:
        """The list, and the pane below it."""
        yield self.entries
        yield WholeTextPane(self.entries)

    def action_open(self) -> None:
        """Show the entry below the cursor in full, or hide it."""
        self.toggle_class("-whole-text")
        self.call_after_refresh(self.context.redraw)

    def action_back(self) -> None:
        """One step back."""
        if self.has_class("-whole-text"):
            self.action_open()
        else:
            super().action_back()


class WholeTextPane(Pane):
    """The text of the list's current entry, wrapped; app.tcss limits how much of the screen it takes."""

    seconds = math.inf

    def __init__(self, entries: ListPane) -> None:
        super().__init__()
        self._list = entries

    def inputs(self, frame: Frame) -> object:
        """The text."""
        return self._text(frame)

    def wanted_height(self, frame: Frame, width: int) -> int:
        """Every line."""
        return len(self._wrapped(frame, width))

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """As much as fits; the last line says how much does not."""
        rows = self._wrapped(frame, width)
        if len(rows) > height > 0:
            more = f"{frame.glyphs.ellipsis} {len(rows) - height + 1} more lines; y copies all"
            return [*(line(f" {row}") for row in rows[: height - 1]), line(Span(f" {more}", "dim"))]
        return [line(f" {row}") for row in rows]

    def _wrapped(self, frame: Frame, width: int) -> list[str]:
        return wrapped(self._text(frame), max(2, width - 2))

    def _text(self, frame: Frame) -> str:
        entry = self._list.current(frame)
        return entry.text if entry is not None else ""
