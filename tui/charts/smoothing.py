"""A curve smoothed as TensorBoard does it, but by x: a moving average over at most POINTS points of a window.

So it looks alike however many values a run has reported, at any zoom and on any terminal, and a gap is as long as its
steps: what lies before it counts less the wider it is.  Shapes: P points.
"""

from __future__ import annotations

import math
from functools import lru_cache

from rl_tui.tui.charts.arrays import Floats, Indices, np
from rl_tui.tui.charts.curve import Curve, Range
from rl_tui.tui.charts.reducing import means

POINTS = 512  # at most, and more than half as many where there are enough values
LONGEST_LEAD = 4 * POINTS  # points before the window that the average remembers
LINES_KEPT = 12  # as many as a chart has: each is asked for by its drawing and by the words above it
FORGOTTEN = 0.01  # weight below which a point no longer counts


@lru_cache(maxsize=LINES_KEPT)
def smooth_line(curve: Curve, x_range: Range, smoothing: float) -> tuple[Floats, Floats]:
    """(xs f64[P], averages f64[P]) in the window and next to it; NaN where only values that are not finite lie.

    A point's weight falls by the factor `smoothing` over the mean distance of points in the window: for evenly spaced
    ones that is TensorBoard's average. The window's points keep their places while it grows or moves. Read only.
    """
    start, end = x_range
    unit = 2.0 ** math.ceil(math.log2(max(end - start, 1e-290) / POINTS))
    if len(curve.xs) == 0:
        return np.empty(0), np.empty(0)
    xs, _ = _points(curve, start, end, unit)
    distance = float(xs[-1] - xs[0]) / (len(xs) - 1) if len(xs) > 1 else unit
    lead = 0 if smoothing <= 0 else min(LONGEST_LEAD, math.ceil(math.log(FORGOTTEN) / math.log(smoothing)))
    xs, values = _points(curve, start - lead * distance, end, unit)
    return xs, moving_average(values, smoothing, np.diff(xs, prepend=xs[0] - distance) / distance)


def _points(curve: Curve, start: float, end: float, unit: float) -> tuple[Floats, Floats]:
    """(xs f64[P], means f64[P]) of each stretch `unit` long that has a value, one more on either side of the range."""
    before = max(0, int(np.searchsorted(curve.xs, start)) - 1)
    after = min(len(curve.xs) - 1, int(np.searchsorted(curve.xs, end, side="right")))
    first, last = np.floor(curve.xs[[before, after]] / unit).tolist()  # whole stretches only
    from_, to = np.searchsorted(curve.xs, (first * unit, (last + 1) * unit)).tolist()
    xs = curve.xs[from_:to]
    firsts = _firsts(xs, unit)
    lasts = np.append(firsts[1:], len(xs)) - 1
    return (xs[firsts] + xs[lasts]) / 2, means(curve.mean[from_:to], firsts)


def _firsts(xs: Floats, unit: float) -> Indices:
    """i64[P]: where each stretch begins. xs: f64[N], N > 0."""
    first, last = np.floor(xs[[0, -1]] / unit).tolist()
    if last - first < len(xs):  # fewer stretches than points: only their borders are looked up
        borders = np.searchsorted(xs, np.arange(first, last + 1) * unit)
        return borders[np.diff(borders, append=len(xs)) > 0]
    return np.flatnonzero(np.diff(np.floor(xs / unit), prepend=-np.inf))


def moving_average(values: Floats, weight: float, gaps: Floats) -> Floats:
    """Exponential moving average along f64[P]; starts again after a gap, and is unbiased from its first point.

    gaps: f64[P], more than 0, the distance from the point before; what that one knew counts `weight` per distance of 1.
    A value stands for the whole distance before it, so that few values count as many equal ones would.
    """
    if weight <= 0:
        return values
    result, average, total = [math.nan] * len(values), 0.0, 0.0
    shares = -np.expm1(math.log(weight) * gaps)  # not 1 - weight ** gaps: 0 for small ones
    for at, (value, share) in enumerate(zip(values.tolist(), shares.tolist(), strict=True)):
        if value != value:  # NaN
            average, total = 0.0, 0.0
            continue
        kept = 1 - share
        average, total = kept * average + share * value, kept * total + share
        result[at] = average / total
    return np.array(result)
