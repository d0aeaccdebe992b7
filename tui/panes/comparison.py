"""Several runs in one chart, and a line of figures on each of them."""

from __future__ import annotations

from collections.abc import Sequence

from rl_tui.engine.session.text import counted, safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.charts.band import deviation_at, ends
from rl_tui.tui.charts.compared_figure import Compared, Member, compared_figure
from rl_tui.tui.charts.curve import Curve
from rl_tui.tui.charts.drawing import ChartStyle, draw, sample_for
from rl_tui.tui.charts.figure import CrosshairPoint, Figure, crosshair_points
from rl_tui.tui.charts.headline import headline, kind_of
from rl_tui.tui.charts.line_sample import SAMPLE_CELLS, line_sample
from rl_tui.tui.charts.metrics import metric_title
from rl_tui.tui.charts.run_figure import LABELS
from rl_tui.tui.charts.state import ChartState
from rl_tui.tui.charts.threshold import Threshold, first_at, threshold_of
from rl_tui.tui.charts.x_axis import x_label
from rl_tui.tui.drawing.lines import SERIES, Line, Span, cells, centered, flush, line
from rl_tui.tui.drawing.text import count, left, num_cells, number, right
from rl_tui.tui.panes.base import BEAT, Frame, Pane
from rl_tui.tui.panes.chart import ChartPane, CurvesPane
from rl_tui.tui.panes.chart_words import AXES, all_in_sight, no_value_words, notes_on, window_words
from rl_tui.tui.runs.comparing import ComparedItem, Comparison

STEPS_WIDTH, FIGURE_WIDTH = 7, 9  # cells of columns
SHORTEST_NAME, LONGEST_NAME = 10, 40
ENDLESS = 10_000  # cells, more than any line has
INDENT = " " * (SAMPLE_CELLS + 4)  # of what is said of a run below its line


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
        """Which runs were read, and how they are arranged, besides."""
        runs = [(run.view is None, run.group, run.problem) for run in self._comparison.runs.values()]
        return super().inputs(frame), runs, [(item.number, item.name) for item in self._comparison.items]

    def heading(self, frame: Frame) -> str:
        """What is drawn and how."""
        state = self._state
        titles = " + ".join(metric_title(tag) for tag in state.metrics[:2])
        more = f" + {len(state.metrics) - 2} more" if len(state.metrics) > 2 else ""
        smooth = f"smooth {state.smoothing:g}" if state.smoothing > 0 else "not smoothed"
        num_groups = sum(each.is_group for each in self._comparison.items)
        groups = f" ({counted(num_groups, 'group')})" if num_groups else ""
        runs = f"{counted(len(self._comparison.runs), 'run')}{groups}"
        what = f"{titles}{more}, mean and range" if num_groups else titles + more
        parts = [runs, what, AXES[state.x_axis], smooth, state.y_words(), window_words(state)]
        return f" {frame.glyphs.dot} ".join(part for part in parts if part)

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The curves; words as long as there is none."""
        figure = self.figure(frame)
        if figure is None:
            return centered([Span(_why_empty(self._comparison, self._state), "dim")], height, width)
        style = ChartStyle(frame.glyphs, frame.has_color)
        samples = sample_for(figure, width, height, style)
        notes = notes_on(frame, figure, samples, width) or all_in_sight(figure, samples)
        samples = sample_for(figure, width, height - 1, style) if notes else samples
        chart = draw(figure, width, height - bool(notes), style, samples)
        if not chart:
            return centered(no_value_words(figure), height, width)
        return [flush((), notes, width), *chart] if notes else chart


class ComparisonLegend(Pane):
    """A line per curve: how it is drawn, its last and highest value as drawn, and that below the crosshair.

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
        """Of which values the figures are."""
        state = self._chart.chart_state(frame)
        figure = self._chart.figure(frame)
        curve = next((each for each in figure.curves if each.metric == state.metrics[0]), None) if figure else None
        kind = f" {kind_of(figure, curve)}" if figure is not None and curve is not None else ""
        kind += f" {state.smoothing:g}" if kind.strip() == "smoothed" else ""
        threshold = self._threshold(frame)
        to = f" {frame.glyphs.dot} to {number(threshold.value)}: {threshold.words}" if threshold is not None else ""
        return f"{metric_title(state.metrics[0])}{kind}{to}"

    def wanted_height(self, frame: Frame, width: int) -> int:
        """A line for each, below the header, and one for what is to be said of it."""
        shown = self._chart.compared(frame)
        num_without = len(self._comparison.items) - len({each.number for each in shown})
        problems = {item.number for item in self._comparison.items if item.problem}
        return 1 + len(shown) + num_without + sum(each.is_group or each.number in problems for each in shown)

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Header, then the runs in the order of their marks; what a group's curve is stands below it."""
        state, shown = self._chart.chart_state(frame), self._chart.compared(frame)
        figure = self._chart.figure(frame)
        below = self._below(figure, state)
        names = [*(each.name for each in shown), *(item.name for item in self._comparison.items)]
        threshold = self._threshold(frame)
        name_width, titles = _columns(names, state, below is not None, threshold, width)
        style = ChartStyle(frame.glyphs, frame.has_color)
        heads = "".join(right(title, _cells(title)) for title in titles)
        rows = [line(Span(" " * (SAMPLE_CELLS + 4) + left("run", name_width) + heads, "dim"))]
        for item in self._comparison.items:
            mine = [each for each in shown if each.number == item.number]
            rows += [] if mine else [_unread(item, name_width, frame)]
            for each in mine:
                curve, point = curve_of(each, figure, state), (below or {}).get((each.label, each.dash))
                sample = " " * SAMPLE_CELLS
                if figure is not None and curve is not None:
                    sample = line_sample(figure.curves.index(curve), each.dash, style, is_band=curve.is_band)
                name = left(safe_text(each.name), name_width, frame.glyphs.ellipsis)
                figures = _figures(each, figure, state, point, threshold)
                found = [figures.get(title.split(" ")[0], Span("")) for title in titles[1:]]
                columns = [Span(right(cell.text, _cells(title)), cell.tone)
                           for cell, title in zip(found, titles[1:], strict=True)]  # fmt: skip
                rows.append(line(Span(f" {sample} {each.label} {name}", each.tone), _steps(each), *columns))
                rows += [_of_group(each, item, figure, state, point)] if each.is_group and not item.problem else []
                rows += [_problem(item, frame)] if item.problem else []
        return rows

    def wanted_width(self, frame: Frame) -> int:
        """Cells in which nothing is cut."""
        return max(num_cells(self.heading(frame)) + 4, *(cells(row) for row in self.lines(frame, ENDLESS, 0)))

    def _threshold(self, frame: Frame) -> Threshold | None:
        """What the curves of the first metric are to reach."""
        figure, members = self._chart.figure(frame), [m for each in self._chart.compared(frame) for m in each.members]
        if figure is None:
            return None
        metric = self._chart.chart_state(frame).metrics[0]
        return threshold_of(figure, metric, [member.behavior.reward_threshold for member in members])

    def _below(self, figure: Figure | None, state: ChartState) -> dict[tuple[str, int], CrosshairPoint] | None:
        """What lies below the crosshair, by label and dash; None without one."""
        if figure is None or state.crosshair is None:
            return None
        points = crosshair_points(figure, state.crosshair, self._chart.num_cells)
        return {(each.curve.label, each.curve.dash): each for each in points if each.curve.metric == state.metrics[0]}


def compared(comparison: Comparison, state: ChartState, wanted: str, own: RunView) -> list[Compared]:
    """What is drawn: of each run the behavior of the wanted name, else its first; or all of them.

    own: the run on this screen.
    """
    chosen = []
    for item in comparison.items:
        members = [
            Member(run.run_id, behavior, run.started_at(own)) for run in item.runs for behavior in run.behaviors(own)
        ]
        names = list(dict.fromkeys(member.behavior.name for member in members))
        if not state.has_all_behaviors:
            names = [name for name in names if name == wanted] or names[:1]
        chosen += [
            (item.number, item, dash, tuple(member for member in members if member.behavior.name == name))
            for dash, name in enumerate(names, start=item.number // len(SERIES))  # of runs with the same color
        ]
    has_names = len({members[0].behavior.name for *_, members in chosen}) > 1
    return [
        Compared(number_of, _name(item, members, has_names=has_names), members, item.is_group, dash)
        for number_of, item, dash, members in chosen
    ]


def _name(item: ComparedItem, members: Sequence[Member], *, has_names: bool) -> str:
    number = f" n={len(members)}" if item.is_group else ""
    return item.name + number + (f" {members[0].behavior.name}" if has_names else "")


def _of_group(
    each: Compared, item: ComparedItem, figure: Figure | None, state: ChartState, point: CrosshairPoint | None
) -> Line:
    """What its curve and band are, below the crosshair in numbers, and where fewer runs are left."""
    curves = each.curves(state.metrics[0], state)
    unread = sum(not run.is_read for run in item.runs)
    parts = ["mean and range (lowest to highest) of the runs"]
    if point is not None and figure is not None and state.crosshair is not None:
        spread = deviation_at(curves, figure.viewport.shown, state.smoothing, state.crosshair)
        deviation = f"standard deviation {number(spread[0])} of {spread[1]} runs, " if spread is not None else ""
        parts = [f"{deviation}range {number(point.low)} to {number(point.high)}"]
    parts += [f"n={left_over} from {x_label(x, state.x_axis, max(1.0, x / 100))}" for x, left_over in ends(curves)]
    parts += [f"{unread} not read yet"] if unread else []
    return line(Span(INDENT + ", ".join(parts), "dim"))


def _problem(item: ComparedItem, frame: Frame) -> Line:
    return line(Span(f"{INDENT}{frame.glyphs.warning} {item.problem}", "warning"))


def _columns(
    names: Sequence[str], state: ChartState, has_crosshair: bool, threshold: Threshold | None, width: int
) -> tuple[int, list[str]]:
    """Cells of a name, and the titles of the columns behind it, as many as fit."""
    to = [f"to {number(threshold.value)}"] if threshold is not None else []
    titles = ["steps", "last", *to, "highest", "reached"]
    if has_crosshair and state.crosshair is not None:
        titles.insert(1, f"at {x_label(state.crosshair, state.x_axis, max(1.0, state.crosshair / 1000))}")
    while len(titles) > 2 and width - _room(titles) < SHORTEST_NAME:
        titles.pop()
    longest = min(LONGEST_NAME, max(num_cells(safe_text(name)) for name in names))
    return max(SHORTEST_NAME, min(longest, width - _room(titles))), titles


def _room(titles: Sequence[str]) -> int:
    """Cells of the sample, the label and all columns."""
    return SAMPLE_CELLS + 4 + sum(_cells(title) for title in titles)


def _cells(title: str) -> int:
    return STEPS_WIDTH if title == "steps" else max(FIGURE_WIDTH, len(title) + 2)


def _figures(
    each: Compared, figure: Figure | None, state: ChartState, below: CrosshairPoint | None, threshold: Threshold | None
) -> dict[str, Span]:
    """By the titles of columns: what its curve of the first metric is below the crosshair, last, highest, and where it
    first was; before that, where it first reached the threshold; of a group's those of the mean."""
    curve = curve_of(each, figure, state)
    if figure is None or curve is None:
        words = "not drawn" if each.curves(state.metrics[0], state) else "no value"
        return {"last": Span(words, "dim")}
    found = headline(figure, curve)
    reached = _place(found.highest_at if found is not None else None, state)
    first = first_at(figure, curve, threshold.value) if threshold is not None else None
    return {
        "at": Span(number(below.drawn) if below is not None else "no value", "accent" if below is not None else "dim"),
        "last": Span(number(found and found.last), "strong"),
        "to": Span(_place(first, state), "text" if first is not None else "dim"),
        "highest": Span(number(found and found.highest)),
        "reached": Span(reached, "dim"),
    }


def _place(x: float | None, state: ChartState) -> str:
    return "-" if x is None else x_label(x, state.x_axis, max(1.0, x / 100))


def curve_of(each: Compared, figure: Figure | None, state: ChartState) -> Curve | None:
    """Its curve of the first metric; None where it is not drawn."""
    curves = figure.curves if figure is not None else ()
    wanted = state.metrics[0], each.label, each.dash
    return next((curve for curve in curves if (curve.metric, curve.label, curve.dash) == wanted), None)


def _steps(each: Compared) -> Span:
    """Of a group as far as its furthest run has come."""
    return Span(right(count(max(member.behavior.step for member in each.members)), STEPS_WIDTH))


def _unread(item: ComparedItem, name_width: int, frame: Frame) -> Line:
    """A run without a curve: how far it was read, or why it cannot be."""
    glyphs = frame.glyphs
    label, tone = LABELS[item.number % len(LABELS)], SERIES[item.number % len(SERIES)]
    name = line(
        Span(f"{' ' * (SAMPLE_CELLS + 2)}{label} {left(safe_text(item.name), name_width, glyphs.ellipsis)}", tone), "  "
    )
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
