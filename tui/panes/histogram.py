"""How the last returns are spread."""

from __future__ import annotations

from tui.charts.histogram import histogram_chart, mean_and_deviation
from tui.lines import Line, Span, line, wrap
from tui.panes.base import Frame, Pane
from tui.text import count, number


class HistogramPane(Pane):
    """The returns of the episodes that ended in the newest summary period."""

    seconds = 60.0  # it changes with a summary, which is among its inputs

    def inputs(self, frame: Frame) -> object:
        """The newest summary's."""
        return frame.behavior and (frame.behavior.name, frame.behavior.histogram)

    def heading(self, frame: Frame) -> str:
        """What is counted."""
        return "Returns of the last summary"

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Mean and deviation, then the columns."""
        histogram = frame.behavior.histogram if frame.behavior else None
        if histogram is None or not histogram.count:
            words = wrap("comes with the first summary that sees an episode end", width - 2, 2)
            return [line(Span(f" {row}", "dim")) for row in words]
        mean, deviation = mean_and_deviation(histogram.count, histogram.total, histogram.total_squares)
        first = line(
            Span(" mean ", "dim"), number(mean), Span("  deviation ", "dim"), number(deviation),
            Span(f"  of {count(histogram.count)} episodes", "dim"),
        )  # fmt: skip
        chart = histogram_chart(
            (histogram.minimum, histogram.maximum), histogram.counts, width - 2, height - 1, frame.glyphs, frame.tone
        )
        return [first, *(line(" ", *row) for row in chart)]
