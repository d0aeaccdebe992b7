"""Several runs in one chart, and a line on each of them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from engine.session.text import safe_text
from engine.session.view import RunView
from tui.charts.compared_figure import Compared, compared_figure
from tui.charts.drawing import Look, draw, sample_for
from tui.charts.figure import Figure, Reading, read
from tui.charts.headline import headline, kind_of
from tui.charts.metrics import metric_title
from tui.charts.state import ChartState
from tui.charts.x_axis import x_label
from tui.comparing import ComparedRun, Comparison
from tui.configurations import differing
from tui.lines import SERIES, Line, Span, centered, line
from tui.panes.base import BEAT, Frame, Pane
from tui.panes.chart import ChartPane, CurvesPane
from tui.panes.chart_words import AXES, no_value_words, window_words
from tui.text import count, left, number, right

LONGEST_VALUE = 16  # of a setting
FIGURES_WIDTH = 3 + 7 + 18  # sign, steps, and two figures


class ComparisonChart(ChartPane):
    """The curves of the runs. state: what the user chose for this chart alone."""

    can_focus = True
    topic = CurvesPane.topic

    def __init__(self, comparison: Comparison, state: ChartState) -> None:
        super().__init__()
        self._comparison, self._state = comparison, state

    def chart_state(self, frame: Frame) -> ChartState:
        """Its own."""
        return self._state

    def figure(self, frame: Frame) -> Figure | None:
        """Every run that was read so far."""
        return compared_figure(self.compared(frame), self._state)

    def compared(self, frame: Frame) -> list[Compared]:
        """What is drawn."""
        wanted = frame.behavior.name if frame.behavior is not None else ""
        return compared(self._comparison, self._state, wanted, frame.view)

    def inputs(self, frame: Frame) -> object:
        """Which runs were read, besides."""
        return super().inputs(frame), [(run.view is None, run.problem) for run in self._comparison.runs]

    def heading(self, frame: Frame) -> str:
        """What is drawn and how."""
        state = self._state
        titles = " + ".join(metric_title(tag) for tag in state.metrics[:2])
        more = f" + {len(state.metrics) - 2} more" if len(state.metrics) > 2 else ""
        smooth = f"smooth {state.smoothing:g}" if state.smoothing > 0 else "not smoothed"
        runs = f"{len(self._comparison.runs)} runs"
        parts = [titles + more, runs, AXES[state.x_axis], smooth, window_words(state), "log y" if state.is_log else ""]
        return f" {frame.glyphs.dot} ".join(part for part in parts if part)

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The curves; words as long as there is none."""
        figure = self.figure(frame)
        if figure is None:
            return centered([Span(_why_empty(self._comparison, self._state), "dim")], height, width)
        look = Look(frame.glyphs, frame.has_color)
        samples = sample_for(figure, width, look)
        return draw(figure, width, height, look, samples) or centered(no_value_words(figure), height, width)


class ComparisonLegend(Pane):
    """A line per curve: its last and highest value as drawn, or that below the crosshair, and what was set differently.

    Of several metrics the figures are those of the first.
    """

    seconds = BEAT

    def __init__(self, comparison: Comparison, chart: ComparisonChart) -> None:
        super().__init__()
        self._comparison, self._chart = comparison, chart

    def inputs(self, frame: Frame) -> object:
        """What the chart shows."""
        return self._chart.inputs(frame)

    def heading(self, frame: Frame) -> str:
        """What the figures are, and what stands beside them."""
        state = self._chart.chart_state(frame)
        figure = self._chart.figure(frame)
        curve = next((each for each in figure.curves if each.metric == state.metrics[0]), None) if figure else None
        kind = f" {kind_of(figure, curve)}" if figure is not None and curve is not None else ""
        return f"{metric_title(state.metrics[0])}{kind}, and what was set differently"

    def wanted_height(self, frame: Frame, width: int) -> int:
        """A line for each, below the header."""
        shown = self._chart.compared(frame)
        return 1 + len(shown) + len(self._comparison.runs) - len({each.number for each in shown})

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Header, then the runs in the order of their marks."""
        state, shown = self._chart.chart_state(frame), self._chart.compared(frame)
        figure = compared_figure(shown, state)
        read_off = self._read_off(figure, state)
        name_width = max(10, min(32, width // 3))
        told = differing([(self._comparison.runs[each.number].settings, each.behavior.name) for each in shown])
        heads, values = _columns(told, width - name_width - FIGURES_WIDTH)
        rows = [line(*_header(state, read_off is not None, name_width), Span(heads, "dim"))]
        for at, run in enumerate(self._comparison.runs):
            mine = [(each, value) for each, value in zip(shown, values, strict=True) if each.number == at]
            rows += [] if mine else [_unread(at, run, name_width, frame)]
            for each, value in mine:
                name = Span(f" {each.label} {left(safe_text(each.name), name_width, frame.glyphs.ellipsis)}", each.tone)
                figures = _figures(each, figure, state) if read_off is None else _below(each, read_off)
                problem = f"  {frame.glyphs.warning} {run.problem}" if run.problem else ""
                rows.append(line(name, *figures, Span(problem, "warning") if problem else value))
        return rows

    def _read_off(self, figure: Figure | None, state: ChartState) -> list[Reading] | None:
        """What lies below the crosshair; None without one."""
        if figure is None or state.crosshair is None:
            return None
        readings = read(figure, state.crosshair, self._chart.num_cells)
        return [reading for reading in readings if reading.curve.metric == state.metrics[0]]


def compared(comparison: Comparison, state: ChartState, wanted: str, own: RunView) -> list[Compared]:
    """What is drawn: of each run the behavior of the wanted name, else its first; or all of them.

    own: the run on this screen.
    """
    chosen = []
    for index, run in enumerate(comparison.runs):
        behaviors = run.behaviors(own)
        if not state.has_all_behaviors:
            behaviors = [behavior for behavior in behaviors if behavior.name == wanted][:1] or behaviors[:1]
        chosen += [(index, run, dash, behavior) for dash, behavior in enumerate(behaviors)]
    has_names = len({behavior.name for *_, behavior in chosen}) > 1
    return [
        Compared(index, f"{run.run_id} {behavior.name}" if has_names else run.run_id, behavior,
                 run.started_at(own), dash, run.run_id)
        for index, run, dash, behavior in chosen
    ]  # fmt: skip


def _header(state: ChartState, has_crosshair: bool, name_width: int) -> Line:
    if has_crosshair and state.crosshair is not None:
        words = right(f"at {x_label(state.crosshair, state.x_axis, max(1.0, state.crosshair / 1000))}", 18)
    else:
        words = f"{'last':>9}{'highest':>9}"
    return line(Span(f"   {left('run', name_width)}{'steps':>7}{words}", "dim"))


def _columns(told: Sequence[Sequence[tuple[str, str]]], width: int) -> tuple[str, list[str]]:
    """The names of as many settings as fit, and below them the values of each curve."""
    names = [name for name, _ in told[0]] if told else []
    heads, values = "", [""] * len(told)
    for at, name in enumerate(names):
        column = max(len(name), *(min(LONGEST_VALUE, cell_len(row[at][1])) for row in told))
        left_out = f"  and {len(names) - at - 1} more" if at + 1 < len(names) else ""
        if len(heads) + 2 + column + len(left_out) > width:
            return f"{heads}  and {len(names) - at} more", values
        heads += "  " + name.ljust(column)
        values = [f"{value}  {left(row[at][1], column)}" for value, row in zip(values, told, strict=True)]
    return heads, values


def _figures(each: Compared, figure: Figure | None, state: ChartState) -> Line:
    """Steps, and the last and the highest value of its curve of the first metric."""
    curves = {(curve.metric, curve.label, curve.dash): curve for curve in figure.curves} if figure is not None else {}
    curve = curves.get((state.metrics[0], each.label, each.dash))
    if figure is not None and curve is not None:
        found = headline(figure, curve)
        figures = Span(right(number(found and found.last), 9), "strong"), right(number(found and found.highest), 9)
        return line(_steps(each), *figures)
    words = "not drawn" if len(each.behavior.histories.get(state.metrics[0], ())) else "no value"
    return line(_steps(each), Span(right(words, 18), "dim"))


def _below(each: Compared, readings: Sequence[Reading]) -> Line:
    """Steps, and what its curve is below the crosshair."""
    for reading in readings:
        if (reading.curve.label, reading.curve.dash) == (each.label, each.dash):
            return line(_steps(each), Span(right(number(reading.mean), 18), "strong"))
    return line(_steps(each), Span(right("no value here", 18), "dim"))


def _steps(each: Compared) -> Span:
    return Span(right(count(each.behavior.step), 7))


def _unread(index: int, run: ComparedRun, name_width: int, frame: Frame) -> Line:
    """A run without a curve: how far it was read, or why it cannot be."""
    glyphs = frame.glyphs
    name = line(Span(f" {index + 1} {left(safe_text(run.run_id), name_width, glyphs.ellipsis)}", SERIES[index]), "  ")
    if run.problem:
        return line(*name, Span(f"{glyphs.failed} {run.problem}", "bad"))
    if run.view is not None or run.is_own:
        return line(*name, Span("no behavior in it", "dim"))
    events = f", {count(run.num_read)} events so far" if run.num_read else ""
    return line(*name, Span(f"{glyphs.waiting} reading{events}", "wait"))


def _why_empty(comparison: Comparison, state: ChartState) -> str:
    if any(run.view is None and not run.is_own and not run.problem for run in comparison.runs):
        return "reading the runs"
    if all(run.problem for run in comparison.runs):
        return "none of these runs can be read"
    return f"none of these runs tells {' or '.join(metric_title(tag) for tag in state.metrics[:3])}"
