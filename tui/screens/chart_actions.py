"""The keys of every screen with a chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rl_tui.tui.charts.curve import XAxis
from rl_tui.tui.charts.drawn_metrics import drawn_behaviors, drawn_metrics, first_metrics
from rl_tui.tui.charts.figure import Figure
from rl_tui.tui.charts.metrics import metric_order, metric_title
from rl_tui.tui.charts.run_figure import place_on
from rl_tui.tui.charts.state import LARGEST_SMOOTHING, X_AXES, ChartState
from rl_tui.tui.charts.x_axis import NAMES
from rl_tui.tui.charts.y_range import AUTOMATIC, range_text, range_words, typed_range
from rl_tui.tui.drawing.painting import Patch, spots
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.chart import ChartPane, CurvesPane
from rl_tui.tui.panes.chart_words import window_words
from rl_tui.tui.panes.crosshair_words import copied
from rl_tui.tui.panes.metric_grid import MetricGrid, metrics_of
from rl_tui.tui.panes.rest_grid import RestGrid
from rl_tui.tui.screens.base import RunScreen
from rl_tui.tui.screens.prompt import PromptScreen, Verdict


class ChartActions(RunScreen):
    """What the user chooses to see of the curves. Each key shows at once, or says why nothing changed.

    A screen whose chart is not of its run says in `chart_state`, `drawn`, `tags`, `choose`, `pinned` and `place_on`
    what holds instead.
    """

    _grid: MetricGrid | None = None
    _grids: Sequence[MetricGrid] = ()

    def on_mount(self) -> None:
        """The grids of charts are found once; the one that has pages chooses its metrics first, then the widest."""
        rest = list(self.query(RestGrid))
        self._grid = next((grid for grid in self.query(MetricGrid) if grid not in rest), None)
        self._grids = [*([self._grid] if self._grid is not None else []), *reversed(rest)]

    def draw(self, frame: Frame) -> list[Patch]:
        """Bring every pane up to `frame` and return what is to be painted."""
        shown: list[str] = []
        self.moves = False
        for grid in self._grids:
            self.moves |= grid.lay_out(frame, shown)
            shown += grid.shown
        if self.moves:
            self.call_after_refresh(self.context.redraw)
        return super().draw(frame)

    @property
    def chart_state(self) -> ChartState:
        """What the keys change."""
        return self.context.state.chart

    @property
    def drawn(self) -> list[str]:
        """The metrics that the chart draws."""
        return drawn_metrics(self.context.view, self.context.state.selected_in(self.context.view), self.chart_state)

    @property
    def chart_pane(self) -> ChartPane | None:
        """The chart whose x axis the keys mean: the large one."""
        panes = [pane for pane in self._panes if isinstance(pane, ChartPane)]
        return next((pane for pane in panes if pane.topic == CurvesPane.topic), panes[0] if panes else None)

    def figures(self) -> Sequence[Figure]:
        """What the visible charts show, the large one first."""
        in_sight = spots(self)
        panes = [pane for pane in self._panes if isinstance(pane, ChartPane) and pane in in_sight]
        panes.sort(key=lambda pane: pane is not self.chart_pane)
        return [figure for pane in panes if (figure := pane.drawn()) is not None]

    def tags(self) -> Mapping[str, str]:
        """Every metric there is, in the order of `m`, with a word on whose it is."""
        behaviors = self.context.view.behaviors
        headline = [tag for behavior in behaviors.values() for tag in behavior.headline_metrics]
        order = metric_order((tag for behavior in behaviors.values() for tag in behavior.tags), headline)
        owners = {tag: [name for name in behaviors if tag in behaviors[name].tags] for tag in order}
        return {tag: "" if len(owners[tag]) == len(behaviors) else f"{len(owners[tag])} of {len(behaviors)} behaviors"
                for tag in order}  # fmt: skip

    def choose(self, metrics: Sequence[str]) -> None:
        """Draw these; what shows progress is no choice, so that another behavior has its own."""
        view, state = self.context.view, self.chart_state
        shown = drawn_behaviors(view, self.context.state.selected_in(view), state)
        state.metrics = [] if list(metrics) == first_metrics(shown) else list(metrics)

    def place_on(self, x: float, x_axis: XAxis) -> float:
        """Where x of the present axis lies on another."""
        state = self.context.state
        return place_on(self.context.view, state.selected, x, self.chart_state.x_axis, x_axis)

    def pinned(self) -> list[str] | None:
        """The metrics in the grid of the selected behavior; None where metrics cannot be pinned."""
        return metrics_of(self.context.view, self.context.state)

    def action_metric(self, by: int) -> None:
        """The next metric that the selected behavior has, or with all drawn any of them has."""
        behavior = self.context.controls.selected
        is_alone = behavior is not None and not self.chart_state.has_all_behaviors
        order = list(self.tags())
        if behavior is not None and is_alone:
            order = metric_order(behavior.tags, behavior.headline_metrics)
        self.chart_state.next_metric(order, by, self.drawn[0])
        self.choose(self.chart_state.metrics)
        self._shown(f"metric: {metric_title(self.drawn[0])}" if len(order) < 2 else "")

    def action_pick_metrics(self) -> None:
        """Ask for several by name."""
        from rl_tui.tui.screens.pick_metrics import PickMetricsScreen  # imported when first opened

        behavior = self.context.controls.selected
        dialog = PickMetricsScreen(self.context, self.tags(), self.drawn, self.pinned())

        def take(_: bool) -> None:
            self.choose(dialog.picked or self.chart_state.metrics)
            if behavior is not None and dialog.pinned is not None:
                self.chart_state.pin(behavior.algorithm, dialog.pinned)

        self.open_dialog(dialog, take)

    def action_pin(self) -> None:
        """The metrics of the chart stand in the grid, or where all of them do, none of them."""
        behavior, drawn = self.context.controls.selected, self.drawn
        if behavior is None:
            self.say("pin: the run has no behavior yet")
            return
        pinned = metrics_of(self.context.view, self.context.state)
        rest = [tag for tag in pinned if tag not in drawn]
        are_pinned = len(pinned) - len(rest) == len(drawn)
        self.chart_state.pin(behavior.algorithm, rest if are_pinned else [*rest, *drawn])
        words = pinned_words(drawn, self.chart_state.pinned.get(behavior.algorithm, ()))
        has_grid = self._grid is not None and self._grid.size.width
        self.say(words if has_grid else f"{words}; {self.context.keymap.of_id('grid').shown} opens it")

    def action_grid_page(self, by: int) -> None:
        """Another page of the grid; after the last comes the first."""
        if self._grid is None or not self._grid.size.width:
            key = self.context.keymap.of_id("grid").shown
            self.say(f"page: no chart grid is visible; {key} opens it")
        elif self._grid.num_pages < 2:
            self.say("page: all charts are visible")
        else:
            self.chart_state.page = (self.chart_state.page + by) % self._grid.num_pages
            self.context.redraw()

    def action_all_behaviors(self) -> None:
        """Every behavior, or the selected one."""
        if len(self.context.view.behaviors) < 2 and not self.chart_state.has_all_behaviors:
            self.say("behaviors: there is only one behavior")
            return
        self.chart_state.has_all_behaviors = not self.chart_state.has_all_behaviors
        self._shown()

    def action_zoom(self, factor: float) -> None:
        """More or less of the x axis."""
        figure = self._figure()
        if figure is not None:
            before = self.chart_state.window
            self.chart_state.zoom(factor, figure.viewport)
            self._shown("zoom: this is the whole run" if before is None and self.chart_state.window is None else "")

    def action_zoom_reset(self) -> None:
        """The whole run."""
        self.chart_state.show_all()
        self._shown()

    def action_pan(self, by: int) -> None:
        """Earlier or later."""
        figure = self._figure()
        if figure is not None and self.chart_state.window is None:
            self.say("pan: the whole run is visible; + zooms in")
        elif figure is not None:
            self.chart_state.pan(by, figure.viewport)
            self._shown()

    def action_live(self) -> None:
        """Follow the newest steps."""
        self.chart_state.follow()
        self._shown()

    def action_crosshair(self) -> None:
        """On or off."""
        figure = self._figure()
        if figure is not None:
            self.chart_state.toggle_crosshair(figure.viewport)
            self._shown()

    def action_back(self) -> None:
        """One step back: on the overview, from which no step leads back, the crosshair goes."""
        if self.name == "overview" and self.chart_state.crosshair is not None:
            self.chart_state.crosshair = None
            self._shown()
        else:
            super().action_back()

    def action_slide(self, by: int) -> None:
        """Move the crosshair, or without one the chart."""
        figure, pane = self._figure(), self.chart_pane
        if self.chart_state.crosshair is None:
            self.action_pan(by)
        elif figure is not None and pane is not None:
            self.chart_state.slide(by, figure.viewport, pane.num_cells)
            self._shown()

    def action_smooth(self) -> None:
        """The next of the usual ones."""
        self.chart_state.next_smoothing()
        self._shown()

    def action_smooth_value(self) -> None:
        """Ask for any."""

        def take(text: str) -> None:
            self.chart_state.smoothing = float(text)

        title = "Smoothing"
        self.open_dialog(PromptScreen(title, smoothing_verdict, f"{self.chart_state.smoothing:g}"), take)

    def action_log_y(self) -> None:
        """Logarithmic y axis, or linear."""
        self.chart_state.is_log = not self.chart_state.is_log
        self._shown()

    def action_clip(self) -> None:
        """The y axis with outliers, or without."""
        state = self.chart_state
        state.clips_outliers = not state.clips_outliers
        is_by_hand = all(None not in state.y_ranges.get(metric, AUTOMATIC) for metric in self.drawn)
        change = "clipped elsewhere" if state.clips_outliers else "shown again elsewhere"
        self._shown(f"outliers: {change}; both ends of this y axis are set" if is_by_hand else "")

    def action_y_range(self) -> None:
        """Ask for the range of the metrics drawn."""
        state, drawn = self.chart_state, self.drawn
        present = state.y_ranges.get(drawn[0], AUTOMATIC)
        title = f"Range of the y axis: {', '.join(metric_title(tag) for tag in drawn)}"

        def take(text: str) -> None:
            state.choose_range(drawn, typed_range(text))

        self.open_dialog(PromptScreen(title, range_verdict, range_text(present)), take)

    def action_x_axis(self) -> None:
        """The next unit of x."""
        if not self.context.view.behaviors:
            self.chart_state.x_axis = X_AXES[(X_AXES.index(self.chart_state.x_axis) + 1) % len(X_AXES)]
        else:
            self.chart_state.next_x_axis(self.place_on)
        self._shown(f"x axis: {NAMES[self.chart_state.x_axis]}")

    def action_copy(self) -> None:
        """The value below the crosshair; without one what the list says."""
        text = self._below_crosshair()
        if text:
            self.copy(text)
        elif self.list_pane is not None:
            super().action_copy()
        else:
            self.say("copy: x turns the crosshair on, y copies the value below it")

    def _below_crosshair(self) -> str:
        figure, pane, x = self._drawn(), self.chart_pane, self.chart_state.crosshair
        return "" if figure is None or pane is None or x is None else copied(figure, x, pane.num_cells)

    def _drawn(self) -> Figure | None:
        return self.chart_pane.drawn() if self.chart_pane is not None else None

    def _figure(self) -> Figure | None:
        """What is drawn; says so where there is nothing."""
        figure = self._drawn()
        if figure is None:
            self.say("there is no curve yet")
        return figure

    def _shown(self, words: str = "") -> None:
        """The change shows in the chart; where no chart is visible, in words."""
        pane = self.chart_pane
        if not words and (pane is None or pane.size.width == 0):
            words = f"chart: {window_words(self.chart_state) or 'the whole run'}, smooth {self.chart_state.smoothing:g}"
        if words:
            self.say(words)
        else:
            self.context.redraw()


def pinned_words(metrics: Sequence[str], pinned: Sequence[str]) -> str:
    """What was done to these metrics, now that those are pinned."""
    titles = ", ".join(metric_title(tag) for tag in metrics)
    if not pinned:
        return f"unpinned {titles}, the last one: the usual metrics are back"
    return f"{'pinned' if metrics[0] in pinned else 'unpinned'} {titles}: {len(pinned)} in the grid"


def range_verdict(text: str) -> Verdict:
    """Whether the text is a range of the y axis."""
    try:
        chosen = typed_range(text)
    except ValueError as error:
        return Verdict(str(error), is_good=False)
    return Verdict(range_words(chosen) or "fits the visible values")


def smoothing_verdict(text: str) -> Verdict:
    """Whether the text is a smoothing."""
    try:
        value = float(text)
    except ValueError:
        return Verdict("must be a number from 0 (none) to 0.999", is_good=False)
    if not 0 <= value <= LARGEST_SMOOTHING:
        return Verdict(f"must be from 0 to {LARGEST_SMOOTHING}, got {text}", is_good=False)
    return Verdict("no smoothing" if value == 0 else f"averages about {1 / (1 - value):.3g} points")
