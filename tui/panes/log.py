"""A line of the log."""

from __future__ import annotations

from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import LogLine
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, level_tone, line
from rl_tui.tui.drawing.text import fit_message, left, time_of_day

KINDS = {"WARNING": "WARN"}  # the rest are short already


def log_line(entry: LogLine, glyphs: Glyphs, width: int) -> Line:
    """Time, kind, source and message; a path at its end is shortened from the left."""
    source_width = 9 if width < 100 else 16
    source = left(safe_text(entry.source), source_width, glyphs.ellipsis)
    room = width - 9 - 9 - source_width - 2
    message = fit_message(safe_text(entry.message), room, glyphs.ellipsis)
    tone = level_tone(entry.level)
    sign = {"error": glyphs.failed, "warning": glyphs.warning}.get(entry.level, " ")
    return line(
        Span(f"{time_of_day(entry.time)} ", "dim"),
        Span(f"{sign} {left(KINDS.get(entry.kind, entry.kind), 6)} ", tone),
        Span(f"{source} ", "dim"),
        Span(message, tone if entry.level in ("error", "warning") else "text"),
    )
