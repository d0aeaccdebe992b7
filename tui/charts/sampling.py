"""Curves reduced to the columns of a chart.  Shapes: N points, C columns."""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

LARGEST = 1e300  # beyond it the difference of two values is no longer a float


class Columns(NamedTuple):
    """f64[C] each, NaN where a column has no finite point; broken bool[C]: a point in it was not finite."""

    low: Floats
    high: Floats
    mean: Floats
    broken: Bools


def columns(xs: Floats, ys: Floats, x_range: tuple[float, float], num_columns: int) -> Columns:
    """Lowest, highest and mean value per column. xs: f64[N] not decreasing. Spikes survive whatever N is."""
    start, end = x_range
    low, high, total = np.full(num_columns, np.inf), np.full(num_columns, -np.inf), np.zeros(num_columns)
    inside = (xs >= start) & (xs <= end)
    xs, ys = xs[inside], ys[inside]
    at = np.minimum(((xs - start) / max(end - start, 1e-300) * num_columns).astype(np.int64), num_columns - 1)
    finite = np.isfinite(ys)
    broken = np.bincount(at[~finite], minlength=num_columns) > 0
    at, ys = at[finite], np.clip(ys[finite], -LARGEST, LARGEST)
    number = np.bincount(at, minlength=num_columns)
    np.minimum.at(low, at, ys)
    np.maximum.at(high, at, ys)
    np.add.at(total, at, ys / np.maximum(number, 1)[at])  # divided first: a sum of large values would overflow
    empty = number == 0
    low[empty] = high[empty] = total[empty] = np.nan
    return Columns(low, high, np.clip(total, low, high), broken)


def joined(values: Floats, broken: Bools) -> Floats:
    """Values f64[C] with the empty columns between two points interpolated, unless a broken column lies between."""
    known = np.flatnonzero(np.isfinite(values))
    if len(known) < 2:
        return values.copy()
    every = np.arange(len(values))
    filled = np.interp(every, known, values[known], left=np.nan, right=np.nan)
    after = np.clip(np.searchsorted(known, every), 1, len(known) - 1)
    breaks = np.cumsum(broken & ~np.isfinite(values))
    gap = ~np.isfinite(values) & (breaks[known[after - 1]] != breaks[known[after]])
    filled[gap] = np.nan
    return filled


def smoothed(values: Floats, weight: float) -> Floats:
    """Exponential moving average along f64[C]; starts anew after a gap, and is unbiased from its first column."""
    result, average, total = np.full(len(values), np.nan), 0.0, 0.0
    for column, value in enumerate(values.tolist()):
        if math.isnan(value):
            average, total = 0.0, 0.0
            continue
        average, total = weight * average + (1 - weight) * value, weight * total + (1 - weight)
        result[column] = average / total
    return result
