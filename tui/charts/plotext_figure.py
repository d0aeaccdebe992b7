"""A figure drawn by plotext: for the whole screen.

plotext has one figure for all, which takes milliseconds and is not made for threads: draw in the app's thread alone,
at most POINTS points in all. Importing it takes 150 ms: call `load` in a thread before.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rl_tui.tui.charts.arrays import Floats, np
from rl_tui.tui.charts.curve import Range
from rl_tui.tui.charts.drawing import ASCII_LINES, ChartStyle, dot_texts
from rl_tui.tui.charts.figure import Figure, Sampled, Samples, sample
from rl_tui.tui.charts.outside import edges, ends
from rl_tui.tui.charts.raster import bars
from rl_tui.tui.charts.sampling import columns
from rl_tui.tui.charts.scale import Scale
from rl_tui.tui.charts.x_axis import NAMES, x_ticks
from rl_tui.tui.drawing.lines import Line, Span, Tone, line, merged

POINTS = 400
SMALLEST = 40, 10  # cells below which frame, title and labels leave no room for a curve
ROWS_ABOVE, ROWS_BELOW = 2, 3  # of the curves: title and frame; frame, numbers and labels
FIRST_COLOR = 100  # numbers from here on stand for our tones; plotext only hands them back
_STYLED = re.compile(r"\x1b\[([\d;]*)m")
_FRAME = str.maketrans("┌┐└┘├┤┬┴┼─│", "+++++++++-|")


@dataclass(frozen=True, slots=True)
class PlotextChart:
    """lines: empty where nothing finite is visible; first_cell, num_cells: the columns of the curves in them."""

    lines: list[Line]
    samples: Samples
    first_cell: int = 0
    num_cells: int = 1


def load() -> None:
    """Import plotext. May take a while: call it in a thread."""
    importlib.import_module("plotext")


def plotext_chart(figure: Figure, title: str, y_label: str, width: int, height: int, style: ChartStyle) -> PlotextChart:
    """The figure with a frame, a title, and axes with labels. width, height: at least SMALLEST."""
    import plotext

    each = POINTS // len(figure.curves)  # a column without smoothing has two, and more than a cell shows are wasted
    each = min(each, width * 3 // 2) if figure.smoothing > 0 else min(each // 2, width)
    samples = sample(figure, max(16, each), style.shows_spread)
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
    start, end = figure.viewport.shown
    for at, one in reversed(list(enumerate(samples.curves))):  # the first lies in front
        scale = samples.scales.get(one.curve.metric)
        if scale is not None:
            marker = plotext.marker(_marker(at, style), pixel(one.curve.tone))
            _draw_curve(plot, one, scale, (end - start) / len(one.spread.low), marker)
            if len(figure.curves) > 1 and one.curve.label not in ("", style.glyphs.evaluation):
                _draw_label(plot, one, scale, (end - start) / len(one.spread.low), plotext, pixel(one.curve.tone))
    _draw_points(
        plot, samples, figure.viewport.shown, lambda tone: plotext.marker(style.glyphs.evaluation, pixel(tone))
    )
    if figure.crosshair is not None and start <= figure.crosshair <= end:
        plot.line(figure.crosshair - start, 1, True, pixel("accent"))
    chart = _placed(parsed(plot.build().string(), tones, style), samples)
    _draw_behind(chart, figure, style)
    _draw_signs(chart, figure, style)
    return chart


def _set_axes(plot: Any, figure: Figure, scale: Scale, width: int, height: int) -> None:
    """x counts from 0 at the left, for wall times are large; y lies from 0 to 1, for scales may differ."""
    start, end = figure.viewport.shown
    ticks = x_ticks(figure.viewport.shown, figure.x_axis, max(2, width // 14))
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


def _marker(at: int, style: ChartStyle) -> str:
    if not style.glyphs.braille:
        return ASCII_LINES[at % len(ASCII_LINES)]
    return "braille" if style.has_color or at == 0 else ASCII_LINES[at % len(ASCII_LINES)]


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
    """The label behind the curve's last visible value; none where another curve alone has a value there."""
    values = sampled.spread.high if sampled.line is None else sampled.line
    known = np.flatnonzero(np.isfinite(values))
    if len(known):
        last = known[-1:]
        places = ((last + 1) * width).tolist(), _shares(scale, values[last]).tolist()
        plot.draw(plot.signal(*places, marker=plotext.marker(sampled.curve.label, pixel)))


def _draw_points(plot: Any, samples: Samples, x_range: Range, marker: Callable[[Tone], Any]) -> None:
    """A sign on each point of the curves that have points, unless there are too many to distinguish."""
    start, end = x_range
    for curve in (each.curve for each in samples.curves if each.curve.has_points):
        shown = (curve.xs >= start) & (curve.xs <= end) & np.isfinite(curve.mean)
        scale = samples.scales.get(curve.metric)
        if scale is not None and 0 < shown.sum() <= POINTS // 4:
            heights = _shares(scale, curve.mean[shown])
            plot.draw(plot.signal((curve.xs[shown] - start).tolist(), heights.tolist(), marker=marker(curve.tone)))


def _draw_behind(chart: PlotextChart, figure: Figure, style: ChartStyle) -> None:
    """Every value behind a smoothed line, faint, in the cells that plotext has left blank: one bar for each column."""
    one = next((each for each in chart.samples.curves if each.has_spread and each.line is not None), None)
    scale = chart.samples.scales.get(one.curve.metric) if one is not None else None
    if one is None or scale is None:
        return
    shown = figure.viewport.shown
    spread = columns(one.curve.within(shown), shown, chart.num_cells * style.dots[0])
    rows = range(ROWS_ABOVE, len(chart.lines) - ROWS_BELOW)
    dots = bars(scale.places(spread.low), scale.places(spread.high), scale.y_range, len(rows) * style.dots[1])
    for row, text in zip(rows, dot_texts(dots, len(rows), style), strict=True):
        chart.lines[row] = _behind(chart.lines[row], text, chart.first_cell)


def _behind(spans: Line, text: str, first: int) -> Line:
    """The line with `text` from cell `first` on wherever its spans are blank. Every character is one cell wide."""
    result, at = [], 0
    for span in spans:
        end = at + len(span.text)
        seen = text[max(0, at - first) : max(0, end - first)]
        is_blank = at >= first and not span.text.strip() and seen.strip()
        result.append(Span(seen.ljust(len(span.text)), "faint") if is_blank else span)
        at = end
    return tuple(result)


def _draw_signs(chart: PlotextChart, figure: Figure, style: ChartStyle) -> None:
    """Marks and values that are not finite stand on the frame; what goes on beyond the axis points there."""
    start, end = figure.viewport.shown
    top, bottom, frame = ROWS_ABOVE, len(chart.lines) - ROWS_BELOW - 1, len(chart.lines) - ROWS_BELOW

    def cell(share: float) -> int:
        return chart.first_cell + min(chart.num_cells - 1, int(share * chart.num_cells))

    signs: dict[tuple[int, int], Span] = {
        (frame, cell((mark.x - start) / (end - start))): Span(mark.glyph, mark.tone)
        for mark in figure.marks
        if start <= mark.x <= end
    }
    for each in reversed(chart.samples.curves):
        num_columns, scale = len(each.spread.broken), chart.samples.scales.get(each.curve.metric)
        places = (np.flatnonzero(each.spread.broken) + 0.5) / num_columns
        signs |= {(frame, cell(share)): Span(style.glyphs.failed, "bad") for share in places.tolist()}
        if scale is None or not (figure.clips or figure.y_ranges):
            continue
        is_faint = each.line is not None and each.has_spread
        for row, is_beyond, sign in zip((top, bottom), edges(*ends(each), scale), style.glyphs.beyond, strict=True):
            tone: Tone = "faint" if is_faint else each.curve.tone
            places = (np.flatnonzero(is_beyond) + 0.5) / num_columns
            signs |= {(row, cell(share)): Span(sign, tone) for share in places.tolist()}
    for row in {row for row, _ in signs}:
        chart.lines[row] = _with(chart.lines[row], {at: span for (where, at), span in signs.items() if where == row})


def _with(spans: Line, signs: Mapping[int, Span]) -> Line:
    """The line with other signs in some cells. Every character is one cell wide."""
    row = [Span(char, span.tone) for span in spans for char in span.text]
    for at, span in signs.items():
        row[at] = span
    return merged(row)


def parsed(text: str, tones: list[Tone], style: ChartStyle) -> list[Line]:
    """plotext's text as lines: its color numbers from FIRST_COLOR on are tones; everything else is plain."""
    lines: list[Line] = []
    for row in text.rstrip("\n").split("\n"):
        spans: list[Span] = []
        tone: Tone = "text"
        for at, part in enumerate(_STYLED.split(row)):
            if at % 2 == 0:
                spans.append(Span(part if style.glyphs.braille else part.translate(_FRAME), tone))
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
