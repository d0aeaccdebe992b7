"""The runs of a folder, and all about the one below the cursor."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from engine.session.text import safe_text
from tui.glyphs import Glyphs
from tui.lines import SERIES, Line, Span, Tone, labelled, line, state_tone
from tui.panes.base import Frame, Pane
from tui.panes.list import Entry, ListPane
from tui.text import count, duration, fit, left, number, percent, right

if TYPE_CHECKING:
    from engine.session.summaries import BehaviorSummary, RunSummary


class RunsList(ListPane):
    """A line per run, the one heard from last first. What it shows is set by its screen.

    words: what stands there instead of runs. marked: run ids in the order of their marks. read_at: wall time of the
    newest reading, where the screen lives in another time: that of a recording.
    """

    topic = "runs"
    seconds = 5.0  # their ages

    def __init__(self) -> None:
        super().__init__()
        self.runs: Sequence[RunSummary] = ()
        self.marked: list[str] = []
        self.words = ""
        self.read_at = 0.0

    def inputs(self, frame: Frame) -> object:
        """What the screen has set."""
        return super().inputs(frame), self.runs, tuple(self.marked), self.words

    def heading(self, frame: Frame) -> str:
        """How many there are, and how many are marked."""
        parts = ["Runs", str(len(self.runs)) if self.runs else "", f"{len(self.marked)} marked" if self.marked else ""]
        return f" {frame.glyphs.dot} ".join(part for part in parts if part)

    def header(self, frame: Frame, width: int) -> Line | None:
        """The columns."""
        if not self.runs:
            return None
        inner = width - self.cursor_width
        figures = f"{'steps':>10}{'best ckpt':>10}{'mean 100':>9}{'age':>7}" + (
            f"{'took':>8}" if is_wide(inner) else ""
        )
        named = f"{left('run', _name_width(inner))}{'state':<14}{left('behaviors', _behaviors_width(inner))}"
        return line(Span(f"    {named}{figures}", "dim"))

    def empty(self, frame: Frame) -> str:
        """Why there is nothing."""
        return self.words or "no run in this folder yet"

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """One per run."""
        own = frame.view.run.run_id if frame.view.run is not None else ""
        return [self._entry(run, run.run_id == own, frame) for run in self.runs]

    def found(self, run_id: str) -> RunSummary | None:
        """The run of that id, if it is there."""
        return next((run for run in self.runs if run.run_id == run_id), None)

    def _entry(self, run: RunSummary, is_own: bool, frame: Frame) -> Entry:
        mark = self.marked.index(run.run_id) if run.run_id in self.marked else None
        names = " ".join(behavior.name for behavior in run.behaviors)
        text = safe_text(f"{run.run_id} {run.state} {names}")
        return Entry(
            run.run_id, text, partial(run_line, run, mark, is_own, max(frame.time, self.read_at), frame.glyphs)
        )


def run_line(run: RunSummary, mark: int | None, is_own: bool, now: float, glyphs: Glyphs, width: int) -> Line:
    """One run; of several behaviors the first tells how far and how well. mark: its place among the marked ones."""
    first = run.behaviors[0] if run.behaviors else None
    behaviors = _behaviors(run, _behaviors_width(width) - 1, glyphs)
    own = (" (this)" if _name_width(width) >= 24 else "*") if is_own else ""
    name = left(safe_text(run.run_id), _name_width(width) - 1 - len(own), glyphs.ellipsis).rstrip() + own
    age = "-" if run.last_event_at is None else duration(now - run.last_event_at)
    took = "-" if run.elapsed_seconds is None else duration(run.elapsed_seconds)
    sign, tone = state_sign(run, glyphs)
    best, last = (None, None) if first is None else (first.best_return, first.last_return)
    return line(
        Span("  " if mark is None else f"{mark + 1} ", "text" if mark is None else SERIES[mark]),
        Span(left(name, _name_width(width)), "strong" if is_own else "text"),
        Span(left(f"{sign} {run.state}", 14), tone),
        Span(left(behaviors, _behaviors_width(width)), "dim"),
        f"{right(_progress(first), 10)}{right(number(best), 10)}{right(number(last), 9)}",
        Span(right(age, 7) + (right(took, 8) if is_wide(width) else ""), "dim"),
    )


def is_wide(width: int) -> bool:
    """Whether there is room for how long each run took."""
    return width >= 95


def _behaviors_width(width: int) -> int:
    return 20 if is_wide(width) else 11


def _name_width(width: int) -> int:
    others = 2 + 14 + _behaviors_width(width) + 10 + 10 + 9 + 7 + (8 if is_wide(width) else 0)
    return max(8, min(40, width - others))


def _behaviors(run: RunSummary, width: int, glyphs: Glyphs) -> str:
    """The name of the first one, and how many others there are."""
    if not run.behaviors:
        return "-"
    others = f" +{len(run.behaviors) - 1}" if len(run.behaviors) > 1 else ""
    return fit(safe_text(run.behaviors[0].name), width - len(others), glyphs.ellipsis) + others


def state_sign(run: RunSummary, glyphs: Glyphs) -> tuple[str, Tone]:
    """The sign and the color of a run's state."""
    if run.state == "interrupted":
        return glyphs.warning, "warning"
    if run.state == "unknown":
        return "?", "dim"
    return glyphs.of(run.state), state_tone(run.state)


def _progress(behavior: BehaviorSummary | None) -> str:
    """Steps, and how much of max_steps that is."""
    if behavior is None:
        return "-"
    return count(behavior.step) + (f"{percent(behavior.step, behavior.max_steps):>4}%" if behavior.max_steps else "")


class RunDetails(Pane):
    """All about the run below the cursor of that list."""

    seconds = 5.0

    def __init__(self, runs: RunsList) -> None:
        super().__init__()
        self._list = runs

    def inputs(self, frame: Frame) -> object:
        """The run."""
        return self._run(frame)

    def heading(self, frame: Frame) -> str:
        """Its name."""
        return "Details"

    def wanted_height(self, frame: Frame, width: int) -> int:
        """All of it."""
        return len(self.lines(frame, width, 0))

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Where it is, how it stands, and each of its behaviors."""
        run = self._run(frame)
        if run is None:
            return [line(Span(" no run below the cursor", "dim"))]
        is_own = frame.view.run is not None and frame.view.run.run_id == run.run_id
        began = "" if run.started_at is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started_at))
        told = [
            ("path", safe_text(run.path)),
            ("state", _state_words(run, is_own) + (f"; began {began}" if began else "")),
            *((safe_text(behavior.name), _words(behavior)) for behavior in run.behaviors),
        ]
        if run.note:
            told.insert(2, ("unread", safe_text(run.note)))
        return [row for label, text in told for row in labelled(label, text, width)]

    def _run(self, frame: Frame) -> RunSummary | None:
        entry = self._list.current(frame)
        return self._list.found(entry.key) if entry is not None else None


def _state_words(run: RunSummary, is_own: bool) -> str:
    words = {
        "interrupted": "interrupted: its process has gone without telling an end",
        "unknown": "unknown: its events tell nothing",
    }.get(run.state, run.state)
    ended = f" with exit code {run.exit_code}" if run.exit_code is not None and not run.is_alive else ""
    took = "" if run.elapsed_seconds is None else f" after {duration(run.elapsed_seconds)}"
    lives = "; the run on this screen" if is_own else "; a process writes to it" if run.is_alive else ""
    return f"{words}{ended}{took}{lives}"


def _words(behavior: BehaviorSummary) -> str:
    algorithm = f"{behavior.algorithm.upper()}, " if behavior.algorithm else ""
    best, last = number(behavior.best_return), number(behavior.last_return)
    steps = count(behavior.step) + (f" of {count(behavior.max_steps)}" if behavior.max_steps else "")
    return f"{safe_text(algorithm)}step {steps}, mean of 100 episodes {last}, best checkpoint {best}"
