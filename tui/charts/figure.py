"""What one chart shows, apart from how it is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rl_tui.tui.charts.arrays import Floats, np
from rl_tui.tui.charts.curve import Curve, Range, XAxis, nearest
from rl_tui.tui.charts.sampling import Columns, columns, polyline
from rl_tui.tui.charts.scale import Scale, scale_of
from rl_tui.tui.charts.smoothing import smooth_line
from rl_tui.tui.charts.window import Viewport
from rl_tui.tui.charts.y_range import AUTOMATIC, YRange
from rl_tui.tui.charts.y_ticks import Rows
from rl_tui.tui.drawing.lines import Tone

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
    viewport: Viewport
    x_axis: XAxis = "steps"
    smoothing: float = 0.0
    is_log: bool = False
    crosshair: float | None = None
    marks: tuple[Mark, ...] = ()
    num_left_out: int = 0  # curves that would be too many
    clips: bool = False  # the y axis leaves out what lies far from all else
    y_ranges: Mapping[str, YRange] = field(default_factory=dict)  # chosen by hand, by metric


def ingredients(figure: Figure) -> tuple[object, ...]:
    """What differs when the figure does: curves only ever grow or are cut off, and their newest value changes."""
    curves = tuple((curve.name, curve.metric, curve.tone, len(curve.xs), curve.xs[-1], repr(curve.mean[-1]))
                   for curve in figure.curves)  # fmt: skip
    chosen = figure.is_log, figure.clips, tuple(sorted(figure.y_ranges.items()))
    return curves, figure.viewport, figure.x_axis, figure.smoothing, chosen, figure.crosshair, figure.marks


class Sampled(NamedTuple):
    """One curve in the columns of a chart. spread: every value; line: the smoothed one, None without smoothing.

    has_spread: every value, or the band around it, stands behind the line.
    """

    curve: Curve
    spread: Columns
    line: Floats | None
    limits: Range | None  # of what the axis must show
    has_spread: bool = False


class Samples(NamedTuple):
    """Every curve of a figure, in its order, and the scale of each metric that has a visible value."""

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


class CrosshairPoint(NamedTuple):
    """A curve below the crosshair. x: of the value next to it; low, high: of the values in the crosshair's cell.

    line: its smoothed value there, None where it is not smoothed.
    """

    curve: Curve
    x: float
    mean: float
    low: float
    high: float
    line: float | None = None

    @property
    def drawn(self) -> float:
        """The value of its line."""
        return self.mean if self.line is None else self.line


def sample(figure: Figure, num_columns: int, shows_spread: bool, rows: Rows | None = None) -> Samples:
    """Every curve in so many columns. shows_spread: every value stands behind the smoothed line, if there is one.

    rows: of the chart, for which the ticks of the value axis are chosen.
    """
    shows_spread = shows_spread and has_one_line(figure.curves)
    curves = tuple(_sampled(figure, curve, num_columns, shows_spread) for curve in figure.curves)
    return Samples(curves, scales(curves, figure.is_log, figure.y_ranges, rows))


def has_one_line(curves: Iterable[Curve]) -> bool:
    """Whether values may be drawn behind a smoothed line: behind several, it would be unclear whose they are."""
    return [curve.is_band for curve in curves if not curve.has_points] == [False]


def _sampled(figure: Figure, curve: Curve, num_columns: int, shows_spread: bool) -> Sampled:
    shown = curve.within(figure.viewport.shown)
    sampled = _in_columns(figure, curve, shown, num_columns, shows_spread)
    if not figure.clips or sampled.limits is None:
        return sampled
    has_spread = sampled.line is None or sampled.has_spread
    return sampled._replace(
        limits=without_outliers(shown, figure.viewport.shown, sampled.limits, has_spread, figure.is_log)
    )


def _in_columns(figure: Figure, curve: Curve, shown: Curve, num_columns: int, shows_spread: bool) -> Sampled:
    spread = columns(shown, figure.viewport.shown, num_columns)
    start, end = figure.viewport.shown
    if curve.is_band:
        line = polyline((curve.xs - start) * (num_columns / (end - start)) - 0.5, curve.mean, num_columns)
        return Sampled(curve, spread, line, spread.extremes, has_spread=True)
    if figure.smoothing <= 0 or curve.has_points:
        return Sampled(curve, spread, None, spread.extremes)
    xs, averages = smooth_line(shown, figure.viewport.shown, figure.smoothing)
    line = polyline((xs - start) * (num_columns / (end - start)) - 0.5, averages, num_columns)
    finite = line[np.isfinite(line)]
    limits = [(float(finite.min()), float(finite.max()))] if len(finite) else []
    if shows_spread and spread.extremes is not None:
        limits.append(spread.extremes)
    both = (min(low for low, _ in limits), max(high for _, high in limits)) if limits else None
    return Sampled(curve, spread, line, both, shows_spread)


def scales(
    sampled: Sequence[Sampled], is_log: bool, chosen: Mapping[str, YRange], rows: Rows | None
) -> dict[str, Scale]:
    """The scale of each visible metric: one for all whose values are comparable and whose range is chosen alike."""
    ranges: dict[str, Range] = {}
    for each in sampled:
        if each.limits is not None:
            low, high = ranges.get(each.curve.metric, each.limits)
            ranges[each.curve.metric] = min(low, each.limits[0]), max(high, each.limits[1])
    found: dict[str, Scale] = {}
    for y_range in dict.fromkeys(chosen.get(metric, AUTOMATIC) for metric in ranges):
        alike = {metric: limits for metric, limits in ranges.items() if chosen.get(metric, AUTOMATIC) == y_range}
        found |= _scales_of(alike, is_log, y_range, rows)
    return found


def _scales_of(ranges: Mapping[str, Range], is_log: bool, y_range: YRange, rows: Rows | None) -> dict[str, Scale]:
    low, high = min(low for low, _ in ranges.values()), max(high for _, high in ranges.values())
    flattest = min((high - low for low, high in ranges.values()))
    if len(ranges) == 1 or high / COMPARABLE - low / COMPARABLE <= flattest:
        return dict.fromkeys(ranges, scale_of(low, high, is_log, y_range, rows))
    return {metric: scale_of(*limits, is_log, y_range, rows) for metric, limits in ranges.items()}


def crosshair_points(figure: Figure, x: float, num_cells: int) -> list[CrosshairPoint]:
    """What lies below a crosshair one cell wide; curves that do not reach so far, or are not finite, are left out."""
    start, end = figure.viewport.shown
    half = (end - start) / max(num_cells, 1) / 2
    points = []
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
            line = smoothed_at(figure, curve, x)
            points.append(CrosshairPoint(curve, float(curve.xs[at]), middle, float(low.min()), float(high.max()), line))
    return points


def smoothed_at(figure: Figure, curve: Curve, x: float) -> float | None:
    """The smoothed curve at x, as it is drawn; None where it is not."""
    if figure.smoothing <= 0 or curve.has_points or curve.is_band:
        return None
    xs, averages = smooth_line(curve.within(figure.viewport.shown), figure.viewport.shown, figure.smoothing)
    known = np.isfinite(averages)
    return float(np.interp(x, xs[known], averages[known])) if known.any() else None


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
