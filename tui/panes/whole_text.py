"""All of what the cursor of a list stands on, where its line is too short for it."""

from __future__ import annotations

import math

from rl_tui.tui.drawing.lines import Line, Span, line
from rl_tui.tui.drawing.text import wrapped
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.panes.list import ListPane


class WholeTextPane(Pane):
    """The text of that list's entry, wrapped; app.tcss says how much of the screen it may take."""

    seconds = math.inf

    def __init__(self, entries: ListPane) -> None:
        super().__init__()
        self._list = entries

    def inputs(self, frame: Frame) -> object:
        """The text."""
        return self._text(frame)

    def wanted_height(self, frame: Frame, width: int) -> int:
        """All of it."""
        return len(self._wrapped(frame, width))

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """As much as fits; the last line tells when that is not all."""
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
