"""Shares of a whole as bars: one of them, and percent over time.  Shapes: N samples, C columns."""

from __future__ import annotations

import math

from rl_tui.engine.session.history import History
from rl_tui.tui.charts.arrays import Floats, Indices, np
from rl_tui.tui.charts.curve import Range
from rl_tui.tui.charts.raster import BRAILLE, COLUMNS_IN_CELL, ROWS_IN_CELL, Bars, braille_codes, dot_rows
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, Tone, line

GUTTER = 5
SPANS = (60.0, 300.0, 900.0, 3600.0)  # seconds; a longer one is a power of two of the last


def time_span(seconds: float, longest: float = math.inf) -> float:
    """The shortest round span that covers so many seconds, so that a chart of it rarely changes its scale."""
    for span in SPANS:
        if seconds <= span or span >= longest:
            return span
    return min(longest, float(SPANS[-1] * 2 ** math.ceil(math.log2(seconds / SPANS[-1]))))


def percent_chart(history: History, end: float, span: float, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """`height` lines of `width` cells: the mean of each column in the `span` seconds before `end`, about.

    The columns stand still until one of them is over. Nothing is drawn where there is no room or no sample.
    """
    num_columns = (width - GUTTER) * (COLUMNS_IN_CELL if glyphs.braille else 1)
    if num_columns < 1 or height < 1 or not len(history):
        return []
    column = span / num_columns
    last = math.ceil(end / column) * column
    heights = column_means(np.array(history.times), np.array(history.mean), (last - span, last), num_columns)
    points = _braille(heights, height) if glyphs.braille else _levels(heights, height, glyphs.levels + glyphs.full)
    rows = [row.tobytes().decode("utf-32-le") for row in points.astype("<u4")]
    return [line(Span(_scale(at, height, glyphs), "dim"), Span(row, "accent")) for at, row in enumerate(rows)]


def _braille(percents: Floats, height: int) -> Indices:
    """i64[height, C / 2]: characters of columns that are filled up to their percent, with a dot at least."""
    num_dots = height * ROWS_IN_CELL
    tops = dot_rows(percents, (0.0, 100.0), num_dots)
    drawn = Bars(np.where(np.isnan(tops), num_dots, tops).astype(np.int64), np.full(len(percents), num_dots))
    codes = braille_codes(drawn, height)
    return np.asarray(np.where(codes == 0, ord(" "), codes.astype(np.int64) + BRAILLE))


def _levels(percents: Floats, height: int, levels: str) -> Indices:
    """i64[height, C]: the same with signs from nearly empty to full, since a cell has no dots: 1 % fills none."""
    tops = np.nan_to_num(np.clip(percents, 0.0, 100.0), nan=-1.0) / 100 * height
    shares = tops - np.arange(height)[::-1, None]  # of each cell that is filled
    signs = np.array([ord(" "), *map(ord, levels)])
    at = np.clip(np.floor(shares * (len(levels) - 1)).astype(np.int64), 0, len(levels) - 1) + 1
    is_drawn = (shares > 0) | ((tops == 0) & (np.arange(height)[:, None] == height - 1))
    return np.asarray(np.where(is_drawn, signs[at], ord(" ")))


def column_means(xs: Floats, ys: Floats, x_range: Range, num_columns: int) -> Floats:
    """f64[num_columns]: means of the finite values, on a line between the columns that have one, NaN beyond them.

    xs, ys: f64[N].
    """
    start, end = x_range
    inside = np.isfinite(ys) & (xs >= start) & (xs <= end)
    at = np.minimum(((xs[inside] - start) / (end - start) * num_columns).astype(np.int64), num_columns - 1)
    totals, numbers = np.bincount(at, ys[inside], num_columns), np.bincount(at, minlength=num_columns)
    known = np.flatnonzero(numbers)
    if len(known) == 0:
        return np.full(num_columns, np.nan)
    means = totals[known] / numbers[known]
    return np.asarray(np.interp(np.arange(num_columns), known, means, left=np.nan, right=np.nan), dtype=np.float64)


def _scale(row: int, num_rows: int, glyphs: Glyphs) -> str:
    if num_rows > 1 and row in (0, num_rows - 1):
        return f"{100 if row == 0 else 0:>3}{glyphs.tick} "
    return f"   {glyphs.wall} "


def bar(share: float, width: int, glyphs: Glyphs, tone: Tone) -> Line:
    """`width` cells, filled by `share` (0 to 1; anything else is taken to the nearer end, NaN to 0)."""
    num_filled = round((0.0 if math.isnan(share) else min(1.0, max(0.0, share))) * width)
    return line(Span(glyphs.bar * num_filled, tone), Span(glyphs.bar_rest * (width - num_filled), "faint"))
