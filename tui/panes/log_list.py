"""Lists of the log by level and behavior, newest last, and of the warnings, newest first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, takewhile
from typing import TypeAlias

from rl_tui.engine.session.messages import LogLevel, WarningRaised
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import LogLine
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, clip, level_tone, line
from rl_tui.tui.drawing.text import duration, fit_message, left, num_cells, time_of_day, wrapped
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.blocks import Block, BlocksPane
from rl_tui.tui.panes.list import Entry

LEVELS: tuple[LogLevel, ...] = ("debug", "info", "warning", "error")  # each shows those after it as well
KINDS = {"WARNING": "WARN"}  # of the log; the rest are short already
LEVEL_WORDS = {"debug": "everything", "info": "info and above", "warning": "warnings and errors", "error": "errors"}
Selection: TypeAlias = tuple[LogLevel, str | None]  # lowest level, and the only behavior; None: all
Subject: TypeAlias = tuple[str, int | None]  # behavior and step
SHORTEST_SOURCE = 5  # cells of the names in the lines
SMALLEST_WITH_BAR = 4  # lines of a list that has room to say how many are below
MOST_ROWS = 12  # of one warning or error in the list of them: a traceback does not push out all others


class LogList(BlocksPane):
    """The lines of the log that the user wants to see, newest last; it follows them until the cursor leaves the end.

    lowest: the level from which on, None for the chosen one.
    """

    topic = "log"
    seconds = math.inf
    follows_end = True

    def __init__(self, lowest: LogLevel | None = None) -> None:
        super().__init__()
        self._lowest = lowest
        self._selection: Selection | None = None
        self._longest = 0  # cells of the names that the lines have
        self._kept: dict[str, Entry] = {}  # by the line's number
        self._saved: dict[Subject, tuple[str, LogLine]] = {}  # the lines of checkpoints with their numbers
        self._newest = 0  # number of the newest line among them
        self._selected: list[Entry] = []

    def inputs(self, frame: Frame) -> object:
        """Whether there is another line, and what is to be seen of them."""
        return super().inputs(frame), frame.view.num_logged, self._selection_of(frame)

    def heading(self, frame: Frame) -> str:
        """Level, behavior and count."""
        dot, entries = f" {frame.glyphs.dot} ", self._lines_of_log(frame)
        level = LEVEL_WORDS[self._lowest or frame.state.log_level]
        return f"Log{dot}{level}{dot}{whose(frame)}{dot}{num_lines(len(entries))}"

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """Oldest first."""
        return self._lines_of_log(frame)

    def empty(self, frame: Frame) -> str:
        """Nothing at all, or nothing of this kind."""
        return "no line of this level and behavior" if frame.view.log else "no line yet"

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The lines around the cursor; where newer ones are below them, the last line says how many."""
        rows = super().lines(frame, width, height)
        if not self._num_below() or not self.follows_end or height < SMALLEST_WITH_BAR:
            return rows
        rows = super().lines(frame, width, height - 1)
        bar = self._bar(frame, width)
        self._owners.append(len(self._shown) - 1)  # a click on the bar goes to the end
        return [*rows, bar]

    def _num_below(self) -> int:
        return len(self._shown) - 1 - self._owners[-1] if self._shown else 0

    def _bar(self, frame: Frame, width: int) -> Line:
        number_of = self._num_below()
        words = f" {number_of} newer {'line' if number_of == 1 else 'lines'} below {frame.glyphs.dot} "
        key = frame.keymap.of_id("last").shown
        rest = max(0, width - len(words) - len(key) - 3)
        start, end = frame.glyphs.floor * 2, f" {frame.glyphs.floor * rest}"
        return clip(line(Span(start, "dim"), Span(words, "strong"), Span(key, "accent"), Span(end, "dim")), width)

    def _lines_of_log(self, frame: Frame) -> list[Entry]:
        """Entries of lines that were there before are kept: a thousand new ones take some milliseconds."""
        log, newest, selection = frame.view.log, frame.view.num_logged, self._selection_of(frame)
        longest = longest_source(frame)
        if (selection, longest) != (self._selection, self._longest) or newest < self._newest:
            self._selection, self._longest, self._newest = selection, longest, 0
            self._kept, self._saved = {}, {}
        if newest > self._newest:
            oldest = newest - len(log) + 1
            for number, entry in islice(enumerate(log, oldest), max(0, self._newest + 1 - oldest), None):
                if is_wanted(entry, selection):
                    self._add(str(number), entry, frame.glyphs)
            for key in list(takewhile(lambda key: int(key) < oldest, self._kept)):
                del self._kept[key]
            self._saved = {what: saved for what, saved in self._saved.items() if saved[0] in self._kept}
            self._selected, self._newest = list(self._kept.values()), newest
        return self._selected

    def _entry(self, key: str, entry: LogLine, glyphs: Glyphs) -> Entry:
        return log_entry(key, entry, glyphs, self._longest)

    def _selection_of(self, frame: Frame) -> Selection:
        return self._lowest or frame.state.log_level, only_behavior(frame)

    def _add(self, key: str, entry: LogLine, glyphs: Glyphs) -> None:
        """A line of its own, but for the export of a checkpoint, which is in the checkpoint's line."""
        subject = entry.source, entry.step
        if entry.kind == "ONNX" and entry.level == "info" and subject in self._saved:
            key, saved = self._saved[subject]
            self._kept[key] = checkpoint_entry(key, saved, entry, glyphs, self._longest)
            return
        self._kept[key] = self._entry(key, entry, glyphs)
        if entry.kind == "CKPT" and entry.step is not None:
            self._saved[subject] = key, entry


class WarningsList(LogList):
    """What is wrong now, with what to try; below it the warnings and errors in the log, whole: an alert that was cut to
    one line is read here."""

    topic = "warnings"
    seconds = 5.0
    follows_end = False

    def __init__(self) -> None:
        super().__init__(lowest="warning")

    def inputs(self, frame: Frame) -> object:
        """Which warnings are active, besides."""
        return super().inputs(frame), [(key, raised.message) for key, (_, raised) in frame.view.warnings.items()]

    def heading(self, frame: Frame) -> str:
        """How many of each."""
        dot, active = f" {frame.glyphs.dot} ", len(self._active(frame))
        lines = num_lines(len(self._lines_of_log(frame)))
        return f"Warnings{dot}{active or 'none'} active{dot}{whose(frame)}{dot}{lines} in the log"

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """Those of now, newest first; then the log, newest first."""
        return [*self._active(frame), *reversed(self._lines_of_log(frame))]

    def empty(self, frame: Frame) -> str:
        """All is well."""
        return "no warnings or errors so far"

    def _go(self, index: int) -> None:
        """On the newest line the cursor stays on whatever is newest."""
        super()._go(index)
        if index == 0 and self._frame is not None:
            self._frame.state.cursors.pop(self.topic, None)

    def _entry(self, key: str, entry: LogLine, glyphs: Glyphs) -> Entry:
        return whole_entry(key, entry, glyphs, self._longest)

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


def is_wanted(entry: LogLine, selection: Selection) -> bool:
    """Whether the line is of that level or above, and about that behavior."""
    lowest, only = selection
    return LEVELS.index(entry.level) >= LEVELS.index(lowest) and concerns(entry, only)


def num_lines(number_of: int) -> str:
    """Their number in words."""
    return "1 line" if number_of == 1 else f"{number_of} lines"


def checkpoint_entry(key: str, saved: LogLine, exported: LogLine, glyphs: Glyphs, longest: int) -> Entry:
    """The line of a checkpoint that says that its policy was exported; its text has both paths."""
    words, colon, path = saved.message.partition(": ")
    both = replace(saved, message=f"{words}, ONNX{colon}{path}")
    text = log_entry(key, saved, glyphs, longest).text
    return Entry(key, f"{text}\nONNX {safe_text(exported.message)}", partial(log_line, both, glyphs, longest))


def log_entry(key: str, entry: LogLine, glyphs: Glyphs, longest: int) -> Entry:
    """One line of the log; its text is whole, also where the message has several lines."""
    words = (time_of_day(entry.time), entry.kind, entry.source, entry.message)
    text = safe_text(" ".join(word for word in words if word), multiline=True).expandtabs(4)
    return Entry(key, text, partial(log_line, entry, glyphs, longest))


def whole_entry(key: str, entry: LogLine, glyphs: Glyphs, longest: int) -> Block:
    """A line of the log with all of its message, wrapped in the column of messages."""

    def rows(width: int) -> list[str]:
        text = safe_text(entry.message, multiline=True).expandtabs(4)
        return wrapped(text, max(2, width - _before_message(longest, width) - 1))

    def first(width: int) -> Line:
        return log_line(replace(entry, message=rows(width)[0]), glyphs, longest, width)

    def rest(width: int) -> list[Line]:
        indent, found = " " * _before_message(longest, width), rows(width)
        more = len(found) - MOST_ROWS + 1
        if len(found) > MOST_ROWS:
            found = [*found[: MOST_ROWS - 1], f"{glyphs.ellipsis} {more} more lines; enter shows them"]
        return [line(indent, Span(row, level_tone(entry.level))) for row in found[1:]]

    return Block(key, log_entry(key, entry, glyphs, longest).text, first, rest)


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


def longest_source(frame: Frame) -> int:
    """Cells of the longest name that lines are marked with: the run's, or a behavior's."""
    run = [frame.view.run.run_id] if frame.view.run is not None else []
    return max((num_cells(safe_text(name)) for name in (*run, *frame.view.behaviors)), default=0)


def log_line(entry: LogLine, glyphs: Glyphs, longest: int, width: int) -> Line:
    """Time, kind, source and message; a path at its end is shortened from the left, or left out where the message names
    the step of a checkpoint. longest: cells of the longest source, which all have if there is room."""
    source = left(safe_text(entry.source), _source_width(longest, width), glyphs.ellipsis)
    room = width - _before_message(longest, width) - 1
    message = safe_text(entry.message)
    if entry.step is not None and entry.level == "info" and num_cells(message) > room:
        message = message.partition(": ")[0]
    message = fit_message(message, room, glyphs.ellipsis)
    tone = level_tone(entry.level)
    sign = {"error": glyphs.failed, "warning": glyphs.warning}.get(entry.level, " ")
    return line(
        Span(f"{time_of_day(entry.time)} ", "dim"),
        Span(f"{sign} {left(KINDS.get(entry.kind, entry.kind), 6)} ", tone),
        Span(f"{source} ", "dim"),
        Span(message, tone if entry.level in ("error", "warning") else "text"),
    )


def _source_width(longest: int, width: int) -> int:
    return min(max(longest, SHORTEST_SOURCE) + 1, 9 if width < 100 else 16)  # the blank keeps names off the messages


def _before_message(longest: int, width: int) -> int:
    """Cells of the time, the sign with the kind, and the source."""
    return 9 + 9 + _source_width(longest, width) + 1
