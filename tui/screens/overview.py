"""The main screen: everything about the run at one glance, and the keys that act on it."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.painting import Patch
from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.behaviors import BehaviorsPane
from rl_tui.tui.panes.chart import CurvesPane
from rl_tui.tui.panes.checkpoints import CheckpointsPane
from rl_tui.tui.panes.compact import CompactPane
from rl_tui.tui.panes.detail import DetailPane
from rl_tui.tui.panes.devices import DevicesPane
from rl_tui.tui.panes.environments import NoticePane, has_only_notice
from rl_tui.tui.panes.histogram import HistogramPane
from rl_tui.tui.panes.log_list import LEVEL_WORDS, LogList
from rl_tui.tui.panes.metric_grid import MetricGrid
from rl_tui.tui.panes.rest_grid import RestGrid
from rl_tui.tui.panes.summary import SummaryPane
from rl_tui.tui.screens.chart_actions import ChartActions
from rl_tui.tui.screens.context import Context

NUM_METRIC_CHARTS = 6
NUM_REST_CHARTS = 2
SMALLEST_CHART = (24, 6)
SCREEN_OF = {"behaviors": "detail"}  # by the focused pane's topic; the other topics are called as their screens


class LogPane(LogList):
    """The newest lines of the log."""

    cursor_width = 1

    def heading(self, frame: Frame) -> str:
        """Which lines are shown."""
        whose = f" of {safe_text(frame.behavior.name)}" if frame.state.log_is_of_selected and frame.behavior else ""
        return f"Log{whose} {frame.glyphs.dot} {LEVEL_WORDS[frame.state.log_level]}"


class OverviewScreen(ChartActions):
    """Everything about the run at one glance."""

    BINDINGS = bindings("overview")
    places = ("overview",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._behaviors = BehaviorsPane()

    def body(self) -> ComposeResult:
        """Every pane of every layout; app.tcss shows those that fit the size."""
        with Horizontal(id="upper"):
            with Vertical(id="main"):
                yield self._behaviors
                with Horizontal(id="charts"):
                    yield CurvesPane()
                    yield MetricGrid(NUM_METRIC_CHARTS, SMALLEST_CHART, id="metrics")
            with Vertical(id="side"):
                detail = DetailPane()
                yield detail
                yield HistogramPane()
                yield RestGrid(NUM_REST_CHARTS, detail)
        yield NoticePane()
        yield SummaryPane()
        with Horizontal(id="strip"):
            yield CheckpointsPane()
            yield DevicesPane()
        yield LogPane()
        yield CompactPane()

    def draw(self, frame: Frame) -> list[Patch]:
        """Bring every pane up to `frame` and return what is to be painted."""
        if frame.view.is_over != self.has_class("-over"):
            self.toggle_class("-over")
        if has_only_notice(frame.view) != self.has_class("-notice"):
            self.toggle_class("-notice")
            self.call_after_refresh(self.context.redraw)
        if self.focused is None:  # the pane that had the keys was hidden
            self._behaviors.focus()
        return super().draw(frame)

    def action_move(self, by: int) -> None:
        """Select a neighbor, of those that the filter shows."""
        if self.context.state.filters.get(BehaviorsPane.topic):
            self._behaviors.action_cursor(by)
        else:
            super().action_move(by)

    def action_open(self) -> None:
        """The screen of the pane that has the keys."""
        topic = self.pane.topic if self.pane is not None else BehaviorsPane.topic
        self.action_open_screen(SCREEN_OF.get(topic, topic))
