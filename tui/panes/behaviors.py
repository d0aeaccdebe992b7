"""The table of behaviors: one row each, columns as many as fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rich.cells import cell_len

from engine.session.text import safe_text
from engine.session.view import BehaviorView
from tui.charts.sparkline import sparkline, trend
from tui.glyphs import Glyphs
from tui.lines import Line, Span, Tone, line, state_tone
from tui.panes.base import Frame, Pane, series_tone
from tui.text import count, left, number, percent, right

NAME_WIDTH = 24
MARKER_WIDTH = 5
STATE_WIDTH = 10


@dataclass(frozen=True, slots=True)
class Column:
    """A column of fixed width, flush right. cell: its text for a behavior."""

    title: str
    width: int
    cell: Callable[[BehaviorView], str]


# By importance: the later ones come only on wider screens. Shown in the order of COLUMN_ORDER.
COLUMNS = (
    Column("steps", 6, lambda b: count(b.step)),
    Column("reward", 8, lambda b: number(b.mean_return)),
    Column("algo", 4, lambda b: safe_text(b.algorithm).upper()),
    Column("done", 4, lambda b: f"{percent(b.step, b.max_steps)}%" if b.max_steps else ""),
    Column("of", 5, lambda b: count(b.max_steps) if b.max_steps else ""),
    Column("st/s", 5, lambda b: count(b.steps_per_second) if b.steps_per_second else "-"),
    Column("best", 8, lambda b: number(b.best_return)),
    Column("length", 6, lambda b: number(b.mean_length) if b.mean_length is not None else "-"),
    Column("episodes", 8, lambda b: count(b.num_episodes)),
    Column("updates", 7, lambda b: count(b.num_updates)),
)
COLUMN_ORDER = ("algo", "steps", "of", "done", "st/s", "episodes", "updates", "length", "best", "reward")


class BehaviorsPane(Pane):
    """A header and a row per behavior; scrolls to keep the selected one in sight."""

    def heading(self, frame: Frame) -> str:
        """How many there are, and which one is selected."""
        number_of = len(frame.view.behaviors)
        return f"Behaviors {frame.selected + 1}/{number_of}" if number_of > 1 else "Behavior"

    def wanted_height(self, frame: Frame, width: int) -> int:
        """The header and every behavior."""
        return 1 + max(1, len(frame.view.behaviors))

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The table."""
        behaviors = list(frame.view.behaviors.values())
        if not behaviors:
            return [line(), line(Span(f"  {frame.glyphs.waiting} waiting for the first behavior", "wait"))]
        layout = fit_columns(width, max(cell_len(safe_text(b.name)) for b in behaviors))
        first = first_visible(frame.selected, len(behaviors), height - 1)
        shown = behaviors[first : first + height - 1]
        rows = [row(b, i, i == frame.selected, layout, frame.glyphs) for i, b in enumerate(shown, first)]
        return [header(layout), *rows]


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Widths that fill one line: name, columns in their order, sparkline (0: none)."""

    name_width: int
    columns: tuple[Column, ...]
    sparkline_width: int


def fit_columns(width: int, longest_name: int) -> TableLayout:
    """The most important columns that leave room for a name and a sparkline."""
    name_width = min(max(longest_name, 9), NAME_WIDTH if width >= 110 else 14)
    room = width - MARKER_WIDTH - name_width - STATE_WIDTH - 3  # 3: the trend and its blanks
    chosen: list[str] = []
    for column in COLUMNS:
        if room - (column.width + 1) < (2 if len(chosen) < 3 else 10 if len(chosen) < 5 else 18):
            break
        chosen.append(column.title)
        room -= column.width + 1
    columns = tuple(c for title in COLUMN_ORDER for c in COLUMNS if c.title == title and title in chosen)
    spare = max(0, room - 40)  # beyond 40 cells a longer name says more than a longer sparkline
    grown = min(max(longest_name - name_width, 0), spare)
    return TableLayout(name_width + grown, columns, max(0, room - grown - 2))


def header(layout: TableLayout) -> Line:
    """The titles of the columns."""
    titles = "".join(" " + right(column.title, column.width) for column in layout.columns)
    trend_title = left("trend", layout.sparkline_width) if layout.sparkline_width >= 5 else " " * layout.sparkline_width
    return line(Span(f"   # {left('behavior', layout.name_width)}{titles}   {trend_title}  state", "dim"))


def row(behavior: BehaviorView, index: int, is_selected: bool, layout: TableLayout, glyphs: Glyphs) -> Line:
    """One behavior. Its sign and word of state stand at the end."""
    name = left(safe_text(behavior.name), layout.name_width, glyphs.ellipsis)
    values = np.array(behavior.returns.ys)
    figures = "".join(" " + right(column.cell(behavior), column.width, glyphs.ellipsis) for column in layout.columns)
    return line(
        Span(f" {glyphs.marker if is_selected else ' '}", "accent"),
        Span(f"{index + 1:2} ", "dim"),
        Span(name, "strong" if is_selected else "text"),
        Span(figures, "strong" if is_selected else "text"),
        Span(" "),
        _trend(trend(values), glyphs),
        Span(" "),
        Span(sparkline(values, layout.sparkline_width, glyphs.levels), series_tone(index)),
        Span("  "),
        Span(f"{glyphs.of(behavior.state)} {behavior.state}", state_tone(behavior.state)),
    )


def _trend(direction: int, glyphs: Glyphs) -> Span:
    tone: Tone = "good" if direction > 0 else "warning" if direction < 0 else "dim"
    return Span(glyphs.rising if direction > 0 else glyphs.falling if direction < 0 else " ", tone)


def first_visible(selected: int, number_of: int, room: int) -> int:
    """Index of the first row shown, so that the selected one is in sight and no row stays empty needlessly."""
    return max(0, min(selected - room // 2, number_of - room))
