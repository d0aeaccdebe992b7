"""The chart on the whole screen."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.full_chart import FullChart
from rl_tui.tui.screens.base import RunScreen
from rl_tui.tui.screens.chart_actions import ChartActions


class ChartScreen(ChartActions, RunScreen):
    """One chart, with every key of the smaller ones."""

    BINDINGS = bindings("chart")
    places = ("chart",)

    def body(self) -> Iterable[Widget]:
        """The chart."""
        yield FullChart()
