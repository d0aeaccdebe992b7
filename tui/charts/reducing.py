"""Many values made few: spikes and gaps survive.  Shapes: N values, S stretches of them."""

from __future__ import annotations

from rl_tui.tui.charts.arrays import Bools, Floats, Indices, np

LARGEST = 1e300  # beyond it the difference of two values is no longer a float


def extremes(low: Floats, high: Floats, starts: Indices) -> tuple[Floats, Floats, Bools]:
    """(lowest f64[S], highest f64[S], bool[S]: whether a value is not finite); NaN where no value is finite.

    low, high: f64[N]; starts: i64[S], increasing, where each stretch begins; it ends where the next begins.
    """
    lowest, highest = np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)
    broken = ~(np.isfinite(lowest) & np.isfinite(highest))  # what is not finite comes through
    if broken.any():
        lowest = np.fmin.reduceat(np.where(np.isfinite(low), low, np.nan), starts)
        highest = np.fmax.reduceat(np.where(np.isfinite(high), high, np.nan), starts)
    return _bounded(lowest), _bounded(highest), broken


def means(values: Floats, starts: Indices) -> Floats:
    """f64[S]: mean of the finite values of each stretch; NaN without any."""
    counts = np.diff(starts, append=len(values))
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.add.reduceat(values, starts)
    if np.isfinite(sums).all():
        return _bounded(sums / counts)
    finite = np.isfinite(values)
    kept = np.where(finite, _bounded(values), 0.0)
    largest = max(1.0, float(np.abs(kept).max()))  # divided first: a sum of large values would overflow
    sums, known = np.add.reduceat(kept / largest, starts), np.add.reduceat(finite.astype(np.float64), starts)
    return np.where(known > 0, _bounded(sums / np.maximum(known, 1) * largest), np.nan)


def _bounded(values: Floats) -> Floats:
    return np.minimum(np.maximum(values, -LARGEST), LARGEST)
