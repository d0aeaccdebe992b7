"""A curve smoothed as TensorBoard does it: a moving average over points, of which a window has at most POINTS.

So it looks alike however many values a run has reported, at any zoom and on any terminal.  Shapes: P points.
"""

from __future__ import annotations

import math
from functools import lru_cache

from rl_tui.tui.charts.arrays import Floats, np
from rl_tui.tui.charts.curve import Curve, Range
from rl_tui.tui.charts.reducing import means

POINTS = 512  # at most, and more than half as many where there are enough values
LONGEST_LEAD = 4 * POINTS  # points before the window that the average remembers
LINES_KEPT = 12  # as many as a chart has: each is asked for by its drawing and by the words above it
FORGOTTEN = 0.01  # weight below which a point no longer counts


@lru_cache(maxsize=LINES_KEPT)
def smooth_line(curve: Curve, x_range: Range, smoothing: float) -> tuple[Floats, Floats]:
    """(xs f64[P], averages f64[P]) in the window and next to it; NaN where only values that are not finite lie.

    The window's points keep their places while it grows or moves, so that what is drawn stays as it is. Read only.
    """
    start, end = x_range
    unit = 2.0 ** math.ceil(math.log2(max(end - start, 1e-290) / POINTS))
    lead = 1 + (0 if smoothing <= 0 else min(LONGEST_LEAD, math.ceil(math.log(FORGOTTEN) / math.log(smoothing))))
    edges = (math.floor(start / unit) + np.arange(-lead, math.ceil((end - start) / unit) + 3)) * unit
    borders = np.searchsorted(curve.xs, edges)
    occupied = np.flatnonzero(borders[1:] > borders[:-1])
    if len(occupied) == 0:
        return np.empty(0), np.empty(0)
    first, past = borders[occupied], borders[occupied + 1]
    values = means(curve.mean[borders[0] : borders[-1]], first - borders[0])
    return (curve.xs[first] + curve.xs[past - 1]) / 2, moving_average(values, smoothing)


def moving_average(values: Floats, weight: float) -> Floats:
    """Exponential moving average along f64[P]; starts again after a gap, and is unbiased from its first point."""
    result, average, total = [math.nan] * len(values), 0.0, 0.0
    rest = 1 - weight
    for at, value in enumerate(values.tolist()):
        if value != value:  # NaN
            average, total = 0.0, 0.0
            continue
        average, total = weight * average + rest * value, weight * total + rest
        result[at] = average / total
    return np.array(result)
