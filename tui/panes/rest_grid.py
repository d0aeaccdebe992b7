"""Charts in the room that another pane does not need."""

from __future__ import annotations

from collections.abc import Sequence

from textual.widget import Widget

from rl_tui.engine.session.behavior_view import EVALUATION
from rl_tui.engine.session.history import History
from rl_tui.engine.session.view import RunView
from rl_tui.tui.charts.drawn_metrics import drawn_metrics
from rl_tui.tui.charts.metrics import metric_order
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.panes.metric_grid import MetricGrid, arranged, metrics_of
from rl_tui.tui.state.choices import ScreenState

LEAST = 40, 6  # cells of a chart


class RestGrid(MetricGrid):
    """Below a pane that keeps the rows it wants: charts of metrics that no other grid shows. It has no height where
    that leaves too little for one.

    beside: the pane, whose height must be `1fr` in app.tcss, in a container that shows these two alone. share: of the
    height of both that the pane keeps whatever it wants, for one that gets more and more lines; 0: the rows it wants.
    """

    def __init__(self, num_charts: int, beside: Pane, share: float = 0.0) -> None:
        super().__init__(num_charts, LEAST)
        self._beside, self._share = beside, share
        self._height = 0
        self.styles.height = 0

    def lay_out(self, frame: Frame, elsewhere: Sequence[str] = ()) -> bool:
        """elsewhere: the metrics that other grids show."""
        width, room = self._room(frame)
        has_room = room >= LEAST[1] and width >= LEAST[0]
        metrics = [tag for tag in rest_metrics(frame.view, frame.state) if tag not in elsewhere] if has_room else []
        columns, rows = arranged(min(len(metrics), len(self._charts)) or 1, (max(1, width), max(1, room)), LEAST)
        self.shown = metrics[: min(columns * rows, len(self._charts))]
        for chart, metric in zip(self._charts, self.shown, strict=False):
            chart.metric = metric
        height = room if self.shown else 0
        has_changed = self.show_charts((columns, rows, len(self.shown), False, False)) or height != self._height
        if height != self._height:
            self._height = height
            self.styles.height = height
        return has_changed

    def _room(self, frame: Frame) -> tuple[int, int]:
        """Width, and the rows that the pane beside does not need."""
        beside = self._beside
        if not self.display or not beside.size.width:
            return 0, 0
        assert isinstance(self.parent, Widget)
        both = self.parent.size.height  # is the same whatever the two have of it
        wanted = beside.height_for(frame, beside.size.width) + beside.gutter.height
        kept = round(both * self._share) if self._share else wanted
        return beside.outer_size.width, both - min(kept, both)


def rest_metrics(view: RunView, state: ScreenState) -> list[str]:
    """Those of the grid, then every other one of the selected behavior; none before its first summary, and none that
    has had one value only."""
    behavior = state.behavior_in(view)
    if behavior is None or not behavior.metrics:
        return []
    drawn = drawn_metrics(view, state.selected_in(view), state.chart)
    drawn += [EVALUATION] if behavior.has_returns else []
    order = [tag for tag in metric_order(behavior.tags, behavior.headline_metrics) if tag not in drawn]
    return [
        tag
        for tag in dict.fromkeys((*metrics_of(view, state), *order))
        if tag in behavior.histories and not is_constant(behavior.histories[tag])
    ]


def is_constant(history: History) -> bool:
    """Whether it had the same value at every step, more often than once."""
    return len(history) > 1 and all(value == history.mean[0] for value in history.mean)
