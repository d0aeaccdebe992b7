"""Charts of single metrics side by side, a page of them at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from textual import events
from textual.containers import Grid

from rl_tui.engine.session.view import RunView
from rl_tui.tui.charts.drawn_metrics import drawn_metrics
from rl_tui.tui.charts.metrics import USUAL, grid_metrics
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.chart import ChartPane, MetricChart
from rl_tui.tui.panes.histogram import HistogramPane
from rl_tui.tui.state.choices import ScreenState

SHAPE = 4.0  # width by height, in cells, in which a chart is read best


class MetricGrid(Grid):
    """Runs in the app's thread. Owns its charts, of which as many are visible as fit.

    least: the width and height, in cells, below which no chart is drawn beside others. first: a chart of its own that
    stands before those of the metrics on every page, where there is room for two. last: the returns, which come after
    the metrics of a behavior that has any.
    """

    def __init__(
        self,
        num_charts: int,
        least: tuple[int, int],
        first: ChartPane | None = None,
        last: HistogramPane | None = None,
        *,
        id: str | None = None,
    ) -> None:
        self._first, self._last, self._least = first, last, least
        self._charts = [MetricChart(number, USUAL[number % len(USUAL)]) for number in range(num_charts)]
        super().__init__(*([first] if first else []), *self._charts, *([last] if last else []), id=id)
        self.num_pages = 1
        self.shown: list[str] = []  # the metrics of the visible charts
        self._arranged: object = None

    def on_resize(self, _: events.Resize) -> None:
        """Other charts may fit."""
        self.call_later(self.run_action, "screen.redraw")

    def lay_out(self, frame: Frame, elsewhere: Sequence[str] = ()) -> bool:
        """Each chart has its metric of the page that the state names; returns whether other charts are visible."""
        self.shown = []
        if not self.size.width or not self.size.height:
            return False
        metrics = metrics_of(frame.view, frame.state)
        num_first = int(self._first is not None)
        num_last = int(self._last is not None and (frame.behavior is None or frame.behavior.has_returns))
        most = len(self._charts) + num_last
        size = (self.size.width, self.size.height)
        num_wanted = max(1, num_first + min(len(metrics) + num_last, most))
        columns, rows = arranged(num_wanted, size, self._least)
        metrics = metrics_of(frame.view, frame.state, min(columns * rows - num_first, most) - num_last)
        num_entries = len(metrics) + num_last
        has_first = num_first < columns * rows
        room = max(1, min(columns * rows - num_first * has_first, most))
        self.num_pages = max(1, -(-num_entries // room))
        page = frame.state.chart.page % self.num_pages
        self.shown = metrics[page * room : (page + 1) * room]
        for chart, metric in zip(self._charts, self.shown, strict=False):
            chart.metric = metric
        has_last = num_last > 0 and page == self.num_pages - 1
        panes: list[MetricChart | HistogramPane] = [*self._charts[: len(self.shown)]]
        panes += [self._last] if self._last is not None and has_last else []
        for number, pane in enumerate(panes):
            pane.note = f"page {page + 1}/{self.num_pages}" if number == 0 and self.num_pages > 1 else ""
        return self.show_charts((columns, rows, len(self.shown), has_first, has_last))

    def show_charts(self, wanted: tuple[int, int, int, bool, bool]) -> bool:
        """Columns, rows, charts of metrics, whether the first and the last stand with them; returns whether any of that
        has changed."""
        if wanted == self._arranged:
            return False
        self._arranged = wanted
        columns, rows, num_shown, has_first, has_last = wanted
        self.styles.grid_size_columns, self.styles.grid_size_rows = columns, rows
        for number, chart in enumerate(self._charts):
            chart.display = number < num_shown
        for pane, is_shown in ((self._first, has_first), (self._last, has_last)):
            if pane is not None:
                pane.display = is_shown
        return True


def metrics_of(view: RunView, state: ScreenState, most: int = 0) -> list[str]:
    """All that the grid has of the selected behavior, or with all of them drawn, of any.

    most: charts for which there is room, which others fill up.
    """
    behavior = state.behavior_in(view)
    if behavior is None:
        return list(USUAL)
    owners = view.behaviors.values() if state.chart.has_all_behaviors else [behavior]
    tags = [tag for each in owners for tag in each.tags]
    pinned = state.chart.pinned.get(behavior.algorithm, ())
    drawn = drawn_metrics(view, state.selected_in(view), state.chart)
    return grid_metrics(tags, pinned, drawn, behavior.headline_metrics, most)


def arranged(num_charts: int, size: tuple[int, int], least: tuple[int, int]) -> tuple[int, int]:
    """(columns, rows) for so many charts, or as many as fit into so many cells: those in which they are read best."""
    width, height = size
    most_columns, most_rows = (max(1, cells // smallest) for cells, smallest in zip(size, least, strict=True))

    def rows_of(columns: int) -> int:
        return min(-(-num_charts // columns), most_rows)

    def distance(columns: int) -> float:
        return abs(math.log(width / columns / (height / rows_of(columns)) / SHAPE))

    columns = min(range(1, most_columns + 1), key=distance)
    return columns, rows_of(columns)
