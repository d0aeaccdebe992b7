"""One behavior by itself: everything known of it, its curves, its checkpoints, what happened to it."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical

from rl_tui.engine.session.messages import LogLevel
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.painting import Patch
from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.behavior_page import BehaviorPage, failure_texts
from rl_tui.tui.panes.chart import CurvesPane
from rl_tui.tui.panes.checkpoints import CheckpointsPane
from rl_tui.tui.panes.histogram import HistogramPane
from rl_tui.tui.panes.list import ListPane
from rl_tui.tui.panes.log_list import LogList, Selection
from rl_tui.tui.panes.metric_grid import MetricGrid
from rl_tui.tui.panes.rest_grid import RestGrid
from rl_tui.tui.screens.chart_actions import ChartActions

NUM_METRIC_CHARTS = 6
NUM_REST_CHARTS = 2
SHARE_OF_LOG = 0.4  # of the rows that are left for it
SMALLEST_CHART = (24, 6)


class BehaviorLog(LogList):
    """The lines of the log about the selected behavior; those for debugging only where the log has them, too."""

    topic = "happened"
    cursor_width = 1

    def heading(self, frame: Frame) -> str:
        """Whose lines they are."""
        return f"Log of {safe_text(frame.behavior.name)}" if frame.behavior else "Log"

    def empty(self, frame: Frame) -> str:
        """Nothing yet."""
        return "no line yet"

    def _selection_of(self, frame: Frame) -> Selection:
        lowest: LogLevel = "debug" if frame.state.log_level == "debug" else "info"
        return lowest, frame.behavior.name if frame.behavior else None


class DetailScreen(ChartActions):
    """The selected behavior; the keys that select another one work here too."""

    BINDINGS = bindings("detail")
    places = ("detail",)
    AUTO_FOCUS = "BehaviorPage"

    def draw(self, frame: Frame) -> list[Patch]:
        """A traceback needs the width of the screen: the page of a behavior that failed lies above the rest.

        Where there is a histogram of the returns, the page has no list of them.
        """
        behavior, has_failures = frame.behavior, bool(frame.view.failures)
        has_failed = behavior.state == "failed" if behavior is not None else has_failures
        if has_failed != self.has_class("-failed"):
            self.set_class(has_failed, "-failed")
            self.call_after_refresh(self.context.redraw)
        has_histogram = any(pane.size.width for pane in self.query(HistogramPane))
        for page in self.query(BehaviorPage):
            page.lists_returns = not has_histogram
        return super().draw(frame)

    def action_copy(self) -> None:
        """The value below the crosshair, or the line of a focused list; else why it failed, unwrapped."""
        texts = failure_texts(self.context.controls.selected, self.context.view)
        if self.chart_state.crosshair is not None or isinstance(self.pane, ListPane):
            super().action_copy()
        elif texts:
            self.copy("\n".join(texts))
        else:
            self.say("copy: nothing has failed; x turns the crosshair on, y copies the value below it")

    def body(self) -> ComposeResult:
        """Every pane of every layout; app.tcss shows those that fit the size."""
        page, log = BehaviorPage(), BehaviorLog()
        with Horizontal(id="detail"):
            with Vertical(id="page"):
                yield page
                yield RestGrid(NUM_REST_CHARTS, page)
            with Container(id="beside"):
                with Vertical(id="curves"):
                    yield CurvesPane()
                    yield MetricGrid(NUM_METRIC_CHARTS, SMALLEST_CHART, id="small")
                with Vertical(id="records"):
                    yield HistogramPane()
                    yield CheckpointsPane()
                    with Vertical(id="happened"):
                        yield log
                        yield RestGrid(NUM_REST_CHARTS, log, SHARE_OF_LOG)
