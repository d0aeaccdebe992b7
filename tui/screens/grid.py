"""The chart among those of the pinned metrics, on the whole screen."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.chart import CurvesPane
from rl_tui.tui.panes.histogram import HistogramPane
from rl_tui.tui.panes.metric_grid import MetricGrid
from rl_tui.tui.screens.chart_actions import ChartActions

MOST_CHARTS = 11  # besides the first; more could not be read at any size
SMALLEST_CHART = (30, 8)


class GridScreen(ChartActions):
    """As many charts as fit, with the x axis and the crosshair of the first one."""

    BINDINGS = bindings("grid")
    places = ("grid",)

    def body(self) -> Iterable[Widget]:
        """What the user chose first, then the pinned metrics, and how the returns are spread."""
        yield MetricGrid(MOST_CHARTS, SMALLEST_CHART, CurvesPane(), HistogramPane(), id="grid")
