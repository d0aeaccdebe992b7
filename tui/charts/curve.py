"""One line of a chart.  Shapes: N points, S stretches of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from rl_tui.engine.session.history import History
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.charts.arrays import Counts, Floats, np
from rl_tui.tui.charts.reducing import extremes, means
from rl_tui.tui.drawing.lines import Tone

XAxis: TypeAlias = Literal["steps", "wall", "relative"]
Range: TypeAlias = tuple[float, float]

COARSE_POINTS = 8192  # of a curve with many more: enough for every column of a wide terminal
MANY_POINTS = 2048  # visible, above which a coarse curve shows what the exact one would


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Never written to. xs: f64[N] not decreasing; low, high, mean: f64[N], anything; broken: u64[N] or None for none.

    label: the sign at its end; metric: curves of one metric share a scale; dash: 0 for a solid line. has_points: each
    of its few values stands by itself, with a sign and not smoothed. source: run, behavior and tag, which no other
    curve has. is_band: low to high is drawn around mean, all of it smoothed already. coarse: the same in fewer points,
    where there are so many that going through all of them takes long.
    """

    xs: Floats
    low: Floats
    high: Floats
    mean: Floats
    broken: Counts | None = None
    name: str = ""
    label: str = ""
    tone: Tone = "series-1"
    metric: str = ""
    dash: int = 0
    has_points: bool = False
    source: str = ""
    coarse: Curve | None = None
    is_band: bool = False

    @property
    def extent(self) -> Range:
        """(first, last) x. Not to be asked of a curve without points."""
        return float(self.xs[0]), float(self.xs[-1])

    def within(self, x_range: Range) -> Curve:
        """The coarse curve where it has points enough in the range, else the exact one."""
        if self.coarse is None:
            return self
        first, last = np.searchsorted(self.coarse.xs, x_range)
        return self.coarse if last - first >= MANY_POINTS else self


def plain_curve(
    xs: Floats, ys: Floats, *, name: str = "", label: str = "", tone: Tone = "series-1", metric: str = "", dash: int = 0
) -> Curve:
    """The curve through points; NaN and infinities are gaps."""
    return Curve(xs, ys, ys, ys, None, name, label, tone, metric, dash, coarse=_coarse(xs, ys))


def _coarse(xs: Floats, ys: Floats) -> Curve | None:
    if len(xs) <= 2 * COARSE_POINTS:
        return None
    starts = np.arange(0, len(xs), -(-len(xs) // COARSE_POINTS))
    low, high, broken = extremes(ys, ys, starts)
    middle = (xs[starts] + xs[np.append(starts[1:], len(xs)) - 1]) / 2
    return Curve(middle, low, high, means(ys, starts), broken.astype(np.uint64))


def history_curve(
    history: History, x_axis: XAxis, origin: float, *,
    name: str = "", label: str = "", tone: Tone = "series-1", metric: str = "", dash: int = 0, has_points: bool = False,
    source: str = "",
) -> Curve:  # fmt: skip
    """The curve of a history as it is now. origin: the wall time that is 0 on the relative axis."""
    # Copies: an array that numpy views cannot grow, and the view goes on folding.
    xs = np.array(history.steps if x_axis == "steps" else history.times)
    if x_axis == "relative":
        xs -= origin
    return Curve(
        xs, np.array(history.low), np.array(history.high), np.array(history.mean),
        np.array(history.broken, dtype=np.uint64), name, label, tone, metric, dash, has_points, source,
    )  # fmt: skip


def source_of(run_id: str, behavior: str, tag: str) -> str:
    """Where a curve comes from, in a word for other programs."""
    return "/".join(safe_text(part) for part in (run_id, behavior, tag) if part)


def nearest(xs: Floats, x: float) -> int:
    """Index of the point next to x. xs: f64[N], N > 0."""
    after = int(np.searchsorted(xs, x))
    if after == 0 or after == len(xs):
        return max(0, after - 1)
    return after if xs[after] - x < x - xs[after - 1] else after - 1
