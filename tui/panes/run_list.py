"""The runs of a folder, and all about the one below the cursor."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual import events

from rl_tui.engine.process.vital_signs import this_process
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import SERIES, Line, Span, Tone, labeled, line, state_tone
from rl_tui.tui.drawing.text import count, duration, fit, left, num_cells, number, percent, right, score
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.panes.league_words import rating_text
from rl_tui.tui.panes.list import Entry, ListPane
from rl_tui.tui.runs.rows import RunRow, in_order, is_rising, rows_of
from rl_tui.tui.state.choices import RunsColumn, RunsOrder

if TYPE_CHECKING:
    from rl_tui.engine.session.summaries import BehaviorSummary, RunSummary

MADE_OF = "runs of one configuration: only seed, name and folder differ. Means are above"
TITLES: Mapping[RunsColumn, str] = {"best": "best ckpt", "last": "mean 100"}  # those that are not the column's name
THIS = " (this)"  # after the name of the run on this screen, where there is room; it is bold anyway
STATE_WIDTH, BEST_WIDTH, LAST_WIDTH = 14, 11, 10


class RunsList(ListPane):
    """A line per run or group, by default the one with the newest event first. What it shows is set by its screen.

    words: shown in place of runs. groups: the group of each run, by its id, as far as it is known. is_past: the
    screen's own time stands still or is that of a recording, so that ages are by the clock on the wall.
    """

    topic = "runs"
    seconds = 5.0  # their ages

    def __init__(self) -> None:
        super().__init__()
        self.runs: Sequence[RunSummary] = ()
        self.groups: Mapping[str, str] = {}
        self.words = ""
        self.is_past = False

    def inputs(self, frame: Frame) -> object:
        """What the screen has set."""
        order = frame.state.runs
        chosen = order.column, order.is_reversed, order.is_grouped
        return super().inputs(frame), self.runs, dict(self.groups), chosen, tuple(frame.state.marked), self.words

    def heading(self, frame: Frame) -> str:
        """How many there are, and how many are marked."""
        parts = ["Runs", str(len(self.runs)) if self.runs else ""]
        if frame.state.runs.is_grouped:
            parts.append("grouped by configuration")
        parts.append(f"{len(frame.state.marked)} marked" if frame.state.marked else "")
        return f" {frame.glyphs.dot} ".join(part for part in parts if part)

    def header(self, frame: Frame, width: int) -> Line | None:
        """The columns, that by which they are sorted with its sign."""
        if not self.runs:
            return None
        inner = width - self.cursor_width
        spans = [Span("    ", "dim")]
        for column, cells in _columns(inner):
            is_sorted = column == frame.state.runs.column
            title = TITLES.get(column, column) + (f"{_arrow(frame.state.runs, frame.glyphs)}" if is_sorted else "")
            align = left if column in ("run", "state", "behaviors") else right
            spans.append(Span(align(title, cells, frame.glyphs.ellipsis), "accent" if is_sorted else "dim"))
        return line(*spans)

    def on_click(self, event: events.Click) -> None:
        """A column whose title is clicked is sorted by; a click on a run gives it the cursor."""
        offset = event.get_content_offset(self)
        if offset is None or offset.y > 0 or not self.runs:
            super().on_click(event)
            return
        end = self.cursor_width + 2
        for column, cells in _columns(self.size.width - self.cursor_width):
            end += cells
            if offset.x < end:
                self.call_later(self.run_action, f"screen.sort_by({column!r})")
                return

    def empty(self, frame: Frame) -> str:
        """Why there is nothing."""
        return self.words or "no run in this folder yet"

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """One per run or group."""
        own = frame.view.run.run_id if frame.view.run is not None else ""
        return [self._entry(row, any(run.run_id == own for run in row.runs), frame) for row in self.rows(frame)]

    def rows(self, frame: Frame) -> list[RunRow]:
        """What is listed, in its order."""
        order = frame.state.runs
        rows = rows_of(self.runs, self.groups if order.is_grouped else {})
        return in_order(rows, order.column, is_reversed=order.is_reversed)

    def row(self, frame: Frame) -> RunRow | None:
        """The one below the cursor."""
        entry = self.current(frame)
        return next((row for row in self.rows(frame) if row.key == entry.key), None) if entry is not None else None

    def chosen_row(self) -> RunRow | None:
        """The one below the cursor, as the user saw it last."""
        return self.row(self._frame) if self._frame is not None else None

    def columns(self) -> list[RunsColumn]:
        """Those that are shown, in their order."""
        return [column for column, _ in _columns(self.size.width - self.cursor_width)]

    def found(self, key: str) -> RunRow | None:
        """The run or group of that key, if it is there, however the list is looked at."""
        rows = [*rows_of(self.runs, {}), *rows_of(self.runs, self.groups)]
        return next((row for row in rows if row.key == key), None)

    def _entry(self, row: RunRow, is_own: bool, frame: Frame) -> Entry:
        marked = frame.state.marked
        mark = marked.index(row.key) if row.key in marked else None
        text = " ".join(
            f"{run.run_id} {run.state} {' '.join(behavior.name for behavior in run.behaviors)}" for run in row.runs
        )
        now = time.time() if self.is_past else frame.time
        draw = partial(row_line, row, mark, is_own, now, frame.glyphs)
        return Entry(row.key, safe_text(text), draw)


def row_line(row: RunRow, mark: int | None, is_own: bool, now: float, glyphs: Glyphs, width: int) -> Line:
    """One run or group; of several behaviors the first stands for all. mark: its place among the marked ones."""
    first = row.runs[0].behaviors[0] if row.runs[0].behaviors else None
    behaviors = _behaviors(row.runs[0], _behaviors_width(width) - 1, glyphs)
    after = f" n={len(row.runs)}" if row.is_group else ""
    room = _name_width(width) - 1 - len(after)
    own = THIS if is_own and num_cells(safe_text(row.name)) + len(THIS) <= room else ""
    name = left(safe_text(row.name), room - len(own), glyphs.ellipsis).rstrip() + after + own
    times = [run.last_event_at for run in row.runs if run.last_event_at is not None]
    age = duration(now - max(times)) if times else "-"
    seconds = row.mean("took")
    more = "+" if any(run.was_resumed for run in row.runs) else ""  # what its earlier processes took comes on top
    took = "-" if seconds is None else duration(seconds) + more
    words, tone = _states(row, glyphs)
    best, last = row.mean("best"), row.mean("last")
    loss = first.best_loss if first is not None and len(row.runs) == 1 else None
    return line(
        Span("  " if mark is None else f"{mark + 1} ", "text" if mark is None else SERIES[mark]),
        Span(left(name, _name_width(width)), "strong" if is_own else "text"),
        Span(left(words, STATE_WIDTH), tone),
        Span(left(behaviors, _behaviors_width(width)), "dim"),
        right(_progress(row.mean("steps"), first), 10)
        + right(score(best, loss), BEST_WIDTH)
        + right(number(last), LAST_WIDTH),
        Span(right(age, 7) + (right(took, 8) if is_wide(width) else ""), "dim"),
    )


def _columns(width: int) -> list[tuple[RunsColumn, int]]:
    """Name and width of each that is shown."""
    columns: list[tuple[RunsColumn, int]] = [
        ("run", _name_width(width)), ("state", STATE_WIDTH), ("behaviors", _behaviors_width(width)),
        ("steps", 10), ("best", BEST_WIDTH), ("last", LAST_WIDTH), ("age", 7),
    ]  # fmt: skip
    return [*columns, ("took", 8)] if is_wide(width) else columns


def _arrow(order: RunsOrder, glyphs: Glyphs) -> str:
    return glyphs.rising if is_rising(order.column, is_reversed=order.is_reversed) else glyphs.falling


def _states(row: RunRow, glyphs: Glyphs) -> tuple[str, Tone]:
    """The state of a run; of a group how many runs are in which."""
    signs = [state_sign(run, glyphs) for run in row.runs]
    counted = Counter(run.state for run in row.runs)
    if len(counted) == 1:
        return f"{signs[0][0]} {row.runs[0].state}", signs[0][1]
    numbers = Counter(sign for sign, _ in signs)
    tones = {tone for _, tone in signs}
    worst: Tone = next((tone for tone in ("bad", "warning", "wait") if tone in tones), "good")
    return "  ".join(f"{sign} {number}" for sign, number in numbers.items()), worst


def is_wide(width: int) -> bool:
    """Whether there is room for how long each run took."""
    return width >= 95


def _behaviors_width(width: int) -> int:
    return 20 if is_wide(width) else 11


def _name_width(width: int) -> int:
    others = 2 + STATE_WIDTH + _behaviors_width(width) + 10 + BEST_WIDTH + LAST_WIDTH + 7 + (8 if is_wide(width) else 0)
    return max(8, min(40, width - others - 1))  # a blank stays free at the right


def _behaviors(run: RunSummary, width: int, glyphs: Glyphs) -> str:
    """The name of the first one, and how many others there are."""
    if not run.behaviors:
        return "-"
    others = f" +{len(run.behaviors) - 1}" if len(run.behaviors) > 1 else ""
    return fit(safe_text(run.behaviors[0].name), width - len(others), glyphs.ellipsis) + others


def state_sign(run: RunSummary, glyphs: Glyphs) -> tuple[str, Tone]:
    """The sign and the color of a run's state."""
    if run.state == "unknown":
        return "?", "dim"
    return glyphs.of(run.state), state_tone(run.state)


def _progress(steps: float | None, behavior: BehaviorSummary | None) -> str:
    """Steps, and how much of max_steps that is."""
    if steps is None or behavior is None:
        return "-"
    return count(steps) + (f"{percent(steps, behavior.max_steps):>4}%" if behavior.max_steps else "")


class RunDetails(Pane):
    """All about the run below the cursor of that list."""

    seconds = 5.0

    def __init__(self, runs: RunsList) -> None:
        super().__init__()
        self._list = runs

    def inputs(self, frame: Frame) -> object:
        """The row."""
        return self._list.row(frame)

    def heading(self, frame: Frame) -> str:
        """Its name."""
        return "Details"

    def wanted_height(self, frame: Frame, width: int) -> int:
        """All of it."""
        return len(self.lines(frame, width, 0))

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Where it is, how it stands, and each of its behaviors; of a group each of its runs."""
        row = self._list.row(frame)
        if row is None:
            return [line(Span(" no run is selected", "dim"))]
        own = frame.view.run.run_id if frame.view.run is not None else ""
        rows = _of_group(row) if row.is_group else _of_run(row.runs[0], own)
        return [each for label, text in rows for each in labeled(label, text, width, _label_width(rows))]


def _label_width(rows: Sequence[tuple[str, str]]) -> int:
    return max(11, min(24, *(len(label) + 2 for label, _ in rows)))


def _of_run(run: RunSummary, own: str) -> list[tuple[str, str]]:
    began = "" if run.started_at is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started_at))
    rows = [
        ("path", safe_text(run.path)),
        ("state", _state_words(run, run.run_id == own) + (f"; started {began}" if began else "")),
        *((safe_text(behavior.name), _words(behavior)) for behavior in run.behaviors),
    ]
    if run.note:
        rows.insert(2, ("unread", safe_text(run.note)))
    return rows


def _of_group(row: RunRow) -> list[tuple[str, str]]:
    """What it is made of; its own line has the means of these figures."""
    return [
        ("group", f"{len(row.runs)} {MADE_OF}"),
        *(
            (
                safe_text(run.run_id),
                f"{run.state}; {_words(run.behaviors[0]) if run.behaviors else 'no behavior'}",
            )
            for run in row.runs
        ),
    ]


def _state_words(run: RunSummary, is_own: bool) -> str:
    words = {
        "interrupted": "interrupted: its process is gone without reporting an end",
        "unknown": "unknown: its events report nothing",
    }.get(run.state, run.state)
    ended = f" with exit code {run.exit_code}" if run.exit_code is not None and not run.is_alive else ""
    took = "" if run.elapsed_seconds is None else f" after {duration(run.elapsed_seconds)}"
    took += " since it was resumed" if took and run.was_resumed else ""
    whose = "" if run.process in ("", this_process()) else f"; running in another process ({safe_text(run.process)})"
    lives = ("; on this screen" if is_own else "") + whose
    return f"{words}{ended}{took}{lives}"


def _words(behavior: BehaviorSummary) -> str:
    algorithm = f"{behavior.algorithm.upper()}, " if behavior.algorithm else ""
    best, last = score(behavior.best_return, behavior.best_loss), number(behavior.last_return)
    steps = count(behavior.step) + (f" of {count(behavior.max_steps)}" if behavior.max_steps else "")
    rating = "" if behavior.rating is None else f"elo {rating_text(behavior.rating)}, "
    return f"{safe_text(algorithm)}step {steps}, {rating}mean of 100 episodes {last}, best checkpoint {best}"
