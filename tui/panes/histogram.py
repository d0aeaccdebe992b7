"""How the last returns are spread."""

from __future__ import annotations

from collections.abc import Sequence

from rl_tui.engine.session.messages import Histogram
from rl_tui.tui.charts.histogram import Bin, bins_of, gutter_of, histogram_chart, histogram_rows, mean_and_deviation
from rl_tui.tui.drawing.lines import Line, Span, line, pack, wrap
from rl_tui.tui.drawing.text import count, number
from rl_tui.tui.panes.base import Frame, Pane


class HistogramPane(Pane):
    """The returns of the episodes that ended in the newest summary period. note: a word beside the title."""

    seconds = 60.0  # it changes with a summary, which is among its inputs

    def __init__(self) -> None:
        super().__init__()
        self.note = ""

    def inputs(self, frame: Frame) -> object:
        """The newest summary's."""
        return frame.behavior and (frame.behavior.name, frame.behavior.histogram)

    def heading(self, frame: Frame) -> str:
        """What is counted."""
        return f" {frame.glyphs.dot} ".join(part for part in ("Returns in the last summary", self.note) if part)

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Of how many episodes, how wide the bins are, mean and deviation; then the columns."""
        histogram = frame.behavior.histogram if frame.behavior else None
        if histogram is None or not histogram.count:
            has_returns = frame.behavior is None or frame.behavior.has_returns
            awaited = "appears with the first summary in which an episode ends"
            words = awaited if has_returns else "none: it learns from demonstrations"
            return [line(Span(f" {row}", "dim")) for row in wrap(words, width - 2, 2)]
        gutter = gutter_of(histogram)
        bins = bins_of(histogram, width - 2 - gutter)
        chart = histogram_chart(bins, gutter, width - 2, height - 1, frame.glyphs, frame.tone)
        return [_words(histogram, bins, width), *(line(" ", *row) for row in chart)]


def returns_lines(histogram: Histogram | None, frame: Frame, width: int) -> list[Line]:
    """The same as a list of bins; nothing before the first summary that saw an episode end."""
    if histogram is None or not histogram.count:
        return []
    return [_words(histogram, [], width), *histogram_rows(histogram, width, frame.glyphs, frame.tone)]


def _words(histogram: Histogram, bins: Sequence[Bin], width: int) -> Line:
    """As much as there is room for, in the order in which one needs it."""
    mean, deviation = mean_and_deviation(histogram.count, histogram.total, histogram.total_squares)
    episodes = line(Span(f" {count(histogram.count)} episode{'' if histogram.count == 1 else 's'}", "dim"))
    size = line(Span(f"bins of {number(bins[0].high - bins[0].low)}" if len(bins) > 1 else "", "dim"))
    figures = [line(Span("mean ", "dim"), number(mean)), line(Span("deviation ", "dim"), number(deviation))]
    return pack([episodes, size, *figures], width, gap=2)
