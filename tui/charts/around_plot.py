"""What stands around the curves of a chart: values at the left, lines at them, the x axis below.

Shapes: R text rows, C text columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rl_tui.tui.charts.arrays import Codes, Points, np
from rl_tui.tui.charts.curve import Range
from rl_tui.tui.charts.figure import Figure
from rl_tui.tui.charts.raster import dot_rows
from rl_tui.tui.charts.scale import Scale
from rl_tui.tui.charts.x_axis import x_ticks
from rl_tui.tui.charts.y_ticks import LABEL_WIDTH, Rows
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, Tone, line, merged
from rl_tui.tui.drawing.text import right

GUTTER = LABEL_WIDTH + 2  # cells left of the plot: a value, a blank and the axis
CELLS_TO_A_LABEL = 10  # of the x axis
LABEL: Tone = "text"  # of the x axis; nothing else on it has that tone


def value_labels(scale: Scale, rows: Rows) -> dict[int, str]:
    """By row: the value whose curve is drawn there."""
    ticks = scale.ticks(max(2, rows.num // 3))
    places = scale.places(np.array([tick.at for tick in ticks]))
    labels: dict[int, str] = {}
    for tick, dot_row in zip(ticks, dot_rows(places, scale.y_range, rows.num * rows.dots).tolist(), strict=True):
        labels.setdefault(int(dot_row) // rows.dots, tick.label)
    return labels


def value_axis(labels: Mapping[int, str], num_rows: int, glyphs: Glyphs, tone: Tone) -> list[Line]:
    """The cells left of each row."""
    wall = line(Span(" " * (GUTTER - 1) + glyphs.wall, "dim"))
    return [
        line(Span(right(labels[row], LABEL_WIDTH), tone), Span(" " + glyphs.tick, "dim")) if row in labels else wall
        for row in range(num_rows)
    ]


def rule(chars: Points, owners: Codes, rows: Iterable[int], glyphs: Glyphs, owner: int) -> None:
    """A thin line in the blank cells of these rows. chars: u32[R, C]; owners: u8[R, C]; owner: of the line."""
    for row in rows:
        blank = chars[row] == ord(" ")
        chars[row, blank], owners[row, blank] = ord(glyphs.rule), owner


def column_of(x: float | None, x_range: Range, width: int) -> int | None:
    """The cell in which x lies; None when it is hidden."""
    start, end = x_range
    if x is None or not start <= x <= end:
        return None
    return min(width - 1, int((x - start) / (end - start) * width))


def step_axis(figure: Figure, width: int, glyphs: Glyphs, broken: Sequence[int], cross: int | None) -> Line:
    """The x axis: a label begins at its place; a mark stands at its own, or at the next free one beside a label."""
    shown = figure.viewport.shown
    row = [Span(glyphs.floor, "dim")] * width
    for tick in x_ticks(shown, figure.x_axis, max(1, width // CELLS_TO_A_LABEL)):
        at = column_of(tick.at, shown, width)
        if at is not None and at + len(tick.label) <= width:
            row[at : at + len(tick.label)] = [Span(char, LABEL) for char in tick.label]
    for mark in figure.marks:
        at = column_of(mark.x, shown, width)
        if at is not None:
            row[_free(row, at, glyphs)] = Span(mark.glyph, mark.tone)
    for at in broken:
        row[_free(row, at, glyphs)] = Span(glyphs.failed, "bad")
    if cross is not None and row[cross].tone != LABEL:
        row[cross] = Span(glyphs.tick, "accent")
    return line(Span(" " * (GUTTER - 1) + glyphs.corner, "dim"), *merged(row))


def _free(row: Sequence[Span], at: int, glyphs: Glyphs) -> int:
    """The place itself unless a label is there; then the nearest that has neither label nor mark, if there is one."""
    if row[at].tone != LABEL:
        return at
    empty = [i for i, span in enumerate(row) if span.text == glyphs.floor]
    return min(empty, key=lambda i: abs(i - at), default=at)
