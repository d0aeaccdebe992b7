"""Whether a curve rises or falls, and by how much."""

from __future__ import annotations

import math
from typing import NamedTuple

from rl_tui.tui.charts.arrays import Floats, np

TREND_SECONDS = 600.0
FEWEST_POINTS = 6
SURE = 3.0  # standard errors; returns that follow each other resemble each other, so two would see trends in noise


class Trend(NamedTuple):
    """direction: 1 rising, -1 falling, 0 level or unknown. percent: of the level at the start, None where that is too
    near to zero to compare with. seconds: over which time."""

    direction: int
    percent: float | None
    seconds: float


UNKNOWN = Trend(0, None, 0.0)


def trend(times: Floats, values: Floats, seconds: float = TREND_SECONDS, since: float = -math.inf) -> Trend:
    """The slope of the straight line through the points of the last `seconds`, where it is no chance.

    times: f64[N] not decreasing; values: f64[N], of which only the finite ones count. since: none before that time.
    """
    if len(times) == 0:
        return UNKNOWN
    first = int(np.searchsorted(times, max(times[-1] - seconds, since)))
    finite = np.isfinite(values[first:])
    times, values = times[first:][finite], values[first:][finite]
    span = float(times[-1] - times[0]) if len(times) >= FEWEST_POINTS else 0.0
    scale = float(np.abs(values).max()) if span > 0 else 0.0
    if scale == 0.0 or not np.isfinite(scale):
        return UNKNOWN
    x, y = (times - times.mean()) / span, values / scale  # scaled: squares of large values would overflow
    level = float(y.mean())
    y -= level
    squares, products = float(np.dot(x, x)), float(np.dot(x, y))
    rise = products / squares
    rest = max(0.0, float(np.dot(y, y)) - rise * products)  # sum of squares of what the line leaves
    error = math.sqrt(rest / (len(x) - 2) / squares)
    if abs(rise) <= max(SURE * error, 1e-9):
        return Trend(0, None, span)
    start = abs(level + rise * float(x[0]))
    percent = 100 * rise / start if start > abs(rise) / 10 else None
    return Trend(1 if rise > 0 else -1, percent, span)
