"""The limits of a y axis without the values that are far from all others."""

from __future__ import annotations

import math

from rl_tui.tui.charts.arrays import Floats, np
from rl_tui.tui.charts.curve import Curve, Range
from rl_tui.tui.charts.scale import scale_of

SHARES = 0.01, 0.99  # of the values: what lies below and above is an outlier
OUTLYING = 1.0  # times the length of the axis without outliers: what lies no farther from it than that is none


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
