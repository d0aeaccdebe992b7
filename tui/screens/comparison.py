"""Up to six runs of the folder in one chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.app import ComposeResult
from textual.containers import Container

from rl_tui.engine.session.behavior_view import RETURN
from rl_tui.tui.charts.compared_figure import Compared
from rl_tui.tui.charts.curve import XAxis, history_curve, nearest
from rl_tui.tui.charts.drawn_metrics import chosen_or_first
from rl_tui.tui.charts.metrics import metric_order
from rl_tui.tui.charts.state import ChartState
from rl_tui.tui.drawing.painting import Patch
from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.comparison import ComparisonChart, ComparisonLegend, compared
from rl_tui.tui.panes.comparison_settings import ComparisonSettings
from rl_tui.tui.runs.comparing import Comparison, RunChoice
from rl_tui.tui.screens.base import RunScreen
from rl_tui.tui.screens.chart_actions import ChartActions
from rl_tui.tui.screens.context import Context

BORDERS = 2  # cells, of one table
NARROWEST = 100  # cells of a screen whose panes have borders
HIGHEST = 0.3  # of the screen, for settings beside the legend; the chart needs the rest


class ComparisonScreen(ChartActions):
    """Reads the runs while it is open. Its chart is looked at apart from those of the run on screen."""

    BINDINGS = bindings("comparison")
    places = ("comparison",)

    def __init__(self, context: Context, name: str, chosen: Sequence[RunChoice]) -> None:
        super().__init__(context, name)
        own = context.view.run.run_id if context.view.run is not None else ""
        looked_at = context.state.chart
        self.comparison = Comparison(chosen, own)
        self._chart = ChartState(
            metrics=list(looked_at.metrics) or [RETURN],
            smoothing=looked_at.smoothing,
            x_axis="steps" if self.comparison.has_groups and looked_at.x_axis == "wall" else looked_at.x_axis,
            is_log=looked_at.is_log,
            clips_outliers=looked_at.clips_outliers,
            y_ranges=dict(looked_at.y_ranges),
        )
        self._curves = ComparisonChart(self.comparison, self._chart)
        self._legend = ComparisonLegend(self.comparison, self._curves)
        self._settings = ComparisonSettings(self.comparison, self._curves)
        self._tables = Container(id="tables")
        self._was_read, self._has_first = False, not looked_at.metrics

    def body(self) -> ComposeResult:
        """The chart, a line on each run, and in what their settings differ."""
        yield self._curves
        with self._tables:
            yield self._legend
            yield self._settings

    def draw(self, frame: Frame) -> list[Patch]:
        """As every screen; the tables stand side by side, equally high, where nothing of either is cut by that."""
        self._choose_first_metrics()
        width = self._legend.wanted_width(frame) + 1  # a blank before the border
        is_beside = width + self._settings.wanted_width(frame) + 2 * BORDERS <= self.size.width >= NARROWEST
        if is_beside:
            least, most = (pane.wanted_height(frame, width) for pane in (self._legend, self._settings))
            self._tables.styles.height = BORDERS + max(least, min(most, int(HIGHEST * self.size.height)))
            self._legend.styles.width = width + BORDERS
        else:
            self._tables.styles.height = self._legend.styles.width = None
        if is_beside != self.has_class("-beside"):
            self.set_class(is_beside, "-beside")
            self.call_after_refresh(self.context.redraw)
        return super().draw(frame)

    def _choose_first_metrics(self) -> None:
        """Once all is read: where the user has chosen none, what shows the progress of these runs."""
        if self._was_read or not all(run.is_read for run in self.comparison.runs.values()):
            return
        self._was_read = True
        behaviors = [each.behavior for shown in self._compared() for each in shown.members]
        is_chosen = not self._has_first or self._chart.metrics != [RETURN]
        self._chart.metrics = chosen_or_first(self._chart.metrics if is_chosen else [], behaviors)

    def on_mount(self) -> None:
        """Reading begins."""
        if self.context.runs is not None:
            self.run_worker(self.comparison.read(self.context.runs))

    def on_unmount(self) -> None:
        """Reading ends."""
        self.comparison.close()

    def action_open_screen(self, name: str) -> None:
        """Another screen takes the place of the runs from which this one was opened."""
        self.app.pop_screen()
        below = self.app.screen
        if name != below.name and isinstance(below, RunScreen):
            below.action_open_screen(name)
        else:
            below.call_after_refresh(self.context.redraw)

    @property
    def chart_state(self) -> ChartState:
        """That of this chart alone."""
        return self._chart

    @property
    def drawn(self) -> list[str]:
        """Those chosen for it."""
        return list(self._chart.metrics)

    def choose(self, metrics: Sequence[str]) -> None:
        """Draw these."""
        self._chart.metrics = list(metrics)

    def tags(self) -> Mapping[str, str]:
        """Every metric of the runs, with a word on whose it is."""
        shown = self._compared()
        order = metric_order(tag for each in shown for tag in each.tags)
        num_with = {tag: sum(tag in each.tags for each in shown) for tag in order}
        return {tag: "" if num_with[tag] == len(shown) else f"{num_with[tag]} of {len(shown)}" for tag in order}

    def pinned(self) -> list[str] | None:
        """There is no grid of several runs."""
        return None

    def place_on(self, x: float, x_axis: XAxis) -> float:
        """Where x of the present axis lies on another, as the first of the runs went."""
        for each in self._compared():
            curves = [
                history_curve(max(each.members[0].behavior.histories.values(), key=len), axis, each.members[0].origin)
                for axis in (self._chart.x_axis, x_axis)
            ]
            if len(curves[0].xs):
                return float(curves[1].xs[nearest(curves[0].xs, x)])
        return x

    def action_x_axis(self) -> None:
        """The next unit of x. Groups are not drawn by the time of day: no two runs share it."""
        super().action_x_axis()
        if self.comparison.has_groups and self._chart.x_axis == "wall":
            super().action_x_axis()

    def action_group(self) -> None:
        """Mean and range of the runs of each configuration, or every run's own curve."""
        if not self.comparison.rearrange():
            is_reading = not all(run.is_read for run in self.comparison.runs.values())
            why = (
                "the runs are still being read" if is_reading else "no two of these runs differ in nothing but the seed"
            )
            self.say(f"group: {why}")
        elif self.comparison.has_groups and self._chart.x_axis == "wall":
            super().action_x_axis()
        else:
            self.context.redraw()

    def action_metric(self, by: int) -> None:
        """The next metric that any of the runs has."""
        order = list(self.tags())
        self._chart.next_metric(order, by)
        if len(order) < 2:
            self.say("metric: these runs have no other")
        else:
            self.context.redraw()

    def action_all_behaviors(self) -> None:
        """Every behavior of each run, or one."""
        if not self._chart.has_all_behaviors and not any(
            len(run.behaviors(self.context.view)) > 1 for run in self.comparison.runs.values()
        ):
            self.say("behaviors: each of these runs has only one behavior")
            return
        self._chart.has_all_behaviors = not self._chart.has_all_behaviors
        self.context.redraw()

    def _compared(self) -> list[Compared]:
        selected = self.context.controls.selected
        wanted = selected.name if selected is not None else ""
        return compared(self.comparison, self._chart, wanted, self.context.view)
