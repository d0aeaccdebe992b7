"""Lists of the log by level and behavior, and of the warnings; newest first, as on the overview."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from rl_tui.engine.session.messages import LogLevel, WarningRaised
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import LogLine
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, level_tone, line
from rl_tui.tui.drawing.text import duration, fit_message, left, time_of_day, wrapped
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.blocks import Block, BlocksPane
from rl_tui.tui.panes.list import Entry

LEVELS: tuple[LogLevel, ...] = ("debug", "info", "warning", "error")  # each shows those after it as well
KINDS = {"WARNING": "WARN"}  # of the log; the rest are short already
LEVEL_WORDS = {"debug": "everything", "info": "info and above", "warning": "warnings and errors", "error": "errors"}


class LogList(BlocksPane):
    """The lines of the log that the user wants to see. lowest: the level from which on, None for the chosen one."""

    topic = "log"
    seconds = math.inf

    def __init__(self, lowest: LogLevel | None = None) -> None:
        super().__init__()
        self._lowest = lowest
        self._selection: object = None
        self._selected: list[Entry] = []
        self._newest = 0  # number of the newest line among them

    def inputs(self, frame: Frame) -> object:
        """Whether there is another line, and what is to be seen of them."""
        state = frame.state
        return super().inputs(frame), frame.view.num_logged, state.log_level, state.log_is_of_selected

    def heading(self, frame: Frame) -> str:
        """Level, behavior and count."""
        dot, entries = f" {frame.glyphs.dot} ", self._lines_of_log(frame)
        level = LEVEL_WORDS[self._lowest or frame.state.log_level]
        return f"Log{dot}{level}{dot}{whose(frame)}{dot}{len(entries)} of {len(frame.view.log)} lines"

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """Newest first."""
        return self._lines_of_log(frame)

    def empty(self, frame: Frame) -> str:
        """Nothing at all, or nothing of this kind."""
        return "no line of this level and behavior" if frame.view.log else "no line yet"

    def _lines_of_log(self, frame: Frame) -> list[Entry]:
        """Entries of lines that were there before are kept: a thousand new ones take some milliseconds."""
        log, newest = frame.view.log, frame.view.num_logged
        lowest, only = self._lowest or frame.state.log_level, only_behavior(frame)
        if (lowest, only) != self._selection or newest < self._newest:
            self._selection, self._selected, self._newest = (lowest, only), [], 0
        if newest > self._newest:
            numbered = zip(range(newest, self._newest, -1), reversed(log), strict=False)
            added = [
                log_entry(str(number), entry, frame.glyphs)
                for number, entry in numbered
                if LEVELS.index(entry.level) >= LEVELS.index(lowest) and concerns(entry, only)
            ]
            kept = [entry for entry in self._selected if int(entry.key) > newest - len(log)]
            self._selected, self._newest = [*added, *kept], newest
        return self._selected

    def _go(self, index: int) -> None:
        """On the newest line the cursor stays on whatever is newest."""
        super()._go(index)
        if index == 0 and self._frame is not None:
            self._frame.state.cursors.pop(self.topic, None)


class WarningsList(LogList):
    """What is wrong now, with what to try; below it the warnings and errors in the log."""

    topic = "warnings"
    seconds = 5.0

    def __init__(self) -> None:
        super().__init__(lowest="warning")

    def inputs(self, frame: Frame) -> object:
        """Which warnings are active, besides."""
        return super().inputs(frame), [(key, raised.message) for key, (_, raised) in frame.view.warnings.items()]

    def heading(self, frame: Frame) -> str:
        """How many of each."""
        dot, active = f" {frame.glyphs.dot} ", len(self._active(frame))
        number_of = len(self._lines_of_log(frame))
        lines = "1 line" if number_of == 1 else f"{number_of} lines"
        return f"Warnings{dot}{active or 'none'} active{dot}{whose(frame)}{dot}{lines} in the log"

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """Those of now, newest first; then the log."""
        return [*self._active(frame), *self._lines_of_log(frame)]

    def empty(self, frame: Frame) -> str:
        """All is well."""
        return "no warnings or errors so far"

    def _active(self, frame: Frame) -> list[Block]:
        only = only_behavior(frame)
        raised = [
            warning_block(since, warning, frame)
            for since, warning in frame.view.warnings.values()
            if only is None or warning.behavior in ("", only)
        ]
        return raised[::-1]


def only_behavior(frame: Frame) -> str | None:
    """The name of the only behavior whose lines are wanted; None for all."""
    return frame.behavior.name if frame.state.log_is_of_selected and frame.behavior is not None else None


def whose(frame: Frame) -> str:
    """The behavior whose lines are shown, in words."""
    only = only_behavior(frame)
    return "all behaviors" if only is None else f"only {safe_text(only)}"


def concerns(entry: LogLine, behavior: str | None) -> bool:
    """Whether the line is about that behavior; several may share a line."""
    return behavior is None or entry.source == behavior or behavior in entry.source.split(", ")


def log_entry(key: str, entry: LogLine, glyphs: Glyphs) -> Entry:
    """One line of the log; its text is whole, also where the message has several lines."""
    words = (time_of_day(entry.time), entry.kind, entry.source, entry.message)
    text = safe_text(" ".join(word for word in words if word), multiline=True).expandtabs(4)
    return Entry(key, text, partial(log_line, entry, glyphs))


def warning_block(since: float, warning: WarningRaised, frame: Frame) -> Block:
    """Whose and since when; below it what was seen and what to try."""
    name, message, advice = (safe_text(text) for text in (warning.behavior, warning.message, warning.advice))
    prefix = f"{time_of_day(since)} {frame.glyphs.warning} "

    lasted = f" for {duration(frame.time - since)}"
    first = line(Span(prefix, "warning"), Span(name or "the run", "strong"), Span(lasted, "dim"))

    def rest(width: int) -> list[Line]:
        indent = " " * len(prefix)
        rows = [Span(row, "warning") for row in wrapped(message, max(2, width - len(indent)))]
        rows += [Span(row) for row in wrapped(f"try: {advice}", max(2, width - len(indent)))] if advice else []
        return [line(indent, row) for row in rows]

    text = f"{time_of_day(since)} {name or 'the run'}: {message}; {advice}"
    return Block(f"active {warning.kind} {warning.behavior}", text, lambda _: first, rest)


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
