"""How soon compared curves reach one value: that with which an environment counts as solved, or a share of the best."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rl_tui.engine.session.behavior_view import EVALUATION, RETURN
from rl_tui.tui.charts.arrays import np
from rl_tui.tui.charts.curve import Curve
from rl_tui.tui.charts.figure import Figure
from rl_tui.tui.charts.headline import drawn_line

SHARE = 0.9  # of the way from the lowest value of all curves to the highest, where no threshold is known
RETURNS = (RETURN, EVALUATION, "Environment/Cumulative Reward", "Environment/Group Cumulative Reward")


class Threshold(NamedTuple):
    """A value, and why it is this one, in words."""

    value: float
    words: str


def threshold_of(figure: Figure, metric: str, solved: Iterable[float | None]) -> Threshold | None:
    """The value that the curves of that metric are to reach; None unless it is a return and varies.

    solved: the reward thresholds of what is compared; one counts where all have the same.
    """
    if metric not in RETURNS:
        return None
    known = set(solved)
    if len(known) == 1 and (value := known.pop()) is not None:
        return Threshold(value, "solved")
    values = [drawn_line(figure, curve)[1] for curve in figure.curves if curve.metric == metric]
    together = np.concatenate(values) if values else np.array([])
    if len(together) == 0:
        return None
    low, high = float(together.min()), float(together.max())
    return Threshold(low + SHARE * (high - low), f"{SHARE:.0%} of lowest to highest") if high > low else None


def first_at(figure: Figure, curve: Curve, value: float) -> float | None:
    """The first visible x at which the curve, as it is drawn, is that high; None if it never is."""
    xs, means = drawn_line(figure, curve)
    reached: Sequence[int] = np.flatnonzero(means >= value).tolist()
    return float(xs[reached[0]]) if reached else None
