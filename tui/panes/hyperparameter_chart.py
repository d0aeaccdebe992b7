"""The course of the hyperparameter below the cursor, as its schedule and the user moved it."""

from __future__ import annotations

from rl_tui.tui.drawing.painting import Spot
from rl_tui.tui.panes.base import Condition, Frame
from rl_tui.tui.panes.chart import MetricChart
from rl_tui.tui.panes.hyperparameter_list import HyperparameterList, metric_of


class HyperparameterChart(MetricChart):
    """Its metric; the return or the rating where it has none, with the changes on the x axis."""

    def __init__(self, hyperparameters: HyperparameterList) -> None:
        super().__init__(0, "")
        self._list = hyperparameters

    def check(self, frame: Frame, spot: Spot | None) -> Condition:
        """Of another hyperparameter once the cursor is there."""
        entry, behavior = self._list.current(frame), frame.behavior
        metric = metric_of(entry.key) if entry is not None else ""
        self.metric = metric if behavior is not None and metric in behavior.histories else ""
        return super().check(frame, spot)
