"""Several runs of one configuration as one curve: their mean, within their lowest and highest.

Shapes: R runs, P points of one of them, G places of the grid.
"""

from __future__ import annotations

from collections.abc import Sequence

from rl_tui.tui.charts.arrays import Floats, np
from rl_tui.tui.charts.curve import Curve, Range
from rl_tui.tui.charts.smoothing import smooth_line
from rl_tui.tui.drawing.lines import Tone

GRID = 512  # visible places: more than a smoothed curve has points
TOGETHER = 0.02  # of the x axis: curves that end nearer to each other end together


def band_curve(
    curves: Sequence[Curve], shown: Range, smoothing: float, *,
    name: str = "", label: str = "", tone: Tone = "series-1", metric: str = "", dash: int = 0,
    source: str = "",
) -> Curve | None:  # fmt: skip
    """The mean of the curves on a common grid of x, each smoothed and read between its points; None without any there.

    It begins where all have begun and ends with the last. From where a curve ends, it is the mean of the others: see
    `ends`. Of a single one that is left, the band has no width.
    """
    known = [(curve, line) for curve in curves if (line := _line(curve, shown, smoothing)) is not None]
    if not known:
        return None
    lasts = _lasts([curve for curve, _ in known])
    start = max(shown[0], *(curve.extent[0] for curve, _ in known))
    end = min(shown[1], max(lasts))
    if start > end:
        return None
    grid = np.linspace(start, end, GRID) if end > start else np.array([start])
    values = np.stack([
        np.where(grid <= last, np.interp(grid, xs, heights), np.nan)
        for (_, (xs, heights)), last in zip(known, lasts, strict=True)
    ])  # f64[R, G]  # fmt: skip
    is_there = np.isfinite(values)
    mean = np.where(is_there, values / is_there.sum(axis=0), 0.0).sum(axis=0)  # divided first: a sum may overflow
    return Curve(
        grid, np.nanmin(values, axis=0), np.nanmax(values, axis=0), mean, None, name, label, tone, metric, dash,
        source=source, is_band=True,
    )  # fmt: skip


def deviation_at(curves: Sequence[Curve], shown: Range, smoothing: float, x: float) -> tuple[float, int] | None:
    """(sample standard deviation of the curves at x, their number), of those that reach it; None of fewer than two."""
    known = [(curve, line) for curve in curves if (line := _line(curve, shown, smoothing)) is not None]
    lasts = _lasts([curve for curve, _ in known])
    x = min(x, max(lasts, default=x))  # a crosshair may be half a cell beyond the end
    values = [
        float(np.interp(x, xs, heights))
        for (curve, (xs, heights)), last in zip(known, lasts, strict=True)
        if curve.extent[0] <= x <= last
    ]
    return (float(np.std(values, ddof=1)), len(values)) if len(values) > 1 else None


def ends(curves: Sequence[Curve]) -> list[tuple[float, int]]:
    """(x, number): where curves end before the last one does, and how many go on from there."""
    lasts = _lasts(curves)
    return [(x, sum(last > x for last in lasts)) for x in sorted(set(lasts))[:-1]]


def _lasts(curves: Sequence[Curve]) -> list[float]:
    """Where each curve ends. Those that end almost together do so with the first of them: runs stop within an episode
    of each other, and what the last of them says alone would stand as a step at the end of the mean."""
    lasts = [curve.extent[1] for curve in curves]
    almost = TOGETHER * (max(lasts, default=0.0) - min((curve.extent[0] for curve in curves), default=0.0))
    first, ends_with = -np.inf, {}
    for last in sorted(lasts):
        first = first if last <= first + almost else last
        ends_with[last] = first
    return [ends_with[last] for last in lasts]


def _line(curve: Curve, shown: Range, smoothing: float) -> tuple[Floats, Floats] | None:
    """(xs f64[P], values f64[P]) of one curve around what is visible, finite, at least one; None without any."""
    if smoothing > 0:
        xs, values = smooth_line(curve.within(shown), shown, smoothing)
    else:
        first, past = np.searchsorted(curve.xs, shown[0]), np.searchsorted(curve.xs, shown[1], side="right")
        around = slice(max(0, int(first) - 1), int(past) + 1)
        xs, values = curve.xs[around], curve.mean[around]
    known = np.isfinite(values)
    return (xs[known], values[known]) if known.any() else None
