"""A figure drawn by plotext: for the whole screen.

plotext has one figure for all, which takes milliseconds and is not made for threads: draw in the app's thread alone,
at most POINTS points in all. Importing it takes 150 ms: call `load` in a thread before.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tui.charts.arrays import Floats, np
from tui.charts.curve import Range
from tui.charts.drawing import ASCII_LINES, Look
from tui.charts.figure import Figure, Sampled, Samples, sample
from tui.charts.scale import Scale
from tui.charts.x_axis import NAMES, x_ticks
from tui.lines import Line, Span, Tone, line

POINTS = 400
SMALLEST = 40, 10  # cells below which frame, title and labels leave no room for a curve
FIRST_COLOR = 100  # numbers from here on stand for our tones; plotext only hands them back
_STYLED = re.compile(r"\x1b\[([\d;]*)m")
_FRAME = str.maketrans("┌┐└┘├┤┬┴┼─│", "+++++++++-|")


@dataclass(frozen=True, slots=True)
class PlotextChart:
    """lines: empty where nothing finite is in sight; first_cell, num_cells: the columns of the curves in them."""

    lines: list[Line]
    samples: Samples
    first_cell: int = 0
    num_cells: int = 1


def load() -> None:
    """Import plotext. May take a while: call it in a thread."""
    importlib.import_module("plotext")


def plotext_chart(figure: Figure, title: str, y_label: str, width: int, height: int, look: Look) -> PlotextChart:
    """The figure with a frame, a title, and axes with labels. width, height: at least SMALLEST."""
    import plotext

    each = max(16, POINTS // len(figure.curves))
    samples = sample(figure, each if figure.smoothing > 0 else each // 2, shows_spread=False)
    if not samples.scales:
        return PlotextChart([], samples)
    tones: list[Tone] = ["dim", "accent", "bad", *(each.curve.tone for each in samples.curves)]
    tones += [mark.tone for mark in figure.marks if mark.tone not in tones]

    def pixel(tone: Tone) -> Any:
        return plotext.pixel(foreground=FIRST_COLOR + tones.index(tone))

    plot: Any = plotext.figure
    plotext.terminal.limit(False, False)
    for part in (plot.clear.data, plot.clear.settings, plot.clear.pixels):
        part()
    plot.theme("colorless")
    plot.plot_size(width, height)
    plot.axes(True, pixel=pixel("dim"))
    front = next(each for each in samples.curves if each.curve.metric in samples.scales)
    _set_axes(plot, figure, samples.scales[front.curve.metric], width, height)
    plot.title(title)
    plot.label(NAMES[figure.x_axis], "x")
    plot.label(y_label, "y")
    start, end = figure.sight.shown
    for at, one in reversed(list(enumerate(samples.curves))):  # the first lies in front
        scale = samples.scales.get(one.curve.metric)
        if scale is not None:
            marker = plotext.marker(_marker(at, look), pixel(one.curve.tone))
            _draw_curve(plot, one, scale, (end - start) / len(one.spread.low), marker)
            if len(figure.curves) > 1 and one.curve.label not in ("", look.glyphs.evaluation):
                _draw_label(plot, one, scale, (end - start) / len(one.spread.low), plotext, pixel(one.curve.tone))
    _draw_points(plot, samples, figure.sight.shown, lambda tone: plotext.marker(look.glyphs.evaluation, pixel(tone)))
    for glyph, tone, x in _signs(figure, samples, look):
        plot.draw(plot.signal([x - start], [0.0], marker=plotext.marker(glyph, pixel(tone))))
    if figure.crosshair is not None and start <= figure.crosshair <= end:
        plot.line(figure.crosshair - start, 1, True, pixel("accent"))
    return _placed(parsed(plot.build().string(), tones, look), samples)


def _set_axes(plot: Any, figure: Figure, scale: Scale, width: int, height: int) -> None:
    """x counts from 0 at the left, for wall times are large; y lies from 0 to 1, for scales may differ."""
    start, end = figure.sight.shown
    ticks = x_ticks(figure.sight.shown, figure.x_axis, max(2, width // 14))
    x_ruler, y_ruler = plot.ruler("x", "lower"), plot.ruler("y", "left")
    x_ruler.lim(0.0, end - start)
    x_ruler.ticks([tick.at - start for tick in ticks], [tick.label for tick in ticks])
    values = scale.ticks(max(2, height // 4))
    y_ruler.lim(0.0, 1.0)
    y_ruler.ticks(_shares(scale, np.array([tick.at for tick in values])).tolist(), [tick.label for tick in values])


def _shares(scale: Scale, values: Floats) -> Floats:
    """How high the values lie, from 0 at the bottom to 1 at the top."""
    bottom, top = scale.y_range
    return (np.clip(scale.places(values), bottom, top) - bottom) / (top - bottom)  # clipped first: none overflows


def _marker(at: int, look: Look) -> str:
    if not look.glyphs.braille:
        return ASCII_LINES[at % len(ASCII_LINES)]
    return "braille" if look.has_color or at == 0 else ASCII_LINES[at % len(ASCII_LINES)]


def _draw_curve(plot: Any, sampled: Sampled, scale: Scale, width: float, marker: Any) -> None:
    """The smoothed line, else from lowest to highest in each column. Columns without a value part the line."""
    low, high = sampled.spread.low, sampled.spread.high
    if sampled.line is not None:
        low = high = sampled.line
    known = np.flatnonzero(np.isfinite(low))
    xs = (known + 0.5) * width
    ends = np.stack([_shares(scale, low[known]), _shares(scale, high[known])], axis=1)
    single = bool((low[known] == high[known]).all())
    heights = ends[:, 0] if single else ends.ravel()
    curve = plot.signal((xs if single else np.repeat(xs, 2)).tolist(), heights.tolist(), marker=marker)
    curve.lines()
    for at in (np.flatnonzero(np.diff(known) > 1) + 1).tolist():
        curve.line(at if single else 2 * at, False)
    plot.draw(curve)


def _draw_label(plot: Any, sampled: Sampled, scale: Scale, width: float, plotext: Any, pixel: Any) -> None:
    """The label behind the curve's last value in sight; none where another curve alone has a value there."""
    values = sampled.spread.high if sampled.line is None else sampled.line
    known = np.flatnonzero(np.isfinite(values))
    if len(known):
        last = known[-1:]
        places = ((last + 1) * width).tolist(), _shares(scale, values[last]).tolist()
        plot.draw(plot.signal(*places, marker=plotext.marker(sampled.curve.label, pixel)))


def _draw_points(plot: Any, samples: Samples, x_range: Range, marker: Callable[[Tone], Any]) -> None:
    """A sign on each point of the curves that have points, unless there are too many to be told apart."""
    start, end = x_range
    for curve in (each.curve for each in samples.curves if each.curve.has_points):
        shown = (curve.xs >= start) & (curve.xs <= end) & np.isfinite(curve.mean)
        scale = samples.scales.get(curve.metric)
        if scale is not None and 0 < shown.sum() <= POINTS // 4:
            heights = _shares(scale, curve.mean[shown])
            plot.draw(plot.signal((curve.xs[shown] - start).tolist(), heights.tolist(), marker=marker(curve.tone)))


def _signs(figure: Figure, samples: Samples, look: Look) -> list[tuple[str, Tone, float]]:
    """(sign, tone, x) of marks and of values that are not finite."""
    start, end = figure.sight.shown
    signs = [(mark.glyph, mark.tone, mark.x) for mark in figure.marks if start <= mark.x <= end]
    for each in samples.curves:
        width = (end - start) / len(each.spread.broken)
        places = (start + (np.flatnonzero(each.spread.broken) + 0.5) * width).tolist()
        signs += [(look.glyphs.failed, "bad", x) for x in places]
    return signs


def parsed(text: str, tones: list[Tone], look: Look) -> list[Line]:
    """plotext's text as lines: its color numbers from FIRST_COLOR on are tones; everything else is plain."""
    lines: list[Line] = []
    for row in text.rstrip("\n").split("\n"):
        spans: list[Span] = []
        tone: Tone = "text"
        for at, part in enumerate(_STYLED.split(row)):
            if at % 2 == 0:
                spans.append(Span(part if look.glyphs.braille else part.translate(_FRAME), tone))
            elif part in ("", "0"):
                tone = "text"
            elif part.startswith("38;5;"):
                tone = tones[int(part[5:]) - FIRST_COLOR]
        lines.append(line(*spans))
    return lines


def _placed(lines: list[Line], samples: Samples) -> PlotextChart:
    """With the columns between the walls of the frame, which stand in the second line from above."""
    top = "".join(span.text for span in lines[1])
    first = len(top) - len(top.lstrip()) + 1
    return PlotextChart(lines, samples, first, max(1, len(top.rstrip()) - 1 - first))
