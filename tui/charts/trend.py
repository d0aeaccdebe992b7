"""Whether a curve rises or falls, and by how much."""

from __future__ import annotations

import math
from typing import NamedTuple

from rl_tui.tui.charts.arrays import Floats, np

SHARE = 0.25  # of the steps so far
LEAST_POINTS = 40  # of a young curve: all of it
FEWEST_POINTS = 6
SURE = 3.0  # standard errors; returns that follow each other resemble each other, so two would see trends in noise


class Trend(NamedTuple):
    """direction: 1 rising, -1 falling, 0 level or unknown. percent: of the level at the start, None where that is too
    near to zero to compare with. steps: over how many. change: by how much, 0 where it is level."""

    direction: int
    percent: float | None
    steps: float
    change: float = 0.0


UNKNOWN = Trend(0, None, 0.0)


def newest_steps(steps: Floats) -> float:
    """How many steps a trend is about: the last quarter of the curve, or its newest LEAST_POINTS if they are more.

    By steps and not by time, so that equal runs have equal trends however fast they were. steps: f64[N], N > 0.
    """
    last = float(steps[-1])
    return max(SHARE * (last - float(steps[0])), last - float(steps[-min(LEAST_POINTS, len(steps))]))


def trend(steps: Floats, values: Floats, since: float = -math.inf) -> Trend:
    """The slope of the straight line through the newest steps, where it is no chance.

    steps: f64[N] not decreasing; values: f64[N], of which the finite ones count. since: only those after that step.
    """
    if len(steps) == 0:
        return UNKNOWN
    first = int(np.searchsorted(steps, steps[-1] - newest_steps(steps)))
    first = max(first, int(np.searchsorted(steps, since, side="right")))
    finite = np.isfinite(values[first:])
    steps, values = steps[first:][finite], values[first:][finite]
    span = float(steps[-1] - steps[0]) if len(steps) >= FEWEST_POINTS else 0.0
    scale = float(np.abs(values).max()) if span > 0 else 0.0
    if scale == 0.0 or not np.isfinite(scale):
        return UNKNOWN
    x, y = (steps - steps.mean()) / span, values / scale  # scaled: squares of large values would overflow
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
    return Trend(1 if rise > 0 else -1, percent, span, rise * scale)
