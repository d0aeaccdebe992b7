"""Every environment parameter: its lesson, its value, and how far it is to the next lesson."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rl_tui.engine.session.messages import ParameterStatus
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, Tone, cells, labeled, line
from rl_tui.tui.drawing.text import count, left, time_of_day
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.panes.lesson_words import (
    Condition,
    condition_line,
    conditions,
    is_last,
    lesson_name,
    lessons_of,
    missing,
    stays,
)
from rl_tui.tui.panes.list import Entry, ListPane

COLUMNS = (  # by the width of a row in cells; below 90 only a bar says how far it is to the next lesson
    (140, (30, 30, 48)),
    (90, (20, 20, 32)),
    (76, (18, 16, 26)),
    (56, (16, 13, 17)),
    (0, (14, 13, 15)),
)
NEXT_WIDTH = 24  # "return -123.4 of -1234", and a blank
WORDS_WIDTH = 26  # of a condition in the details
PERCENT_WIDTH = 6
LONGEST_BAR = 40
NONE = "the file has no environment_parameters: numbers, samplers or lessons that the environment is given"


class LessonList(ListPane):
    """One line each, in the order of the file. An entry's key is the parameter's name."""

    topic = "lessons"

    def heading(self, frame: Frame) -> str:
        """How many there are."""
        number_of = len(frame.view.parameters)
        return "Environment parameters" + (f" {frame.glyphs.dot} {number_of}" if number_of else "")

    def header(self, frame: Frame, width: int) -> Line:
        """The columns of `_row`."""
        name, lesson, value = column_widths(width - self.cursor_width)
        last = "to the next lesson" if width - self.cursor_width >= 76 else "next"
        words = f"{'name':<{name}}{'lesson':<{lesson}}{'value':<{value}}{last}"
        return line(" " * self.cursor_width, Span(words, "dim"))

    def empty(self, frame: Frame) -> str:
        """Why there are none."""
        return "available once training starts" if frame.view.state == "starting" else NONE

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """One for each."""
        return [
            Entry(name, _text(name, status), partial(_row, name, status, frame.glyphs))
            for name, status in frame.view.parameters.items()
        ]

    def _index(self, frame: Frame, shown: Sequence[Entry]) -> int:
        """The first one with lessons, before the cursor was moved: the others have little to show."""
        if self.topic in frame.state.cursors:
            return super()._index(frame, shown)
        parameters = frame.view.parameters
        return next((at for at, entry in enumerate(shown) if parameters[entry.key].kind == "lessons"), 0)


class LessonDetails(Pane):
    """All about the parameter that the cursor of the list stands on: its newest lessons come first."""

    def __init__(self, parameters: LessonList) -> None:
        super().__init__()
        self._list = parameters

    def heading(self, frame: Frame) -> str:
        """Its name."""
        entry = self._list.current(frame)
        return safe_text(entry.key) if entry is not None else "Details"

    def wanted_height(self, frame: Frame, width: int) -> int:
        """All of it."""
        return len(self.lines(frame, width, 0))

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The lesson, when it ends, how far that is, and the lessons before."""
        entry = self._list.current(frame)
        status = frame.view.parameters.get(entry.key) if entry is not None else None
        if entry is None or status is None:
            return [line(Span(" no parameter is selected", "dim"))]
        rows = labeled("lesson" if status.kind == "lessons" else "kind", _lesson_words(status), width)
        rows += labeled("value", f"{safe_text(status.value)}{_drawn(status)}", width)
        bar_width = min(LONGEST_BAR, width - 12 - WORDS_WIDTH - PERCENT_WIDTH)
        for label, each in zip(("so far", ""), conditions(status), strict=False):
            head = Span(f" {label:<11}", "dim")
            rows.append(line(head, *condition_line(each, WORDS_WIDTH, bar_width, frame.glyphs)))
        if status.measure:
            rows += labeled("ends", ending(status), width)
        return [*rows, *_history(entry.key, frame, width)]


def column_widths(width: int) -> tuple[int, int, int]:
    """Of name, lesson and value; the rest is for what is missing to the next lesson."""
    return next(widths for least, widths in COLUMNS if width >= least)


def ending(status: ParameterStatus) -> str:
    """When the lesson ends, and what then happens."""
    whose = safe_text(status.behavior)
    if status.measure == "progress":
        words = f"once {whose} has made more than {100 * status.threshold:.3g}% of its max_steps"
    elif status.measure == "Elo":
        words = f"once the Elo rating of {whose} is greater than {status.threshold:g}"
    else:
        words = f"once the mean return of {whose} is greater than {status.threshold:g}"
    if status.min_lesson_length > 0:
        words += f" and {status.min_lesson_length} episodes have ended"
    return f"{words}; all environments are then reset" if status.require_reset else words


def _text(name: str, status: ParameterStatus) -> str:
    """What a filter finds, and what is copied."""
    found = missing(status)
    parts = [name, lesson_name(status), status.value, found.words if found is not None else ""]
    return safe_text("  ".join(part for part in parts if part))


def _row(name: str, status: ParameterStatus, glyphs: Glyphs, width: int) -> Line:
    name_width, lesson_width, value_width = column_widths(width)
    tone: Tone = "text" if status.kind == "lessons" else "dim"
    head = line(
        _column(safe_text(name), name_width, glyphs),
        Span(_column(lesson_name(status), lesson_width, glyphs), tone),
        Span(_column(safe_text(status.value), value_width, glyphs), "strong"),
    )
    return line(*head, *_to_next(status, width - cells(head), glyphs))


def _to_next(status: ParameterStatus, width: int, glyphs: Glyphs) -> Line:
    found = missing(status)
    if found is None:
        words = "last lesson" if is_last(status) else "stays" if stays(status) else ""
        words = "new every episode" if status.kind == "sampler" else words
        return line(Span(words if len(words) <= width else "", "good" if is_last(status) else "dim"))
    if width < NEXT_WIDTH + PERCENT_WIDTH:
        return condition_line(Condition("", found.share), 0, width - PERCENT_WIDTH, glyphs)
    return condition_line(found, NEXT_WIDTH, min(LONGEST_BAR, width - NEXT_WIDTH - PERCENT_WIDTH), glyphs)


def _column(text: str, width: int, glyphs: Glyphs) -> str:
    return left(text, width - 2, glyphs.ellipsis) + "  "


def _lesson_words(status: ParameterStatus) -> str:
    if status.kind != "lessons":
        return lesson_name(status)
    name = f' "{safe_text(status.name)}"' if status.name else ""
    last = ", the last" if is_last(status) else ", which stays" if stays(status) else ""
    return f"{status.lesson} of {status.num_lessons}{name}{last}"


def _drawn(status: ParameterStatus) -> str:
    """How often its value changes, where the kind alone says so."""
    return ", drawn again for every episode" if status.kind == "sampler" else ""


def _history(parameter: str, frame: Frame, width: int) -> list[Line]:
    rows: list[Line] = []
    for label, (at, event) in zip(_labels("reached"), reversed(lessons_of(parameter, frame.view)), strict=False):
        name = f' "{safe_text(event.name)}"' if event.name else ""
        where = f"at step {count(event.step)} of {safe_text(event.behavior)}"
        rows += labeled(label, f"{time_of_day(at)}  lesson {event.lesson}{name} {where}", width)
    return rows


def _labels(first: str) -> Sequence[str]:
    """Of so many lessons as are worth a line; the log has them all."""
    return [first, *[""] * 9]
