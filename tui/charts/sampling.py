"""Curves reduced to the columns of a chart.  Shapes: N points of a curve, C columns, P points of a line."""

from __future__ import annotations

from typing import NamedTuple

from rl_tui.tui.charts.arrays import Bools, Floats, Indices, np
from rl_tui.tui.charts.curve import Curve, Range
from rl_tui.tui.charts.reducing import LARGEST, extremes


class Columns(NamedTuple):
    """low, high: f64[C], NaN where there is nothing to draw, joined between points; broken bool[C]: a value in the
    column was not finite. extremes: lowest and highest of what is drawn, None where nothing is."""

    low: Floats
    high: Floats
    broken: Bools
    extremes: Range | None


def columns(curve: Curve, x_range: Range, num_columns: int) -> Columns:
    """Lowest and highest value per column: spikes and gaps survive whatever N is."""
    start, end = x_range
    width = max((end - start) / num_columns, 1e-300)
    edges = start + width * np.arange(num_columns + 1)
    borders = np.searchsorted(curve.xs, edges)
    borders[-1] = np.searchsorted(curve.xs, end, side="right")
    occupied = np.flatnonzero(borders[1:] > borders[:-1])
    low, high, is_broken = _reduced(curve, borders, occupied)
    broken = np.zeros(num_columns, dtype=np.bool_)
    broken[occupied] = is_broken
    outside = [(i, (float(curve.xs[i]) - start) / width - 0.5) for i in (borders[0] - 1, borders[-1])
               if 0 <= i < len(curve.xs)]  # fmt: skip
    places = np.concatenate((occupied, [place for _, place in outside]))
    order = np.argsort(places, kind="stable")
    beyond = [_bounded(curve.mean[i]) for i, _ in outside]  # where the line comes from and goes to
    lowest, highest = (polyline(places[order], np.concatenate((v, beyond))[order], num_columns) for v in (low, high))
    drawn = np.isfinite(lowest)
    extremes = (float(lowest[drawn].min()), float(highest[drawn].max())) if drawn.any() else None
    return Columns(lowest, highest, broken, extremes)


def _bounded(value: float) -> float:
    return float(np.clip(value, -LARGEST, LARGEST)) if np.isfinite(value) else np.nan


def _reduced(curve: Curve, borders: Indices, occupied: Indices) -> tuple[Floats, Floats, Bools]:
    """Extremes of the occupied stretches between borders, which are indices into the curve's points."""
    if len(occupied) == 0:
        return np.empty(0), np.empty(0), np.empty(0, dtype=np.bool_)
    points = slice(borders[0], borders[-1])
    starts = borders[occupied] - borders[0]
    low, high, broken = extremes(curve.low[points], curve.high[points], starts)
    if curve.broken is not None:
        broken |= np.add.reduceat(curve.broken[points], starts) > 0
    return low, high, broken


def polyline(at: Floats, values: Floats, num_columns: int) -> Floats:
    """f64[num_columns] of the line through P points; NaN beyond its ends, and between points that a NaN lies between.

    at: f64[P] in columns, not decreasing; values: f64[P]. A visible point shows, however alone it is.
    """
    known = np.isfinite(values)
    if not known.any():
        return np.full(num_columns, np.nan)
    places, heights = at[known], values[known]
    every = np.arange(num_columns, dtype=np.float64)
    line = np.asarray(np.interp(every, places, heights, left=np.nan, right=np.nan), dtype=np.float64)
    if not known.all():
        breaks = np.cumsum(~known)[known]
        after = np.clip(np.searchsorted(places, every), 1, max(1, len(places) - 1))
        before = after - 1
        after = np.minimum(after, len(places) - 1)
        line[breaks[before] != breaks[after]] = np.nan
    own = np.floor(places + 0.5)
    shown = (own >= 0) & (own < num_columns)
    columns_of = own[shown].astype(np.int64)
    missing = np.isnan(line[columns_of])
    line[columns_of[missing]] = heights[shown][missing]
    return line
