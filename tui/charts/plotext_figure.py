"""A figure as plain text, drawn by plotext: for pipes, logs of batch jobs and mail, where there is no screen.

plotext has one figure for all and is not made for threads. Importing it takes 150 ms.
"""

from __future__ import annotations

import re
from typing import Any

from rl_tui.tui.charts.arrays import Floats, np
from rl_tui.tui.charts.drawing import ASCII_LINES
from rl_tui.tui.charts.figure import Figure, Sampled, Samples, sample
from rl_tui.tui.charts.scale import Scale
from rl_tui.tui.charts.x_axis import NAMES, x_ticks
from rl_tui.tui.charts.y_ticks import Rows
from rl_tui.tui.drawing.glyphs import Glyphs

ROWS_AROUND = 5  # the curves: a title, the frame, and numbers and labels below it
_ESCAPES = re.compile(r"\x1b\[[\d;]*m")
_FRAME = str.maketrans("┌┐└┘├┤┬┴┼─│", "+++++++++-|")


def plotext_text(figure: Figure, title: str, y_label: str, width: int, height: int, glyphs: Glyphs) -> str:
    """`height` lines of at most `width` cells: a title, the curves in a frame, axes with labels; "" where nothing
    finite is visible. width, height: at least 40x10, or title and labels leave no room.

    Of several curves each has a sign of its own, and its label at its end.
    """
    import plotext

    rows = Rows(height - ROWS_AROUND, dots=1)
    samples = sample(figure, width * (3 if figure.smoothing > 0 else 2) // 2, shows_spread=False, rows=rows)
    if not samples.scales:
        return ""
    plot: Any = plotext.figure
    plotext.terminal.limit(False, False)
    for part in (plot.clear.data, plot.clear.settings, plot.clear.pixels):
        part()
    plot.theme("colorless")
    plot.plot_size(width, height)
    plot.axes(True)
    front = next(each for each in samples.curves if each.curve.metric in samples.scales)
    _set_axes(plot, figure, samples.scales[front.curve.metric], width, height)
    plot.title(title)
    plot.label(NAMES[figure.x_axis], "x")
    plot.label(y_label, "y")
    start, end = figure.viewport.shown
    for at, one in reversed(list(enumerate(samples.curves))):  # the first lies in front
        scale = samples.scales.get(one.curve.metric)
        if scale is not None:
            column = (end - start) / len(one.spread.low)
            _draw_curve(plot, one, scale, column, _marker(at, glyphs))
            if len(figure.curves) > 1 and one.curve.label not in ("", glyphs.evaluation):
                _draw_label(plot, one, scale, column)
    _draw_points(plot, samples, figure.viewport.shown, glyphs)
    text = _ESCAPES.sub("", plot.build().string()).rstrip("\n")
    lines = [row.rstrip() for row in text.split("\n")]
    return "\n".join(lines if glyphs.braille else [row.translate(_FRAME) for row in lines])


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


def _marker(at: int, glyphs: Glyphs) -> str:
    return "braille" if glyphs.braille and at == 0 else ASCII_LINES[at % len(ASCII_LINES)]


def _draw_curve(plot: Any, sampled: Sampled, scale: Scale, width: float, marker: str) -> None:
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


def _draw_label(plot: Any, sampled: Sampled, scale: Scale, width: float) -> None:
    """The label behind the curve's last visible value; none where another curve alone has a value there."""
    values = sampled.spread.high if sampled.line is None else sampled.line
    known = np.flatnonzero(np.isfinite(values))
    if len(known):
        last = known[-1:]
        places = ((last + 1) * width).tolist(), _shares(scale, values[last]).tolist()
        plot.draw(plot.signal(*places, marker=sampled.curve.label))


def _draw_points(plot: Any, samples: Samples, x_range: tuple[float, float], glyphs: Glyphs) -> None:
    """A sign on each point of the curves that have points."""
    start, end = x_range
    for curve in (each.curve for each in samples.curves if each.curve.has_points):
        shown = (curve.xs >= start) & (curve.xs <= end) & np.isfinite(curve.mean)
        scale = samples.scales.get(curve.metric)
        if scale is not None and shown.any():
            heights = _shares(scale, curve.mean[shown])
            plot.draw(plot.signal((curve.xs[shown] - start).tolist(), heights.tolist(), marker=glyphs.evaluation))
