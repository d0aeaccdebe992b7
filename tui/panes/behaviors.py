"""The table of behaviors: one row each, columns as many as fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from rich.cells import cell_len

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.group_tags import GROUP_RETURN
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, Tone, line, state_tone
from rl_tui.tui.drawing.text import count, duration, left, number, percent, right
from rl_tui.tui.keys.keymap import Place
from rl_tui.tui.panes.base import BEAT, Frame, series_tone
from rl_tui.tui.panes.environments import awaited_for, awaited_of_user, restarting_forms
from rl_tui.tui.panes.league_words import is_resting, rating_text
from rl_tui.tui.panes.lesson_words import lessons_decided_by
from rl_tui.tui.panes.list import Entry, ListPane, filtered
from rl_tui.tui.panes.row_trends import RowTrend, RowTrends

NAME_WIDTH = 24
MARKER_WIDTH = 5
STATE_WIDTH = 10
LEAST_SPARKLINE, LONGEST_SPARKLINE = 4, 40  # a shorter one shows no trend
AWAITED_SECONDS = 3.0  # without a step, after which that is worth a word


@dataclass(frozen=True, slots=True)
class Column:
    """A column of fixed width, flush right. cell: its text for a behavior; exists: whether a behavior has it at all."""

    title: str
    width: int
    cell: Callable[[BehaviorView, RunView], str]
    exists: Callable[[BehaviorView, RunView], bool] = lambda *_: True


# By importance: the later ones come only on wider screens. Shown in the order of COLUMN_ORDER.
COLUMNS = (
    Column("steps", 6, lambda b, _: count(b.step)),
    Column("elo", 5, lambda b, _: rating_text(b.rating), lambda b, _: b.plays_itself or b.rating is not None),
    Column("mean 100", 8, lambda b, _: number(b.mean_return), lambda b, _: b.has_returns),
    Column("group", 8, lambda b, _: number(b.metrics.get(GROUP_RETURN)), lambda b, _: GROUP_RETURN in b.metrics),
    Column("done", 4, lambda b, _: f"{percent(b.step, b.max_steps)}%" if b.max_steps else ""),
    Column(
        "eval",
        8,
        lambda b, _: number(b.evaluation.mean_return if b.evaluation else None),
        lambda b, _: bool(b.evaluations),
    ),
    Column("lesson", 6, lambda b, view: lesson_of(b, view) or "-", lambda b, view: bool(lesson_of(b, view))),
    Column("algo", 4, lambda b, _: algorithm_of(b), lambda _, view: not has_long_algorithm(view)),
    Column("trainer", 7, lambda b, _: algorithm_of(b), lambda _, view: has_long_algorithm(view)),
    Column("max", 5, lambda b, _: count(b.max_steps) if b.max_steps else ""),
    Column("st/s", 5, lambda b, _: count(b.steps_per_second) if b.steps_per_second else "-"),
    Column("best ckpt", 9, lambda b, _: number(b.best_return), lambda b, _: b.best_loss is None),
    Column("best loss", 9, lambda b, _: number(b.best_loss), lambda b, _: b.best_loss is not None),
    Column(
        "length",
        6,
        lambda b, _: number(b.mean_length) if b.mean_length is not None else "-",
        lambda b, _: b.has_returns,
    ),
    Column("episodes", 8, lambda b, _: count(b.num_episodes), lambda b, _: b.has_returns),
    Column("updates", 7, lambda b, _: count(b.num_updates)),
    Column("entropy", 8, lambda b, _: number(b.metrics.get("Policy/Entropy"))),
    Column("v loss", 8, lambda b, _: number(b.metrics.get("Losses/Value Loss"))),
)
COLUMN_ORDER = (
    "algo", "trainer", "steps", "max", "done", "st/s", "episodes", "updates", "lesson", "length", "entropy", "v loss",
    "eval", "best loss", "best ckpt", "group", "mean 100", "elo",
)  # fmt: skip


class BehaviorsPane(ListPane, inherit_bindings=False):
    """A header and a row per behavior. Its cursor is the selected behavior, which the screen's own keys move."""

    topic = "behaviors"
    places: tuple[Place, ...] = ()
    seconds = BEAT
    cursor_width = 0
    wheel_entries = 1

    def __init__(self) -> None:
        super().__init__()
        self._table = NO_COLUMNS
        self._trends = RowTrends()

    def inputs(self, frame: Frame) -> object:
        """The states, the warnings and the filter."""
        states = [(b.state, b.name, b.max_steps) for b in frame.view.behaviors.values()]
        waits = awaited_of_user(frame.view), restarting_forms(frame.view)
        return states, waits, frame.state.filters.get(self.topic), tuple(frame.view.warnings)

    def heading(self, frame: Frame) -> str:
        """Which one is selected, of how many."""
        number_of = len(frame.view.behaviors)
        if number_of < 2:
            return "Behavior"
        if frame.behavior is not None and not self._is_in_sight(frame):
            return f"Behaviors {frame.glyphs.dot} {safe_text(frame.behavior.name)} is selected but filtered out"
        return f"Behaviors {frame.selected + 1}/{number_of}"

    def header(self, frame: Frame, width: int) -> Line | None:
        """The titles of the columns."""
        return header(self._table) if frame.view.behaviors else line()

    def empty(self, frame: Frame) -> str:
        """The run has not named any yet."""
        return f"{frame.glyphs.waiting} waiting for the first behavior"

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """Every behavior in the order in which it appeared; found by its name, algorithm and state."""
        return [
            Entry(
                key=behavior.name,
                text=f"{behavior.name} {behavior.algorithm} {behavior.state}",
                draw=partial(self._draw_row, frame, index, behavior),
            )
            for index, behavior in enumerate(frame.view.behaviors.values())
        ]

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The table."""
        self._table = layout_of(frame.view, width) if frame.view.behaviors else NO_COLUMNS
        return super().lines(frame, width, height)

    def _draw_row(self, frame: Frame, index: int, behavior: BehaviorView, width: int) -> Line:
        course = self._trends.of(behavior, self._table.sparkline_width, frame.glyphs.levels, frame.now)
        return row(behavior, index, frame, self._table, course)

    def _row(self, spans: Line, is_current: bool, frame: Frame) -> Line:
        return spans  # the selected one is marked even without the focus

    def _index(self, frame: Frame, shown: Sequence[Entry]) -> int:
        selected = frame.behavior.name if frame.behavior else None
        return next((at for at, entry in enumerate(shown) if entry.key == selected), 0)

    def _go(self, index: int) -> None:
        assert self._frame is not None
        self._frame.state.selected = list(self._frame.view.behaviors).index(self._shown[index].key)
        self.call_later(self.run_action, "screen.redraw")

    def _is_in_sight(self, frame: Frame) -> bool:
        pattern = frame.state.filters.get(self.topic, "")
        shown = filtered(self.entries(frame), pattern) if pattern else []
        return not pattern or any(frame.behavior and entry.key == frame.behavior.name for entry in shown)


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Widths that fill one line: name, columns in their order, sparkline (0: none)."""

    name_width: int
    columns: tuple[Column, ...]
    sparkline_width: int


NO_COLUMNS = TableLayout(0, (), 0)


def layout_of(view: RunView, width: int) -> TableLayout:
    """The columns for these behaviors in `width`."""
    behaviors = view.behaviors.values()
    possible = [column for column in COLUMNS if any(column.exists(b, view) for b in behaviors)]
    return fit_columns(width, max(cell_len(safe_text(b.name)) for b in behaviors), possible)


def fit_columns(width: int, longest_name: int, possible: Sequence[Column]) -> TableLayout:
    """The most important of the columns that leave room for a name and a sparkline."""
    name_width = min(max(longest_name, 9), NAME_WIDTH if width >= 110 else 14)
    room = width - MARKER_WIDTH - name_width - STATE_WIDTH - 4  # 4: the trend's sign and the blanks around it
    chosen: list[str] = []
    for column in possible:
        if room - (column.width + 1) < (
            2 if len(chosen) < 2 else 6 if len(chosen) < 3 else 10 if len(chosen) < 5 else 18
        ):
            break
        chosen.append(column.title)
        room -= column.width + 1
    columns = tuple(c for title in COLUMN_ORDER for c in possible if c.title == title and title in chosen)
    grown = min(max(longest_name - name_width, 0), max(0, room - LONGEST_SPARKLINE))
    sparkline_width = min(room - grown - 2, LONGEST_SPARKLINE)
    return TableLayout(name_width + grown, columns, sparkline_width if sparkline_width >= LEAST_SPARKLINE else 0)


def header(layout: TableLayout) -> Line:
    """The titles of the columns."""
    titles = "".join(" " + right(column.title, column.width) for column in layout.columns)
    width = layout.sparkline_width
    trend_title = right("trend, whole run" if width >= 16 else "trend" if width >= 5 else "", width)
    return line(Span(f"   # {left('behavior', layout.name_width)}{titles}   {trend_title}  state", "dim"))


def row(behavior: BehaviorView, index: int, frame: Frame, layout: TableLayout, course: RowTrend) -> Line:
    """One behavior."""
    glyphs, is_selected = frame.glyphs, index == frame.selected
    cells = [(column, right(column.cell(behavior, frame.view), column.width)) for column in layout.columns]
    name = left(safe_text(behavior.name), layout.name_width, glyphs.ellipsis)
    return line(
        Span(f" {glyphs.marker if is_selected else ' '}", "accent"),
        Span(f"{index + 1:>2} ", series_tone(index)),
        Span(name, "strong" if is_selected else "text"),
        *(Span(f" {text}", _tone(column)) for column, text in cells),
        Span(" "),
        direction_sign(course.direction, glyphs),
        Span(" "),
        Span(course.cells, series_tone(index) if is_selected else "dim"),
        Span("  "),
        state_sign(behavior, frame),
    )


def _tone(column: Column) -> Tone:
    return "dim" if column.title in ("algo", "of", "updates", "episodes") else "text"


def direction_sign(direction: int, glyphs: Glyphs) -> Span:
    """An arrow; blank for a level or unknown course."""
    tone: Tone = "good" if direction > 0 else "warning" if direction < 0 else "dim"
    return Span(glyphs.rising if direction > 0 else glyphs.falling if direction < 0 else " ", tone)


def state_sign(behavior: BehaviorView, frame: Frame) -> Span:
    """The state in a sign and a word; a behavior with a warning has the warning's sign."""
    if frame.view.is_absent(behavior):
        return Span(f"{frame.glyphs.waiting} absent", "dim")
    if behavior.state == "training" and awaited_for(behavior, frame.view):
        return Span(f"{frame.glyphs.waiting} waiting", "wait")
    if awaited_words(behavior, frame):
        return _silence_sign(behavior, frame.glyphs)
    word = "filling" if behavior.is_filling else "resting" if is_resting(behavior) else behavior.state
    if is_warned(behavior, frame.view) and behavior.state in ("training", "paused"):
        return Span(f"{frame.glyphs.warning} {word}", "warning")
    if behavior.is_filling or is_resting(behavior):
        return Span(f"{frame.glyphs.waiting} {word}", "wait")
    return Span(f"{frame.glyphs.of(behavior.state)} {word}", state_tone(behavior.state))


def _silence_sign(behavior: BehaviorView, glyphs: Glyphs) -> Span:
    """What it does instead of steps."""
    if behavior.waits_for == "environment":
        return Span(f"{glyphs.warning} no step", "warning")
    word = "updating" if behavior.waits_for == "update" else "eval"
    return Span(f"{glyphs.waiting} {word}", "wait")


def awaited_words(behavior: BehaviorView, frame: Frame) -> str:
    """ "no step for 12s"; what that is where no step is normal; "" while steps come."""
    since = behavior.silent_since
    if since is None or behavior.state != "training" or awaited_for(behavior, frame.view):
        return ""
    seconds = frame.time - since
    doing = {"update": "updating", "evaluation": "evaluating"}.get(behavior.waits_for, "no step")
    return f"{doing} for {duration(seconds)}" if seconds >= AWAITED_SECONDS else ""


def is_warned(behavior: BehaviorView, view: RunView) -> bool:
    """Whether something looks wrong with it now."""
    return any(name == behavior.name for _, name in view.warnings)


def algorithm_of(behavior: BehaviorView) -> str:
    """The name of its trainer."""
    return safe_text(behavior.algorithm).upper()


def has_long_algorithm(view: RunView) -> bool:
    """Whether a trainer's name needs the wider of two columns."""
    return any(cell_len(algorithm_of(behavior)) > 4 for behavior in view.behaviors.values())


def lesson_of(behavior: BehaviorView, view: RunView) -> str:
    """The lesson of the parameter that it decides on, as 3/5; "" without any. Of several, the one least far."""
    decided = [(status.lesson, status.num_lessons) for _, status in lessons_decided_by(behavior, view)]
    lesson, num_lessons = min(decided, key=lambda each: each[0] / each[1], default=(0, 0))
    return f"{lesson}/{num_lessons}" if num_lessons else ""


def mean_words(behavior: BehaviorView) -> str:
    """What its mean return is of: fewer than a hundred episodes in the beginning."""
    return f"mean of {behavior.recent.count} episode{'s' if behavior.recent.count != 1 else ''}"


def first_visible(selected: int, number_of: int, room: int) -> int:
    """Index of the first row shown, so that the selected one is visible and no row stays empty needlessly."""
    return max(0, min(selected - room // 2, number_of - room))
