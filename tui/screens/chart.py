"""The chart on the whole screen, drawn by plotext."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from textual.widget import Widget

from rl_tui.tui.charts.drawing import ChartStyle
from rl_tui.tui.charts.figure import ingredients
from rl_tui.tui.charts.metrics import metric_title
from rl_tui.tui.charts.plotext_figure import SMALLEST, PlotextChart, load, plotext_chart
from rl_tui.tui.drawing.lines import Line, Span, centered
from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.base import BEAT, Frame
from rl_tui.tui.panes.chart import CurvesPane
from rl_tui.tui.panes.chart_words import chart_heading, chart_words, empty_words, no_value_words
from rl_tui.tui.screens.base import RunScreen
from rl_tui.tui.screens.chart_actions import ChartActions


class ChartScreen(ChartActions, RunScreen):
    """One chart, with every key of the smaller ones."""

    BINDINGS = bindings("chart")
    places = ("chart",)

    def body(self) -> Iterable[Widget]:
        """The chart."""
        yield PlotextPane()


class PlotextPane(CurvesPane):
    """Runs in the app's thread, in which plotext draws; plotext itself is imported in another, once."""

    seconds = 2 * BEAT  # plotext takes 10 ms and more

    def __init__(self) -> None:
        super().__init__()
        self._is_loaded = False
        self._chart: PlotextChart | None = None
        self._drawn_of: object = None

    def on_mount(self) -> None:
        """The pane says that it is drawing until plotext is there."""
        self.run_worker(self._load())

    async def _load(self) -> None:
        await asyncio.to_thread(load)
        self._is_loaded = True
        self._redraw()

    def heading(self, frame: Frame) -> str:
        """plotext's title says what is drawn."""
        return "Chart"

    def inputs(self, frame: Frame) -> object:
        """Also whether plotext is there."""
        return super().inputs(frame), self._is_loaded

    @property
    def first_cell(self) -> int:
        """plotext's walls stand where its labels end."""
        return self._chart.first_cell if self._chart else super().first_cell

    @property
    def num_cells(self) -> int:
        """Columns between plotext's walls."""
        return self._chart.num_cells if self._chart else super().num_cells

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Words above, plotext's figure below, or the overview's where that has no room; words alone without one."""
        state = self.chart_state(frame)
        figure = self.figure(frame)
        if figure is None:
            return centered(empty_words(frame, state.metrics), height, width)
        if width < SMALLEST[0] or height < SMALLEST[1] + 1:
            self._chart = None
            return super().lines(frame, width, height)
        if not self._is_loaded:
            return centered([Span(f"drawing {frame.glyphs.ellipsis}", "wait")], height, width)
        style, title = ChartStyle(frame.glyphs, frame.has_color), chart_heading(frame, state)
        drawn_of = (*ingredients(figure), style, title, width, height)
        if self._chart is None or drawn_of != self._drawn_of:
            titles = " + ".join(metric_title(tag) for tag in state.metrics)
            self._chart, self._drawn_of = plotext_chart(figure, title, titles, width, height - 1, style), drawn_of
        if not self._chart.lines:
            return centered(no_value_words(figure), height, width)
        return [chart_words(frame, figure, self._chart.samples, width, self._chart.num_cells), *self._chart.lines]
