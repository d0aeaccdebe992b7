"""Values far from all others, and what lies outside the y axis.  Shapes: N points, D columns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from rl_tui.tui.charts.arrays import Bools, Floats, np
from rl_tui.tui.charts.curve import Curve, Range
from rl_tui.tui.charts.scale import Scale, scale_of

if TYPE_CHECKING:
    from rl_tui.tui.charts.figure import Sampled, Samples

SHARES = 0.01, 0.99  # of the values: what lies below and above is an outlier
OUTLYING = 1.0  # times the length of the axis without outliers: what lies no farther from it than that is none


class Outside(NamedTuple):
    """What is not in the range of its axis. above, below: shares of what is drawn; lowest, highest: how far it goes."""

    above: float
    below: float
    lowest: float
    highest: float


def without_outliers(curve: Curve, x_range: Range, limits: Range, has_spread: bool, is_log: bool) -> Range:
    """The limits without the outermost percent of values at an end where these lie farther off than the rest is long.

    So the newest values of a curve that rises stay in sight. has_spread: lowest and highest values are drawn.
    """
    first = int(np.searchsorted(curve.xs, x_range[0]))
    past = int(np.searchsorted(curve.xs, x_range[1], side="right"))
    lows, highs = (curve.low, curve.high) if has_spread else (curve.mean, curve.mean)
    low, high = _percentile(lows[first:past], SHARES[0]), _percentile(highs[first:past], SHARES[1])
    if low is None or high is None:
        return limits
    low, high = max(low, limits[0]), min(high, limits[1])
    if low > high:
        return limits
    bottom, without, to, top = scale_of(*limits, is_log).places(np.array([limits[0], low, high, limits[1]])).tolist()
    far = OUTLYING * (to - without)
    return low if without - bottom > far else limits[0], high if top - to > far else limits[1]


def _percentile(values: Floats, share: float) -> float | None:
    """The value next to it towards the middle: an outlier never counts in part."""
    finite = values[np.isfinite(values)]
    if len(finite) == 0:
        return None
    place = share * (len(finite) - 1)
    at = math.ceil(place) if share < 0.5 else math.floor(place)
    return float(np.partition(finite, at)[at])


def edges(low: Floats, high: Floats, scale: Scale) -> tuple[Bools, Bools]:
    """(bool[D]: whether it goes beyond the top, bool[D]: beyond the bottom). low, high: f64[D], NaN for nothing."""
    return high > scale.top * (1 + math.copysign(1e-9, scale.top)), low < scale.bottom * (
        1 - math.copysign(1e-9, scale.bottom)
    )


def outside(samples: Samples) -> Outside | None:
    """Of all curves together; None where everything is in sight."""
    drawn = above = below = 0
    lowest, highest = math.inf, -math.inf
    for each in samples.curves:
        scale = samples.scales.get(each.curve.metric)
        if scale is None:
            continue
        low, high = ends(each)
        over, under = edges(low, high, scale)
        drawn, above, below = drawn + int(np.isfinite(low).sum()), above + int(over.sum()), below + int(under.sum())
        highest = max([highest, *high[over].tolist()])
        lowest = min([lowest, *low[under].tolist()])
    return Outside(above / drawn, below / drawn, lowest, highest) if above or below else None


def ends(sampled: Sampled) -> tuple[Floats, Floats]:
    """(f64[D], f64[D]): from where to where each column is drawn."""
    if sampled.line is None:
        return sampled.spread.low, sampled.spread.high
    if sampled.has_spread:
        return np.fmin(sampled.line, sampled.spread.low), np.fmax(sampled.line, sampled.spread.high)
    return sampled.line, sampled.line
