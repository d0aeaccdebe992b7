"""The figures that stand beside a curve: its own, so that they cannot contradict what is drawn."""

from __future__ import annotations

from typing import NamedTuple

from rl_tui.tui.charts.arrays import Floats, np
from rl_tui.tui.charts.curve import Curve
from rl_tui.tui.charts.figure import Figure
from rl_tui.tui.charts.smoothing import smooth_line


class Headline(NamedTuple):
    """Of a visible curve, as it is drawn: smoothed, or every value. last: NaN where the newest is not finite.

    highest_at: the first x of the highest.
    """

    last: float
    lowest: float
    highest: float
    highest_at: float


def headline(figure: Figure, curve: Curve) -> Headline | None:
    """The figures of one of the figure's curves; None while no visible value of it is finite."""
    start, end = figure.viewport.shown
    if curve.is_band:
        xs, low, high, means = curve.xs, curve.mean, curve.mean, curve.mean
    elif is_smoothed(figure, curve):
        xs, means = smooth_line(curve.within(figure.viewport.shown), figure.viewport.shown, figure.smoothing)
        low = high = means
    else:
        xs, low, high, means = curve.xs, curve.low, curve.high, curve.mean
    in_sight = (xs >= start) & (xs <= end)
    lows, highs = (values[in_sight & np.isfinite(values)] for values in (low, high))
    if len(lows) == 0:
        return None
    highest_at = float(xs[in_sight & np.isfinite(high)][int(highs.argmax())])
    return Headline(float(means[in_sight][-1]), float(lows.min()), float(highs.max()), highest_at)


def drawn_line(figure: Figure, curve: Curve) -> tuple[Floats, Floats]:
    """(xs f64[P], values f64[P]): what is visible of one of the figure's curves and finite, as it is drawn."""
    start, end = figure.viewport.shown
    xs, values = curve.xs, curve.mean
    if is_smoothed(figure, curve) and not curve.is_band:
        xs, values = smooth_line(curve.within(figure.viewport.shown), figure.viewport.shown, figure.smoothing)
    in_sight = (xs >= start) & (xs <= end) & np.isfinite(values)
    return xs[in_sight], values[in_sight]


def is_smoothed(figure: Figure, curve: Curve) -> bool:
    """Whether the curve is drawn as a moving average of its values."""
    return figure.smoothing > 0 and not curve.has_points


def kind_of(figure: Figure, curve: Curve) -> str:
    """Of which values the figures are, in a word."""
    return "smoothed" if is_smoothed(figure, curve) else "raw"
