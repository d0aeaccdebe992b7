"""What one chart shows, apart from how it is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tui.charts.arrays import Floats, np
from tui.charts.curve import Curve, Range, XAxis, nearest
from tui.charts.sampling import Columns, columns, polyline
from tui.charts.scale import Scale, scale_of
from tui.charts.smoothing import smooth_line
from tui.charts.window import Sight
from tui.lines import Tone

COMPARABLE = 4.0  # one scale where together the metrics span at most so many times what the flattest one does


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened. x: in the unit of the axis; word: what kind it is; text: what it was, "" for that."""

    x: float
    glyph: str
    tone: Tone
    word: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """curves: the first is drawn in front; none without a point. smoothing: 0 to below 1."""

    curves: tuple[Curve, ...]
    sight: Sight
    x_axis: XAxis = "steps"
    smoothing: float = 0.0
    is_log: bool = False
    crosshair: float | None = None
    marks: tuple[Mark, ...] = ()
    num_left_out: int = 0  # curves that would be too many


def ingredients(figure: Figure) -> tuple[object, ...]:
    """What differs when the figure does: curves only ever grow or are cut off, and their newest value changes."""
    curves = tuple((curve.name, curve.metric, curve.tone, len(curve.xs), curve.xs[-1], repr(curve.mean[-1]))
                   for curve in figure.curves)  # fmt: skip
    return curves, figure.sight, figure.x_axis, figure.smoothing, figure.is_log, figure.crosshair, figure.marks


class Sampled(NamedTuple):
    """One curve in the columns of a chart. spread: every value; line: the smoothed one, None without smoothing."""

    curve: Curve
    spread: Columns
    line: Floats | None
    limits: Range | None  # of what will be drawn


class Samples(NamedTuple):
    """Every curve of a figure, in its order, and the scale of each metric that has a value in sight."""

    curves: tuple[Sampled, ...]
    scales: dict[str, Scale]

    @property
    def has_own_scales(self) -> bool:
        """Whether metrics are too different for one scale."""
        return len(set(self.scales.values())) > 1

    @property
    def is_symlog(self) -> bool:
        """Whether a logarithm was asked for but not all values are above 0."""
        return any(scale.kind == "symlog" for scale in self.scales.values())


class Reading(NamedTuple):
    """A curve below the crosshair. x: of the value next to it; low, high: of the values in the crosshair's cell."""

    curve: Curve
    x: float
    mean: float
    low: float
    high: float


def sample(figure: Figure, num_columns: int, shows_spread: bool) -> Samples:
    """Every curve in so many columns. shows_spread: every value stands behind the smoothed line, if there is one."""
    shows_spread = shows_spread and has_one_line(figure.curves)
    curves = tuple(_sampled(figure, curve, num_columns, shows_spread) for curve in figure.curves)
    return Samples(curves, scales(curves, figure.is_log))


def has_one_line(curves: Iterable[Curve]) -> bool:
    """Whether values may stand behind a smoothed line: of several, one could not tell whose they are."""
    return [curve.is_band for curve in curves if not curve.has_points] == [False]


def _sampled(figure: Figure, curve: Curve, num_columns: int, shows_spread: bool) -> Sampled:
    shown = curve.within(figure.sight.shown)
    spread = columns(shown, figure.sight.shown, num_columns)
    start, end = figure.sight.shown
    if curve.is_band:
        line = polyline((curve.xs - start) * (num_columns / (end - start)) - 0.5, curve.mean, num_columns)
        return Sampled(curve, spread, line, spread.extremes)
    if figure.smoothing <= 0 or curve.has_points:
        return Sampled(curve, spread, None, spread.extremes)
    xs, averages = smooth_line(shown, figure.sight.shown, figure.smoothing)
    line = polyline((xs - start) * (num_columns / (end - start)) - 0.5, averages, num_columns)
    finite = line[np.isfinite(line)]
    limits = [(float(finite.min()), float(finite.max()))] if len(finite) else []
    if shows_spread and spread.extremes is not None:
        limits.append(spread.extremes)
    return Sampled(
        curve, spread, line, (min(low for low, _ in limits), max(high for _, high in limits)) if limits else None
    )


def scales(sampled: Sequence[Sampled], is_log: bool) -> dict[str, Scale]:
    """The scale of each metric in sight: one for all where their values are comparable."""
    ranges: dict[str, Range] = {}
    for each in sampled:
        if each.limits is not None:
            low, high = ranges.get(each.curve.metric, each.limits)
            ranges[each.curve.metric] = min(low, each.limits[0]), max(high, each.limits[1])
    if not ranges:
        return {}
    low, high = min(low for low, _ in ranges.values()), max(high for _, high in ranges.values())
    flattest = min((high - low for low, high in ranges.values()))
    if len(ranges) == 1 or high / COMPARABLE - low / COMPARABLE <= flattest:
        return dict.fromkeys(ranges, scale_of(low, high, is_log))
    return {metric: scale_of(*limits, is_log) for metric, limits in ranges.items()}


def read(figure: Figure, x: float, num_cells: int) -> list[Reading]:
    """What lies below a crosshair one cell wide; curves that do not reach so far, or are not finite, are left out."""
    start, end = figure.sight.shown
    half = (end - start) / max(num_cells, 1) / 2
    readings = []
    for curve in figure.curves:
        first, last = curve.extent
        if not first - half <= x <= last + half:
            continue
        at = nearest(curve.xs, x)
        cell = slice(min(at, int(np.searchsorted(curve.xs, x - half))),
                     max(at + 1, int(np.searchsorted(curve.xs, x + half))))  # fmt: skip
        low, high, mean = (values[cell][np.isfinite(values[cell])] for values in (curve.low, curve.high, curve.mean))
        if len(low):
            middle = float(np.sum(mean / len(mean)))  # divided first: a sum of large values would overflow
            readings.append(Reading(curve, float(curve.xs[at]), middle, float(low.min()), float(high.max())))
    return readings


def smoothed_at(figure: Figure, curve: Curve, x: float) -> float | None:
    """The smoothed curve at x, as it is drawn; None where it is not."""
    if figure.smoothing <= 0 or curve.has_points or curve.is_band:
        return None
    xs, averages = smooth_line(curve.within(figure.sight.shown), figure.sight.shown, figure.smoothing)
    known = np.isfinite(averages)
    return float(np.interp(x, xs[known], averages[known])) if known.any() else None
