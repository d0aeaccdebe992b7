"""Several runs in one chart, and a line on each of them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from rl_tui.engine.session.text import counted, safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.charts.band import ends
from rl_tui.tui.charts.compared_figure import Compared, Member, compared_figure
from rl_tui.tui.charts.drawing import ChartStyle, draw, sample_for
from rl_tui.tui.charts.figure import CrosshairPoint, Figure, crosshair_points
from rl_tui.tui.charts.headline import headline, kind_of
from rl_tui.tui.charts.metrics import metric_title
from rl_tui.tui.charts.state import ChartState
from rl_tui.tui.charts.x_axis import x_label
from rl_tui.tui.drawing.lines import SERIES, Line, Span, centered, flush, line
from rl_tui.tui.drawing.text import count, left, number, right
from rl_tui.tui.panes.base import BEAT, Frame, Pane
from rl_tui.tui.panes.chart import ChartPane, CurvesPane
from rl_tui.tui.panes.chart_words import AXES, all_in_sight, no_value_words, notes_on, window_words
from rl_tui.tui.runs.comparing import ComparedItem, Comparison
from rl_tui.tui.runs.configurations import Settings, differing
from rl_tui.tui.runs.groups import SEED

LONGEST_VALUE = 16  # of a setting
FIGURES_WIDTH = 3 + 7 + 18  # sign, steps, and two figures


class ComparisonChart(ChartPane):
    """The curves of the runs. state: what the user chose for this chart alone."""

    can_focus = True
    topic = CurvesPane.topic

    def __init__(self, comparison: Comparison, state: ChartState) -> None:
        super().__init__()
        self._comparison, self._state = comparison, state
        self._figured: tuple[Frame, object, Figure | None] | None = None

    def chart_state(self, frame: Frame) -> ChartState:
        """Its own."""
        return self._state

    def figure(self, frame: Frame) -> Figure | None:
        """Every run that was read so far."""
        key = frame, self._state.choices  # heading, chart and legend of one picture share it: it may take 6 ms
        if self._figured is None or self._figured[0] is not frame or self._figured[1] != key[1]:
            self._figured = *key, compared_figure(self.compared(frame), self._state)
        return self._figured[2]

    def compared(self, frame: Frame) -> list[Compared]:
        """What is drawn."""
        wanted = frame.behavior.name if frame.behavior is not None else ""
        return compared(self._comparison, self._state, wanted, frame.view)

    def inputs(self, frame: Frame) -> object:
        """Which runs were read, besides."""
        return super().inputs(frame), [(run.view is None, run.problem) for run in self._comparison.runs.values()]

    def heading(self, frame: Frame) -> str:
        """What is drawn and how."""
        state = self._state
        titles = " + ".join(metric_title(tag) for tag in state.metrics[:2])
        more = f" + {len(state.metrics) - 2} more" if len(state.metrics) > 2 else ""
        smooth = f"smooth {state.smoothing:g}" if state.smoothing > 0 else "not smoothed"
        num_runs, num_groups = len(self._comparison.runs), sum(each.is_group for each in self._comparison.items)
        groups = f" ({counted(num_groups, 'group')})" if num_groups else ""
        runs = f"{counted(num_runs, 'run')}{groups}"
        parts = [titles + more, runs, AXES[state.x_axis], smooth, state.y_words(), window_words(state)]
        return f" {frame.glyphs.dot} ".join(part for part in parts if part)

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The curves; words as long as there is none."""
        figure = self.figure(frame)
        if figure is None:
            return centered([Span(_why_empty(self._comparison, self._state), "dim")], height, width)
        style = ChartStyle(frame.glyphs, frame.has_color)
        samples = sample_for(figure, width, style)
        notes = notes_on(frame, figure, samples, width) or all_in_sight(figure, samples)
        chart = draw(figure, width, height - bool(notes), style, samples)
        if not chart:
            return centered(no_value_words(figure), height, width)
        return [flush((), notes, width), *chart] if notes else chart


class ComparisonLegend(Pane):
    """A line per curve: its last and highest value as drawn, or that below the crosshair, and settings that differ.

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
        kind += f" {state.smoothing:g}" if kind.strip() == "smoothed" else ""
        return f"{metric_title(state.metrics[0])}{kind}, and settings that differ"

    def wanted_height(self, frame: Frame, width: int) -> int:
        """A line for each, below the header."""
        shown = self._chart.compared(frame)
        num_without = len(self._comparison.items) - len({each.number for each in shown})
        return 1 + len(shown) + num_without + sum(each.is_group for each in shown)

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Header, then the runs in the order of their marks; what a group's curve is stands below it."""
        state, shown = self._chart.chart_state(frame), self._chart.compared(frame)
        figure = self._chart.figure(frame)
        read_off = self._read_off(figure, state)
        name_width = max(10, min(32, width // 3))
        items = self._comparison.items
        differences = differing([(_settings(items[each.number]), each.members[0].behavior.name) for each in shown])
        heads, values = _columns(differences, width - name_width - FIGURES_WIDTH)
        rows = [line(*_header(state, read_off is not None, name_width), Span(heads, "dim"))]
        for at, item in enumerate(items):
            mine = [(each, value) for each, value in zip(shown, values, strict=True) if each.number == at]
            rows += [] if mine else [_unread(at, item, name_width, frame)]
            for each, value in mine:
                name = Span(f" {each.label} {left(safe_text(each.name), name_width, frame.glyphs.ellipsis)}", each.tone)
                figures = _figures(each, figure, state) if read_off is None else _below(each, read_off)
                problem = f"  {frame.glyphs.warning} {item.problem}" if item.problem else ""
                rows.append(line(name, *figures, Span(problem, "warning") if problem else value))
                rows += [_of_group(each, item, state)] if each.is_group else []
        return rows

    def _read_off(self, figure: Figure | None, state: ChartState) -> list[CrosshairPoint] | None:
        """What lies below the crosshair; None without one."""
        if figure is None or state.crosshair is None:
            return None
        points = crosshair_points(figure, state.crosshair, self._chart.num_cells)
        return [point for point in points if point.curve.metric == state.metrics[0]]


def compared(comparison: Comparison, state: ChartState, wanted: str, own: RunView) -> list[Compared]:
    """What is drawn: of each run the behavior of the wanted name, else its first; or all of them.

    own: the run on this screen.
    """
    chosen = []
    for index, item in enumerate(comparison.items):
        members = [
            Member(run.run_id, behavior, run.started_at(own)) for run in item.runs for behavior in run.behaviors(own)
        ]
        names = list(dict.fromkeys(member.behavior.name for member in members))
        if not state.has_all_behaviors:
            names = [name for name in names if name == wanted] or names[:1]
        chosen += [
            (index, item, dash, tuple(member for member in members if member.behavior.name == name))
            for dash, name in enumerate(names)
        ]
    has_names = len({members[0].behavior.name for *_, members in chosen}) > 1
    return [
        Compared(index, _name(item, members, has_names=has_names), members, item.is_group, dash)
        for index, item, dash, members in chosen
    ]


def _name(item: ComparedItem, members: Sequence[Member], *, has_names: bool) -> str:
    number = f" n={len(members)}" if item.is_group else ""
    return item.name + number + (f" {members[0].behavior.name}" if has_names else "")


def _settings(item: ComparedItem) -> Settings:
    """Of a group, whose runs agree on everything else, with the seed of each."""
    settings = [run.settings for run in item.runs]
    seeds = [seed for each in settings if (seed := each.get(SEED)) is not None]
    return {**settings[0], SEED: " ".join(seeds)} if item.is_group and seeds else settings[0]


def _of_group(each: Compared, item: ComparedItem, state: ChartState) -> Line:
    """What its curve and band are, and where fewer runs are left."""
    curves = each.curves(state.metrics[0], state)
    unread = sum(not run.is_read for run in item.runs)
    parts = ["mean and range (lowest to highest) of the runs"]
    parts += [f"n={left_over} from {x_label(x, state.x_axis, max(1.0, x / 100))}" for x, left_over in ends(curves)]
    parts += [f"{unread} not read yet"] if unread else []
    return line(Span(f"     {', '.join(parts)}", "dim"))


def _header(state: ChartState, has_crosshair: bool, name_width: int) -> Line:
    if has_crosshair and state.crosshair is not None:
        words = right(f"at {x_label(state.crosshair, state.x_axis, max(1.0, state.crosshair / 1000))}", 18)
    else:
        words = f"{'last':>9}{'highest':>9}"
    return line(Span(f"   {left('run', name_width)}{'steps':>7}{words}", "dim"))


def _columns(differences: Sequence[Sequence[tuple[str, str]]], width: int) -> tuple[str, list[str]]:
    """The names of as many settings as fit, and below them the values of each curve."""
    names = [name for name, _ in differences[0]] if differences else []
    heads, values = "", [""] * len(differences)
    for at, name in enumerate(names):
        column = max(len(name), *(min(LONGEST_VALUE, cell_len(row[at][1])) for row in differences))
        left_out = f"  and {len(names) - at - 1} more" if at + 1 < len(names) else ""
        if len(heads) + 2 + column + len(left_out) > width:
            return f"{heads}  and {len(names) - at} more", values
        heads += "  " + name.ljust(column)
        values = [f"{value}  {left(row[at][1], column)}" for value, row in zip(values, differences, strict=True)]
    return heads, values


def _figures(each: Compared, figure: Figure | None, state: ChartState) -> Line:
    """Steps, and the last and the highest value of its curve of the first metric; of a group's those of the mean."""
    curves = {(curve.metric, curve.label, curve.dash): curve for curve in figure.curves} if figure is not None else {}
    curve = curves.get((state.metrics[0], each.label, each.dash))
    if figure is not None and curve is not None:
        found = headline(figure, curve)
        figures = Span(right(number(found and found.last), 9), "strong"), right(number(found and found.highest), 9)
        return line(_steps(each), *figures)
    words = "not drawn" if each.curves(state.metrics[0], state) else "no value"
    return line(_steps(each), Span(right(words, 18), "dim"))


def _below(each: Compared, points: Sequence[CrosshairPoint]) -> Line:
    """Steps, and what its curve is below the crosshair; of a group within which bounds, where there is room."""
    for point in points:
        if (point.curve.label, point.curve.dash) == (each.label, each.dash):
            words = number(point.drawn)
            if each.is_group and len(bounds := f"{words} {number(point.low)}..{number(point.high)}") < 18:
                words = bounds
            return line(_steps(each), Span(right(words, 18), "strong"))
    return line(_steps(each), Span(right("no value here", 18), "dim"))


def _steps(each: Compared) -> Span:
    """Of a group as far as its furthest run has come."""
    return Span(right(count(max(member.behavior.step for member in each.members)), 7))


def _unread(index: int, item: ComparedItem, name_width: int, frame: Frame) -> Line:
    """A run without a curve: how far it was read, or why it cannot be."""
    glyphs = frame.glyphs
    name = line(Span(f" {index + 1} {left(safe_text(item.name), name_width, glyphs.ellipsis)}", SERIES[index]), "  ")
    has_just_come = any(run.view is not None and run.view.behaviors for run in item.runs)  # since `shown` was made
    if not item.is_read or has_just_come:
        events = f", {count(item.num_read)} events so far" if item.num_read else ""
        return line(*name, Span(f"{glyphs.waiting} reading{events}", "wait"))
    if item.problem:
        return line(*name, Span(f"{glyphs.failed} {item.problem}", "bad"))
    return line(*name, Span("no behavior", "dim"))


def _why_empty(comparison: Comparison, state: ChartState) -> str:
    runs = comparison.runs.values()
    if not all(run.is_read for run in runs):
        return "reading the runs"
    if all(run.problem for run in runs):
        return "none of these runs can be read"
    return f"none of these runs reports {' or '.join(metric_title(tag) for tag in state.metrics[:3])}"
