"""A line for each curve of a chart: its last, lowest and highest value, and that below the crosshair."""

from __future__ import annotations

from rl_tui.tui.charts.around_plot import GUTTER
from rl_tui.tui.charts.figure import Figure, Sampled, Samples, crosshair_points
from rl_tui.tui.charts.headline import headline, kind_of
from rl_tui.tui.charts.x_axis import x_label
from rl_tui.tui.drawing.lines import Line, Span, flush, line
from rl_tui.tui.drawing.text import left, num_cells, number, right
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.chart_words import all_in_sight, mark_words, notes_on
from rl_tui.tui.panes.crosshair_words import marks_at

NAME_WIDTH = 30  # cells, of the longest
COLUMN = 10  # cells of a value
TITLES = ("last", "lowest", "highest")


def curve_table(frame: Frame, figure: Figure, samples: Samples, width: int) -> list[Line]:
    """A header, at whose right is what one must know of the chart, and the curves in their order."""
    plot_width = max(1, width - GUTTER)
    x, (start, end) = figure.crosshair, figure.viewport.shown
    has_cross = x is not None and start <= x <= end
    names = min(NAME_WIDTH, max(num_cells(each.curve.name) for each in samples.curves))
    titles = "".join(right(title, COLUMN) for title in TITLES)
    below: dict[str, float] = {}
    beside = notes_on(frame, figure, samples, width) or all_in_sight(figure, samples) or mark_words(figure)
    at: Line = ()
    if x is not None and has_cross:
        below = {point.curve.source: point.drawn for point in crosshair_points(figure, x, plot_width)}
        place = x_label(x, figure.x_axis, (end - start) / plot_width / 10)
        at = line(Span(right(place, COLUMN + 2), "accent"))
        beside = line(*(Span(f"{mark.glyph} {mark.text or mark.word} ", mark.tone)
                        for mark in marks_at(figure, x, plot_width))) or beside  # fmt: skip
    kind = kind_of(figure, samples.curves[0].curve)
    head = line(Span(f" {left(kind, names + 2)}{titles}", "dim"), *at)
    rows = [_row(each, figure, samples, names) for each in samples.curves]
    if has_cross:
        rows = [
            line(*row, Span(right(number(below.get(each.curve.source)), COLUMN + 2), "strong"))
            for each, row in zip(samples.curves, rows, strict=True)
        ]
    return [flush(head, beside, width), *rows]


def _row(sampled: Sampled, figure: Figure, samples: Samples, names: int) -> Line:
    """Sign, name and values; its range where it has a scale of its own."""
    curve, found = sampled.curve, headline(figure, sampled.curve)
    values = (found.last, found.lowest, found.highest) if found is not None else (None, None, None)
    last, *others = (right(number(value), COLUMN) for value in values)
    scale = samples.scales.get(curve.metric) if samples.has_own_scales else None
    own = f"  axis {' to '.join(number(end) for end in scale.ends)}" if scale is not None else ""
    name = Span(f" {left(f'{curve.label} {curve.name}'.strip(), names + 2)}", curve.tone)
    return line(name, Span(last, "strong"), "".join(others), Span(own, "dim"))
