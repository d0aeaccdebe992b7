"""The curves with all the room of the screen: lines at the ticks, and a table of several curves."""

from __future__ import annotations

from rl_tui.tui.charts.drawing import ChartStyle, draw, sample_for
from rl_tui.tui.charts.drawn_metrics import drawn_metrics
from rl_tui.tui.charts.figure import ingredients
from rl_tui.tui.drawing.lines import Line, centered
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.chart import WORDS_HEIGHT, CurvesPane, in_words
from rl_tui.tui.panes.chart_words import chart_words, empty_words, no_value_words
from rl_tui.tui.panes.curve_table import curve_table

TABLE_SHARE = 0.3  # of the height, up to which curves have a line each


class FullChart(CurvesPane):
    """Owns the lines drawn last, which are drawn again only when something in them has changed."""

    def __init__(self) -> None:
        super().__init__()
        self._drawn: list[Line] = []
        self._drawn_of: object = None

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Words or the table above, the curves below; words alone as long as there is no curve."""
        state = self.chart_state(frame)
        figure, metrics = self.figure(frame), drawn_metrics(frame.view, frame.selected, state)
        if figure is None:
            self._drawn_of = None
            return centered(empty_words(frame, metrics), height, width)
        words = [in_words(frame, metric) for metric in metrics]
        drawn_of = ingredients(figure), words, state.has_all_behaviors, frame.glyphs, frame.has_color, width, height
        if drawn_of == self._drawn_of:
            return self._drawn
        has_table = 1 < len(figure.curves) < height * TABLE_SHARE
        num_above = 1 + len(figure.curves) if has_table else int(height >= WORDS_HEIGHT)
        style = ChartStyle(frame.glyphs, frame.has_color, has_rules=True)
        samples = sample_for(figure, width, height - num_above, style)
        chart = draw(figure, width, height - num_above, style, samples)
        if not chart:
            return centered(no_value_words(figure), height, width)
        above = (
            curve_table(frame, figure, samples, width) if has_table else [chart_words(frame, figure, samples, width)]
        )
        self._drawn, self._drawn_of = [*above[:num_above], *chart], drawn_of
        return self._drawn
