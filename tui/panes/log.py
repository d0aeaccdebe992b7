"""What happened, newest first."""

from __future__ import annotations

import math
from itertools import islice

from engine.session.text import safe_text
from engine.session.view import LogLine
from tui.glyphs import Glyphs
from tui.lines import Line, Span, level_tone, line
from tui.panes.base import Frame, Pane
from tui.text import fit_message, left, time_of_day

KINDS = {"WARNING": "WARN"}  # the rest are short already


class LogPane(Pane):
    """A line per event that tells something; debug lines are left to the file."""

    seconds = math.inf

    def inputs(self, frame: Frame) -> object:
        """The newest entry; the deque forgets old ones, so its length tells less."""
        return frame.view.log[-1] if frame.view.log else None

    def heading(self, frame: Frame) -> str:
        """Its name."""
        return "Log"

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The newest lines that fit."""
        told = (entry for entry in reversed(frame.view.log) if entry.level != "debug")
        rows = [log_line(entry, frame.glyphs, width) for entry in islice(told, height)]
        return rows or [line(Span(" nothing has happened yet", "dim"))]


def log_line(entry: LogLine, glyphs: Glyphs, width: int) -> Line:
    """Time, kind, source and message; a path at its end is shortened from the left."""
    source_width = 9 if width < 100 else 16
    source = left(safe_text(entry.source), source_width, glyphs.ellipsis)
    room = width - 10 - 8 - source_width - 1
    message = fit_message(safe_text(entry.message), room, glyphs.ellipsis)
    tone = level_tone(entry.level)
    sign = {"error": glyphs.failed, "warning": glyphs.warning}.get(entry.level, " ")
    return line(
        Span(f" {time_of_day(entry.time)} ", "dim"),
        Span(f"{sign} {left(KINDS.get(entry.kind, entry.kind), 5)} ", tone),
        Span(f"{source} ", "dim"),
        Span(message, tone if entry.level in ("error", "warning") else "text"),
    )
