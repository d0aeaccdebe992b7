"""Every worker process: how fast it is, how long it waits, how old its policy is, its restarts and its memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from rl_tui.engine.session.environment_view import WorkersView, bare_reason, worker_word
from rl_tui.engine.session.messages import Worker
from rl_tui.engine.session.text import counted, safe_text
from rl_tui.tui.charts.percent import bar
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, cells, line
from rl_tui.tui.drawing.text import count, duration, fit, fit_path, left, num_cells, right, size
from rl_tui.tui.panes.base import BEAT, Frame
from rl_tui.tui.panes.environments import restarting_in
from rl_tui.tui.panes.list import Entry, ListPane

NAME_WIDTH, PID_WIDTH, SPEED_WIDTH, LAG_WIDTH, RESTARTS_WIDTH, MEMORY_WIDTH = 10, 9, 9, 5, 10, 8
WAITING_WIDTH, PERCENT_WIDTH = 9, 5  # of its column where it has no bar, and beside the bar
BAR_WIDTH, LONGEST_BAR = 7, 48
LONGEST_NAME = 60  # with the ids of processes
GAP, MARGIN = 2, 1  # before a bar; at the end of a row that has one
ABSENT = "-"
NONE = "env_settings.num_workers starts worker processes; Unity players have one each"


@dataclass(frozen=True, slots=True)
class Widths:
    """Of the columns that differ from terminal to terminal; 0 for one that is left out."""

    name: int
    pid: int
    bar: int
    lag: int

    @property
    def waiting(self) -> int:
        """Of its bar and its percentage."""
        return GAP + self.bar + PERCENT_WIDTH if self.bar else WAITING_WIDTH

    @property
    def before_restarts(self) -> int:
        """Of all columns up to there, without those that say what a worker is."""
        return SPEED_WIDTH + self.waiting + self.lag


Layout: TypeAlias = Callable[[int], Widths]  # of a row of so many cells


class WorkerList(ListPane):
    """One line each, by number, below the totals of its environment. seconds: samples come once a second."""

    topic = "workers"
    seconds = BEAT

    def inputs(self, frame: Frame) -> object:
        """Which there are, and which of them are restarting."""
        known = [(each.environment, len(each.workers), restarting_in(each, frame.view)) for each in frame.view.workers]
        return super().inputs(frame), known

    def heading(self, frame: Frame) -> str:
        """How many there are."""
        workers = frame.view.workers
        words = {f"{worker_word(each.environment)}s".capitalize() for each in workers}
        number = sum(len(each.workers) for each in workers)
        word = words.pop() if len(words) == 1 else "Workers"
        return f"{word} {frame.glyphs.dot} {number}" if number else word

    def header(self, frame: Frame, width: int) -> Line | None:
        """The columns of `_figures`."""
        if not frame.view.workers:
            return None
        widths = widths_in(width - self.cursor_width, _environment_width(frame))
        words = right("pid" if widths.pid else "", widths.name + widths.pid) + right("steps/s", SPEED_WIDTH)
        words += right("waiting", widths.waiting)
        words += right("lag" if widths.lag else "", widths.lag)
        words += right("restarts", RESTARTS_WIDTH) + right("memory", MEMORY_WIDTH)
        return line(" " * self.cursor_width, Span(words, "dim"))

    def empty(self, frame: Frame) -> str:
        """What would give some."""
        return "available once training starts" if frame.view.state == "starting" else NONE

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """The totals of each environment, and its workers."""
        layout = partial(widths_in, environment_width=_environment_width(frame))
        return [entry for each in frame.view.workers for entry in _entries(each, layout, frame)]


def widths_in(width: int, environment_width: int) -> Widths:
    """Of a row of so many cells; the names of environments take so many where there is room."""
    fixed = NAME_WIDTH + SPEED_WIDTH + RESTARTS_WIDTH + MEMORY_WIDTH
    extra = width - fixed - PID_WIDTH - LAG_WIDTH - BAR_WIDTH - PERCENT_WIDTH - GAP - MARGIN
    if extra < 0:
        has_lag = width >= fixed + WAITING_WIDTH + LAG_WIDTH
        has_pid = width >= fixed + WAITING_WIDTH + LAG_WIDTH + PID_WIDTH
        return Widths(NAME_WIDTH, PID_WIDTH * has_pid, 0, LAG_WIDTH * has_lag)
    more_name = min(extra, max(0, min(LONGEST_NAME, environment_width + 1) - PID_WIDTH - NAME_WIDTH))
    more_bar = min(extra - more_name, LONGEST_BAR - BAR_WIDTH)
    return Widths(NAME_WIDTH + more_name, PID_WIDTH, BAR_WIDTH + more_bar, LAG_WIDTH)


def _environment_width(frame: Frame) -> int:
    return max((num_cells(safe_text(each.environment)) for each in frame.view.workers), default=0)


def _entries(workers: WorkersView, layout: Layout, frame: Frame) -> list[Entry]:
    restarting = restarting_in(workers, frame.view)
    key = "/".join((workers.environment, *workers.behaviors[:1]))
    draw_total = partial(_total_row, workers, workers.total, layout, frame.glyphs)
    entries = [Entry(key, _total_text(workers), draw_total)]
    for each in workers.workers:
        if each.number in restarting:
            since, event = restarting[each.number]
            words = f"restarting for {duration(max(0.0, frame.time - since))}: {bare_reason(event)}"
            draw = partial(_restarting_row, workers, each, words, layout, frame.glyphs)
        else:
            words, draw = "", partial(_row, workers, each, layout, frame.glyphs)
        entries.append(Entry(f"{key}/{each.number}", _text(workers, each, words), draw))
    return entries


def _text(workers: WorkersView, one: Worker, restarting: str) -> str:
    """All that is known of it, to be searched and copied."""
    name = f"{worker_word(workers.environment)} {one.number} of {safe_text(workers.environment)}"
    pid = "" if one.pid is None else f"pid {one.pid}"
    return "  ".join(part for part in (name, pid, restarting, *_words(one)) if part)


def _total_text(workers: WorkersView) -> str:
    number = counted(len(workers.workers), worker_word(workers.environment))
    return "  ".join((f"{safe_text(workers.environment)}, {number}", *_words(workers.total)))


def _words(one: Worker) -> list[str]:
    """Its figures, without those that are not known."""
    return [
        *([] if one.steps_per_second is None else [f"{count(one.steps_per_second)} steps/s"]),
        *([] if one.waiting is None else [f"waiting {100 * one.waiting:.0f}%"]),
        *([] if one.lag is None else [f"{counted(one.lag, 'update')} behind"]),
        counted(one.restarts, "restart"),
        *([] if one.memory_bytes is None else [f"memory {size(one.memory_bytes)}"]),
    ]


def _total_row(workers: WorkersView, total: Worker, layout: Layout, glyphs: Glyphs, width: int) -> Line:
    """The environment, and all of its workers as one; its end distinguishes it where there is no room for its name."""
    widths = layout(width)
    room = widths.name + widths.pid
    name = Span(left(fit_path(safe_text(workers.environment), room - 1, glyphs.ellipsis), room), "accent")
    return line(name, *_figures(total, widths, glyphs))


def _row(workers: WorkersView, one: Worker, layout: Layout, glyphs: Glyphs, width: int) -> Line:
    widths = layout(width)
    return line(*_name(workers, one, widths, glyphs), *_figures(one, widths, glyphs))


def _restarting_row(workers: WorkersView, one: Worker, words: str, layout: Layout, glyphs: Glyphs, width: int) -> Line:
    """Its reason stands in the place of what it does not do."""
    widths = layout(width)
    reason = left(f"{glyphs.waiting} {words}", widths.before_restarts - GAP, glyphs.ellipsis)
    return line(*_name(workers, one, widths, glyphs), " " * GAP, Span(reason, "wait"), *_end(one))


def _name(workers: WorkersView, one: Worker, widths: Widths, glyphs: Glyphs) -> Line:
    name = fit(f" {worker_word(workers.environment)} {one.number}", widths.name, glyphs.ellipsis)
    pid = Span(right(ABSENT if one.pid is None else f"{one.pid}", widths.pid) if widths.pid else "", "dim")
    return line(left(name, widths.name), pid)


def _figures(one: Worker, widths: Widths, glyphs: Glyphs) -> Line:
    speed = ABSENT if one.steps_per_second is None else count(one.steps_per_second)
    percent = ABSENT if one.waiting is None else f"{100 * one.waiting:.0f}%"
    waiting: Line = ()
    if widths.bar and one.waiting is not None:
        waiting = line(" " * GAP, *bar(one.waiting, widths.bar, glyphs, "accent"))
    waiting = line(*waiting, right(percent, widths.waiting - cells(waiting)))
    lag = ABSENT if one.lag is None else count(one.lag)
    return line(right(speed, SPEED_WIDTH), *waiting, right(lag, LAG_WIDTH) if widths.lag else "", *_end(one))


def _end(one: Worker) -> Line:
    """The last two columns."""
    restarts = Span(right(count(one.restarts), RESTARTS_WIDTH), "warning" if one.restarts else "dim")
    memory = ABSENT if one.memory_bytes is None else size(one.memory_bytes)
    return line(restarts, right(memory, MEMORY_WIDTH))
