"""A figure as lines of text.  Shapes: R text rows, C text columns, D dot columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from rl_tui.tui.charts.around_plot import GUTTER, column_of, rule, step_axis, value_axis, value_labels
from rl_tui.tui.charts.arrays import Codes, Points, np
from rl_tui.tui.charts.curve import Range
from rl_tui.tui.charts.figure import Figure, Sampled, Samples, has_one_line, sample
from rl_tui.tui.charts.outside import edges, ends
from rl_tui.tui.charts.raster import BRAILLE, Bars, bars, braille_codes, dot_rows, filled
from rl_tui.tui.charts.scale import Scale
from rl_tui.tui.charts.y_ticks import Rows
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, Tone, line

ASCII_LINES = "*+ox#@%&"
DASHES = ((1, 0), (2, 2), (5, 3), (1, 2), (4, 1), (8, 4))  # dot columns drawn and left out, in turn
CELLS_TO_A_POINT = 3  # on average at least, or signs would hide the line between them
BAND_DOTS = (0x21, 0x0C)  # two of a cell's eight dots, so that the line stands out, and others for the next curve
# Without color bands differ by their texture, given for even and odd columns of cells: sparse dots, upright bars, short
# dashes, single dots, and last dense dots, in which a line is hard to see.
TEXTURES = ((0x21, 0x21), (0x47, 0x00), (0x09, 0x00), (0x02, 0x00), (0xA5, 0xA5))
ASCII_BANDS = ".:'-,"
Scales: TypeAlias = dict[str, Scale]  # by metric
BLANK, SPREAD, FIRST_CURVE = 0, 1, 2  # what a cell belongs to


@dataclass(frozen=True, slots=True)
class ChartStyle:
    """How a chart is drawn. has_color: tones are distinguishable; has_rules: thin lines at the values, behind all."""

    glyphs: Glyphs
    has_color: bool = True
    has_rules: bool = False

    @property
    def dots(self) -> tuple[int, int]:
        """Columns and rows of dots in a cell."""
        return (2, 4) if self.glyphs.braille else (1, 1)

    @property
    def shows_spread(self) -> bool:
        """Whether every value can be drawn behind a smoothed line and still be distinguished from it."""
        return self.has_color or not self.glyphs.braille


@dataclass(slots=True)
class Plot:
    """Cells of the plot: chars u32[R, C] and whose they are, u8[R, C]."""

    chars: Points
    owners: Codes


def sample_for(figure: Figure, width: int, height: int, style: ChartStyle) -> Samples:
    """The curves in the columns of a chart of that size, and scales with ticks for its rows."""
    rows = Rows(max(1, height - 1), style.dots[1])
    return sample(figure, max(1, width - GUTTER) * style.dots[0], style.shows_spread, rows)


def draw(figure: Figure, width: int, height: int, style: ChartStyle, samples: Samples | None = None) -> list[Line]:
    """`height` lines of at most `width` cells; empty when there is no visible finite value or no room.

    samples: those for that size, if they are there already.
    """
    plot_width, plot_height = width - GUTTER, height - 1
    if plot_width < 1 or plot_height < 1:
        return []
    drawn, by_metric = samples = samples or sample_for(figure, width, height, style)
    front = next((each.curve for each in drawn if each.curve.metric in by_metric), None)
    if front is None:
        return []
    plot = _plot(drawn, by_metric, plot_width, plot_height, style)
    _sign_points(plot, drawn, by_metric, figure.viewport.shown, style)
    if figure.clips or figure.y_ranges:
        _mark_edges(plot, drawn, by_metric, style)
    if len(figure.curves) > 1:
        _label_ends(plot, drawn, by_metric, style)
    tones: list[Tone] = ["text", "faint", *(each.curve.tone for each in drawn)]
    shown = figure.viewport.shown
    cross = column_of(figure.crosshair, shown, plot_width)
    labels = value_labels(by_metric[front.metric], Rows(plot_height, style.dots[1]))
    gutter = value_axis(labels, plot_height, style.glyphs, front.tone if samples.has_own_scales else "dim")
    if style.has_rules and style.glyphs.braille:  # in ASCII they would look like curves
        rule(plot.chars, plot.owners, labels, style.glyphs, SPREAD)
    is_broken = np.any([each.spread.broken for each in drawn], axis=0)
    broken = sorted(set((np.flatnonzero(is_broken) // style.dots[0]).tolist()))
    rows = _rows(plot, tones, cross, style.glyphs)
    axis = step_axis(figure, plot_width, style.glyphs, broken, cross)
    return [*(line(*left, *row) for left, row in zip(gutter, rows, strict=True)), axis]


def _plot(drawn: Sequence[Sampled], by_metric: Scales, width: int, height: int, style: ChartStyle) -> Plot:
    """The curves, the first in front; where two cross, a cell has the dots of both and the color of the front one."""
    columns, rows = style.dots
    shows_spread = style.shows_spread and has_one_line(each.curve for each in drawn)
    codes, owners = np.zeros((height, width), np.uint8), np.zeros((height, width), np.uint8)
    band_signs = _draw_bands(codes, owners, drawn, by_metric, style)
    for at in reversed(range(len(drawn))):
        each = drawn[at]
        scale = by_metric.get(each.curve.metric)
        if scale is None:
            continue
        low, high = scale.places(each.spread.low), scale.places(each.spread.high)
        if each.line is not None:
            if shows_spread:
                spread = _codes(bars(low, high, scale.y_range, height * rows), height, style)
                behind = (spread > 0) & (owners == BLANK)
                codes[behind], owners[behind] = spread[behind], SPREAD
            low = high = scale.places(each.line)
        dots = bars(low, high, scale.y_range, height * rows)
        dash = each.curve.dash if style.has_color else at
        if dash and style.glyphs.braille:
            on, off = DASHES[dash % len(DASHES)]
            dots.past[np.arange(width * columns) % (on + off) >= on] = 0
        own = _codes(dots, height, style)
        shown = own > 0
        codes = np.where(shown, np.where(owners >= FIRST_CURVE, codes | own, own), codes)
        owners[shown] = FIRST_CURVE + at
    chars = _chars(codes, owners, style)
    return Plot(np.where((owners == SPREAD) & (band_signs > 0), band_signs, chars).astype(np.uint32), owners)


def band_dots(at: int, style: ChartStyle) -> tuple[int, int]:
    """The dots of a band's cells of braille in even and in odd columns. at: the place of its curve in the figure."""
    dots = BAND_DOTS[at % len(BAND_DOTS)]
    return (dots, dots) if style.has_color else TEXTURES[at % len(TEXTURES)]


def _draw_bands(codes: Codes, owners: Codes, drawn: Sequence[Sampled], by_metric: Scales, style: ChartStyle) -> Points:
    """Sparse dots between low and high of the curves that are bands; where two lie over each other both show.

    Returns the signs that stand for them where there is no braille, u32[R, C], else 0.
    """
    height, width = codes.shape
    signs = np.zeros((height, width), np.uint32)
    is_odd = np.arange(width) % 2 == 1
    for at in reversed(range(len(drawn))):
        each, scale = drawn[at], by_metric.get(drawn[at].curve.metric)
        if not each.curve.is_band or scale is None:
            continue
        low, high = scale.places(each.spread.low), scale.places(each.spread.high)
        area = _codes(bars(low, high, scale.y_range, height * style.dots[1]), height, style)
        if style.glyphs.braille:
            even, odd = band_dots(at, style)
            area &= np.where(is_odd, odd, even).astype(np.uint8)
        shown = area > 0
        codes[shown] |= area[shown]
        owners[shown] = FIRST_CURVE + at if style.glyphs.braille else SPREAD
        if not style.glyphs.braille:
            shown &= (signs == 0) | is_odd  # where two lie over each other, their signs alternate
            signs[shown] = ord(ASCII_BANDS[at % len(ASCII_BANDS)])
    return signs


def _codes(dots: Bars, num_rows: int, style: ChartStyle) -> Codes:
    return braille_codes(dots, num_rows) if style.glyphs.braille else filled(dots, num_rows).astype(np.uint8)


def dot_texts(dots: Bars, num_rows: int, style: ChartStyle) -> list[str]:
    """Rows of the characters that show these dots and nothing else; "." stands for them where there is no braille."""
    codes = _codes(dots, num_rows, style)
    owners = np.where(codes > 0, SPREAD, BLANK).astype(np.uint8)
    return [row.tobytes().decode("utf-32-le") for row in _chars(codes, owners, style).astype("<u4")]


def _chars(codes: Codes, owners: Codes, style: ChartStyle) -> Points:
    if style.glyphs.braille:
        return np.where(codes == 0, ord(" "), codes.astype(np.uint32) + BRAILLE).astype(np.uint32)
    signs = " ." + ASCII_LINES
    index = np.where(owners < FIRST_CURVE, owners, FIRST_CURVE + (owners - FIRST_CURVE) % len(ASCII_LINES))
    return np.array([ord(sign) for sign in signs], dtype=np.uint32)[index]


def _sign_points(plot: Plot, drawn: Sequence[Sampled], by_metric: Scales, x_range: Range, style: ChartStyle) -> None:
    """Put a sign on each point of the curves that have points, the front one's above."""
    height, width = plot.chars.shape
    start, end = x_range
    for at in reversed(range(len(drawn))):
        curve, scale = drawn[at].curve, by_metric.get(drawn[at].curve.metric)
        if not curve.has_points or scale is None:
            continue
        shown = (curve.xs >= start) & (curve.xs <= end) & np.isfinite(curve.mean)
        if shown.sum() * CELLS_TO_A_POINT > width:
            continue
        columns = np.minimum(((curve.xs[shown] - start) / (end - start) * width).astype(np.int64), width - 1)
        heights = scale.places(np.clip(curve.mean[shown], scale.bottom, scale.top))  # clipped first: none overflows
        dots = dot_rows(heights, scale.y_range, height * style.dots[1])
        rows = dots.astype(np.int64) // style.dots[1]
        plot.chars[rows, columns], plot.owners[rows, columns] = ord(style.glyphs.evaluation), FIRST_CURVE + at


def _mark_edges(plot: Plot, drawn: Sequence[Sampled], by_metric: Scales, style: ChartStyle) -> None:
    """Where a curve goes on beyond the axis, its cell at the edge points there."""
    for at in reversed(range(len(drawn))):
        each, scale = drawn[at], by_metric.get(drawn[at].curve.metric)
        if scale is None:
            continue
        own = each.spread.low if each.line is None else each.line, each.spread.high if each.line is None else each.line
        for (low, high), owner in ((ends(each), SPREAD), (own, FIRST_CURVE + at)):
            for row, is_beyond, sign in zip((0, -1), edges(low, high, scale), style.glyphs.beyond, strict=True):
                cells = np.unique(np.flatnonzero(is_beyond) // style.dots[0])
                cells = cells[plot.owners[row, cells] <= owner] if owner == SPREAD else cells
                plot.chars[row, cells], plot.owners[row, cells] = ord(sign), owner


def _label_ends(plot: Plot, drawn: Sequence[Sampled], by_metric: Scales, style: ChartStyle) -> None:
    """Put each curve's label behind its last visible dot, or as near to it as there is room.

    A curve without a label, or whose points have it already, gets none.
    """
    columns, rows = style.dots
    height, width = plot.chars.shape
    taken: set[tuple[int, int]] = set()
    for at, each in enumerate(drawn):
        scale = by_metric.get(each.curve.metric)
        values = each.spread.high if each.line is None else each.line
        known = np.flatnonzero(np.isfinite(values))
        if scale is None or each.curve.label in ("", style.glyphs.evaluation) or len(known) == 0:
            continue
        last = known[-1:]
        row = int(dot_rows(scale.places(values[last]), scale.y_range, height * rows)[0]) // rows
        column = min(width - 1, int(last[0]) // columns + 1)
        while (row, column) in taken and column > 0:
            column -= 1
        taken.add((row, column))
        plot.chars[row, column], plot.owners[row, column] = ord(each.curve.label[0]), FIRST_CURVE + at


def _rows(plot: Plot, tones: Sequence[Tone], cross: int | None, glyphs: Glyphs) -> list[Line]:
    """Lines with as few spans as their tones allow: blanks join whatever is before them."""
    height, width = plot.chars.shape
    owners = plot.owners.astype(np.int64)
    tones = [*tones, "accent", "strong"]
    if cross is not None:
        is_curve = owners[:, cross] >= FIRST_CURVE
        plot.chars[:, cross] = np.where(is_curve, plot.chars[:, cross], ord(glyphs.wall))
        owners[:, cross] = np.where(is_curve, len(tones) - 1, len(tones) - 2)
    inked = np.where(plot.chars != ord(" "), np.arange(width), 0)
    owners = np.take_along_axis(owners, np.maximum.accumulate(inked, axis=1), axis=1)
    text = plot.chars.astype("<u4").tobytes().decode("utf-32-le")
    changes = owners.ravel()[1:] != owners.ravel()[:-1]
    changes[width - 1 :: width] = True
    ends = np.append(np.flatnonzero(changes) + 1, height * width)
    whose = owners.ravel()[ends - 1].tolist()
    at = [0, *ends.tolist()]
    spans = [Span(text[a:b], tones[owner]) for a, b, owner in zip(at, at[1:], whose, strict=False)]
    rows = [0, *(np.flatnonzero(ends % width == 0) + 1).tolist()]
    return [tuple(spans[a:b]) for a, b in pairwise(rows)]
