"""Charts of a run, drawn as the user chose: a large one, and small ones of single metrics."""

from __future__ import annotations

from textual import events

from rl_tui.engine.session.behavior_view import RETURN, BehaviorView
from rl_tui.engine.session.league_view import RATING
from rl_tui.tui.charts.around_plot import GUTTER
from rl_tui.tui.charts.drawing import ChartStyle, draw, sample_for
from rl_tui.tui.charts.drawn_metrics import chosen_or_first, drawn_metrics
from rl_tui.tui.charts.figure import Figure, ingredients
from rl_tui.tui.charts.metrics import metric_title
from rl_tui.tui.charts.run_figure import run_figure
from rl_tui.tui.charts.state import ChartState
from rl_tui.tui.charts.window import Viewport, panned
from rl_tui.tui.drawing.lines import Line, centered
from rl_tui.tui.panes.base import BEAT, Frame, Pane
from rl_tui.tui.panes.chart_words import chart_heading, chart_words, empty_words, no_value_words

TITLE_MARGIN = 4  # cells beside the title: frame, blank and the sign of the pane that has the keys
WHEEL_ZOOM = 1.25  # by one notch
WORDS_HEIGHT = 6  # lines from which one of them is for words


class ChartPane(Pane):
    """Owns a drag of the mouse. A subclass says what the figure is; what is visible and how stands in the state.

    The wheel zooms around the pointer, a drag pans, a click sets the crosshair, a double click shows everything.
    """

    seconds = BEAT

    def __init__(self) -> None:
        super().__init__()
        self._drag: tuple[int, Viewport] | None = None  # cell where it began, and what was visible then
        self._has_moved = False

    def figure(self, frame: Frame) -> Figure | None:
        """What is drawn; None while there is no point."""
        raise NotImplementedError

    def chart_state(self, frame: Frame) -> ChartState:
        """What the user chose for this chart."""
        return frame.state.chart

    def inputs(self, frame: Frame) -> object:
        """What the user chose, and how far the run has come up."""
        return self.chart_state(frame).choices, frame.view.run is None, len(frame.view.behaviors)

    @property
    def first_cell(self) -> int:
        """The leftmost column of cells that the curves have."""
        return GUTTER

    @property
    def num_cells(self) -> int:
        """Columns of cells that the curves have."""
        return max(1, self.size.width - GUTTER)

    def drawn(self) -> Figure | None:
        """The figure of the frame drawn last: keys act on what was seen."""
        frame = self._frame
        return self._tried(lambda: self.figure(frame), None) if frame is not None else None

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """More detail around the pointer."""
        self._zoom(event, WHEEL_ZOOM)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Less detail around the pointer."""
        self._zoom(event, 1 / WHEEL_ZOOM)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """A drag may begin."""
        at, figure = self._cell(event), self.drawn()
        if at is not None and figure is not None and event.button == 1:
            self._drag, self._has_moved = (at, figure.viewport), False
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """The chart moves with the pointer; the whole axis stays where it is."""
        at = self._cell(event, must_be_inside=False)
        if self._drag is None or self._frame is None or at is None:
            return
        begun, viewport = self._drag
        state = self.chart_state(self._frame)
        start, end = viewport.shown
        self._has_moved = self._has_moved or at != begun
        if self._has_moved and state.window is not None:
            state.window = panned(viewport, (begun - at) * (end - start) / self.num_cells)
            state.is_live = at <= begun and state.window[1] >= viewport.full[1]
            self._redraw()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """The drag has ended."""
        self._drag = None
        self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        """A place on the chart gets the crosshair; a second click takes it off and shows the whole run."""
        at, figure = self._cell(event), self.drawn()
        if at is None or figure is None or self._frame is None or self._has_moved:
            return
        state = self.chart_state(self._frame)
        if event.chain == 2:
            state.crosshair = None
            state.show_all()
        else:
            state.crosshair = self._x(at, figure.viewport)
        self._redraw()

    def _zoom(self, event: events.MouseEvent, factor: float) -> None:
        at, figure = self._cell(event), self.drawn()
        if at is not None and figure is not None and self._frame is not None:
            self.chart_state(self._frame).zoom(factor, figure.viewport, self._x(at, figure.viewport))
            self._redraw()
        event.stop()

    def _x(self, cell: int, viewport: Viewport) -> float:
        start, end = viewport.shown
        return start + (cell + 0.5) * (end - start) / self.num_cells

    def _cell(self, event: events.MouseEvent, *, must_be_inside: bool = True) -> int | None:
        """The column of the plot below the pointer."""
        offset = event.get_content_offset(self)
        if offset is None:
            return None if must_be_inside else event.x - self.gutter.left - self.first_cell
        at = offset.x - self.first_cell
        return at if at >= 0 or not must_be_inside else None

    def _redraw(self) -> None:
        self.call_later(self.run_action, "screen.redraw")


class CurvesPane(ChartPane):
    """The metrics that the user chose, with what happened on the x axis."""

    can_focus = True
    topic = "chart"

    def figure(self, frame: Frame) -> Figure | None:
        """Of the selected behavior, or of all."""
        return run_figure(frame.view, frame.selected, self.chart_state(frame), frame.glyphs)

    def heading(self, frame: Frame) -> str:
        """What is drawn and how."""
        return chart_heading(frame, self.chart_state(frame), self._content.width - TITLE_MARGIN)

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Words above, the curves below; words alone as long as there is no curve."""
        figure = self.figure(frame)
        if figure is None:
            drawn = drawn_metrics(frame.view, frame.selected, self.chart_state(frame))
            return centered(empty_words(frame, drawn), height, width)
        return charted(frame, figure, width, height)


class MetricChart(ChartPane):
    """One metric in a grid, in the window and with the crosshair of the large chart.

    number: in its grid, from 0; metric: its tag, "" for what shows progress; note: a word beside its title. The grid
    changes the latter two.
    """

    seconds = 2 * BEAT

    def __init__(self, number: int, metric: str) -> None:
        super().__init__()
        self.metric, self.note = metric, ""
        self.seconds = type(self).seconds + 0.25 * number  # they take turns, so that no picture costs too much
        self._drawn: list[Line] = []
        self._drawn_of: object = None

    def metrics(self, frame: Frame) -> list[str]:
        """The one; where that is none, or a return that never comes, what shows progress."""
        chosen = [self.metric] if self.metric else []
        return chosen_or_first(chosen, [frame.behavior]) if frame.behavior else chosen or [RETURN]

    def figure(self, frame: Frame) -> Figure | None:
        """The one metric."""
        return run_figure(frame.view, frame.selected, self.chart_state(frame), frame.glyphs, self.metrics(frame))

    def heading(self, frame: Frame) -> str:
        """What is drawn, and how its y axis was chosen."""
        metrics = self.metrics(frame)
        title = " + ".join(metric_title(metric) for metric in metrics)
        parts = title, self.note, self.chart_state(frame).y_words(metrics)
        return f" {frame.glyphs.dot} ".join(part for part in parts if part)

    def inputs(self, frame: Frame) -> object:
        """What the user chose, and whether there is a curve."""
        return super().inputs(frame), [(metric, _has_points(frame.behavior, metric)) for metric in self.metrics(frame)]

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The curve; its newest value, or that below the crosshair, stands at the upper right.

        They are those drawn before while nothing has changed that they show.
        """
        figure = self.figure(frame)
        if figure is None:
            self._drawn_of = None
            return centered(empty_words(frame, self.metrics(frame)), height, width)
        drawn_of = (
            ingredients(figure),
            in_words(frame, self.metrics(frame)[0]),
            frame.glyphs,
            frame.has_color,
            width,
            height,
        )
        if drawn_of != self._drawn_of:
            self._drawn, self._drawn_of = charted(frame, figure, width, height), drawn_of
        return self._drawn


def charted(frame: Frame, figure: Figure, width: int, height: int) -> list[Line]:
    """Words above, the curves below; words alone where no value is visible."""
    style = ChartStyle(frame.glyphs, frame.has_color)
    has_words = height >= WORDS_HEIGHT
    samples = sample_for(figure, width, height - has_words, style)
    chart = draw(figure, width, height - has_words, style, samples)
    if not chart:
        return centered(no_value_words(figure), height, width)
    return [chart_words(frame, figure, samples, width), *chart] if has_words else chart


def in_words(frame: Frame, metric: str) -> object:
    """What the line above a chart of that metric shows besides the figure."""
    behavior = frame.behavior
    if behavior is None:
        return None
    figures = (behavior.step, behavior.max_steps, behavior.num_episodes, behavior.mean_return, behavior.evaluation)
    shown = figures if metric == RETURN else (behavior.step, behavior.rating) if metric == RATING else ()
    return behavior.name, behavior.state, behavior.reason, shown


def _has_points(behavior: BehaviorView | None, tag: str) -> bool:
    return behavior is not None and tag in behavior.histories and len(behavior.histories[tag]) > 0
