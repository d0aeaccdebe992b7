"""The words around a chart: what it shows, what was read off it, why it is empty."""

from __future__ import annotations

from collections.abc import Sequence

from rl_tui.engine.session.behavior_view import RETURN, BehaviorView
from rl_tui.engine.session.league_view import RATING
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.charts.around_plot import GUTTER
from rl_tui.tui.charts.drawn_metrics import drawn_metrics, first_metrics
from rl_tui.tui.charts.figure import Figure, Sampled, Samples
from rl_tui.tui.charts.headline import headline, kind_of
from rl_tui.tui.charts.metrics import metric_title
from rl_tui.tui.charts.outside import outside
from rl_tui.tui.charts.run_figure import MAX_CURVES
from rl_tui.tui.charts.state import ChartState
from rl_tui.tui.charts.x_axis import span_label, step_label, x_label
from rl_tui.tui.drawing.lines import Line, Span, cells, flush, line, pack
from rl_tui.tui.drawing.text import count, duration, fit, num_cells, number, round_count
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.behaviors import mean_words
from rl_tui.tui.panes.crosshair_words import cross_words
from rl_tui.tui.panes.league_words import rating_text

NAME_WIDTH = 24
WIDE = 60  # cells from which words on what is beyond the axis say how far
AXES = {"steps": "by steps", "wall": "by time of day", "relative": "since the start"}


def chart_heading(frame: Frame, state: ChartState, width: int) -> str:
    """Metrics, behaviors, and how they are drawn; what is so by default first goes where `width` cells have no room."""
    metrics = drawn_metrics(frame.view, frame.selected, state)
    titles = [metric_title(tag) for tag in metrics]
    shown = " + ".join(titles[:2]) + (f" + {len(titles) - 2} more" if len(titles) > 2 else "")
    whose = f"{len(frame.view.behaviors)} behaviors" if _is_overlay(frame, state) else ""
    if not whose and frame.behavior is not None:
        whose = fit(safe_text(frame.behavior.name), NAME_WIDTH, frame.glyphs.ellipsis)
    smooth = f"smooth {state.smoothing:g}" if state.smoothing > 0 else "not smoothed"
    rest = [state.y_words(metrics), window_words(state)]
    for how in ([AXES[state.x_axis], smooth], [smooth] if state.x_axis == "steps" else [AXES[state.x_axis]], []):
        heading = f" {frame.glyphs.dot} ".join(part for part in (shown, whose, *how, *rest) if part)
        if num_cells(heading) <= width:
            break
    return heading


def _is_overlay(frame: Frame, state: ChartState) -> bool:
    return state.has_all_behaviors and len(frame.view.behaviors) > 1


def window_words(state: ChartState) -> str:
    """Which part of the x axis is visible; "" for all of it."""
    if state.window is None:
        return ""
    start, end = state.window
    length = end - start
    if state.is_live:
        return "last " + (step_label(length, length / 100) if state.x_axis == "steps" else span_label(length, 1.0))
    return f"{x_label(start, state.x_axis, length / 100)} to {x_label(end, state.x_axis, length / 100)}"


def chart_words(frame: Frame, figure: Figure, samples: Samples, width: int, num_cells: int = 0) -> Line:
    """The line above a chart: what lies below the crosshair, else the legend, else the behavior's figures.

    num_cells: columns of the curves, where they are not those beside the usual gutter.
    """
    behavior = frame.behavior
    notes, calm = notes_on(frame, figure, samples, width), all_in_sight(figure, samples)
    if behavior is not None and behavior.state == "failed" and figure.crosshair is None:
        reason = fit(f" {frame.glyphs.failed} failed: {safe_text(behavior.reason)}", width, frame.glyphs.ellipsis)
        return line(Span(reason, "bad"))
    room = width - cells(notes) - 2
    if figure.crosshair is not None:
        return flush(
            cross_words(figure, figure.crosshair, room, num_cells or max(1, width - GUTTER)), notes or calm, width
        )
    has_several = len(figure.curves) > 1 and any(curve.metric != RETURN for curve in figure.curves)
    if has_several or behavior is None or frame.state.chart.has_all_behaviors:
        words = legend(figure, samples, room)
    else:
        words = _curve_words(behavior, figure, room)
    return flush(words, notes or calm or mark_words(figure), width)


def legend(figure: Figure, samples: Samples, width: int) -> Line:
    """Sign, name and last value of each curve; with its range where each has a scale of its own, if there is room."""
    whole, bare = ([_entry(each, figure, samples, has_range) for each in samples.curves] for has_range in (True, False))
    if samples.has_own_scales and sum(cells(entry) + 2 for entry in whole) <= width:
        return line(" ", *pack(whole, width - 1, gap=2))
    num_shown = len(bare)
    while num_shown > 1 and sum(cells(entry) + 2 for entry in bare[:num_shown]) + 4 * (num_shown < len(bare)) > width:
        num_shown -= 1
    rest = [line(Span(f"+{len(bare) - num_shown}", "dim"))] if num_shown < len(bare) else []
    return line(" ", *pack([*bare[:num_shown], *rest], width - 1, gap=2))


def _entry(sampled: Sampled, figure: Figure, samples: Samples, has_range: bool) -> Line:
    curve, scale = sampled.curve, samples.scales.get(sampled.curve.metric)
    figures = headline(figure, curve)
    own = f" [{', '.join(number(end) for end in scale.ends)}]" if scale and has_range else ""
    name = Span(f"{curve.label} {fit(curve.name, NAME_WIDTH)} ".lstrip(), curve.tone)
    return line(name, Span(number(figures and figures.last), "strong"), Span(own, "dim"))


def notes_on(frame: Frame, figure: Figure, samples: Samples, width: int) -> Line:
    """What one must know to read the curves."""
    parts = [_outside_words(frame, samples, width)] if _has_own_axis(figure) else []
    if samples.is_symlog:
        parts.append(line(Span("symlog y: some values <= 0", "warning")))
    elif samples.has_own_scales:
        parts.append(line(Span("separate scales", "dim")))
    elif figure.num_left_out:
        parts.append(line(Span(f"{MAX_CURVES} of {MAX_CURVES + figure.num_left_out} curves", "dim")))
    words = pack(parts, width, gap=2)
    return line(*words, " ") if words else ()


def all_in_sight(figure: Figure, samples: Samples) -> Line:
    """That the chosen y axis leaves nothing out, where it does not; less needed than any figure."""
    return line(Span("all visible ", "dim")) if _has_own_axis(figure) and outside(samples) is None else ()


def _has_own_axis(figure: Figure) -> bool:
    return figure.clips or bool(figure.y_ranges)


def _outside_words(frame: Frame, samples: Samples, width: int) -> Line:
    """How much of the curves lies beyond the y axis, and how far it goes."""
    found = outside(samples)
    if found is None:
        return ()
    words = []
    for sign, share, far in (
        (frame.glyphs.rising, found.above, found.highest),
        (frame.glyphs.falling, found.below, found.lowest),
    ):
        if share > 0:
            much = "<1" if share < 0.01 else f"{100 * share:.0f}"
            words.append(f"{sign} {much}%" + (f", to {number(far)}" if width >= WIDE else ""))
    return line(Span("  ".join(words), "warning"))


def mark_words(figure: Figure) -> Line:
    """What the visible marks mean."""
    start, end = figure.viewport.shown
    kinds = {mark.word: mark.glyph for mark in figure.marks if start <= mark.x <= end}
    return line(Span("  ".join(f"{glyph} {word}" for word, glyph in kinds.items()) + " ", "dim")) if kinds else ()


def _curve_words(behavior: BehaviorView, figure: Figure, width: int) -> Line:
    """The figures of the curve as it is drawn, and beside a return those of the behavior."""
    curve = figure.curves[0]
    found = headline(figure, curve)
    last = line(Span(f" {kind_of(figure, curve)}: last ", "dim"), Span(number(found and found.last), "strong"))
    lowest = line(Span("lowest ", "dim"), number(found and found.lowest))
    highest = line(Span("highest ", "dim"), number(found and found.highest))
    if curve.metric == RETURN:
        return pack([last, highest, *_return_words(behavior, figure)], width, gap=2)
    if curve.metric == RATING:
        now = line(Span("now ", "dim"), rating_text(behavior.rating))
        return pack([last, lowest, highest, now, _step_words(behavior)], width, gap=2)
    return pack([last, lowest, highest], width, gap=2)


def _return_words(behavior: BehaviorView, figure: Figure) -> list[Line]:
    """Its figures; that of its newest evaluation with the sign and in the color of their curve."""
    mean = line(Span(f"{mean_words(behavior)} ", "dim"), number(behavior.mean_return))
    found, measured = behavior.evaluation, figure.curves[1:]
    evaluated = line()
    if found is not None and measured:
        words = f"{number(found.mean_return)} sd {number(found.std_return)} at {round_count(found.step)}"
        evaluated = line(Span(f"{measured[0].label} eval ", measured[0].tone), words)
    return [evaluated, mean if behavior.recent.count else line(), _step_words(behavior)]


def _step_words(behavior: BehaviorView) -> Line:
    of = f" of {count(behavior.max_steps)}" if behavior.max_steps else ""
    return line(Span("step ", "dim"), count(behavior.step), Span(of, "dim"))


def empty_words(frame: Frame, metrics: Sequence[str]) -> list[Span]:
    """Why there is no curve yet, in the order in which a run comes up."""
    view, behavior = frame.view, frame.behavior
    if behavior is not None and behavior.state == "failed":
        return [Span(f"{frame.glyphs.failed} failed: {safe_text(behavior.reason)}", "bad")]
    is_chosen = RETURN not in metrics and (behavior is None or list(metrics) != first_metrics([behavior]))
    if is_chosen and (view.run is not None or view.is_over):
        return [Span(f"no {_listed(metrics)} yet", "dim"), Span(_why_no_metric(behavior, view.is_over), "dim")]
    if view.is_over:
        first = "first episode did" if behavior is None or metrics == [RETURN] else "first summary"
        return [Span(f"the run ended before the {first}", "dim")]
    if view.run is None:
        return [Span("starting engine", "wait"), Span("loading libraries", "dim")]
    if behavior is None or behavior.state == "starting":
        is_absent = behavior is not None and view.is_absent(behavior)
        return [Span("not in the environment yet" if is_absent else "starting the environments", "wait")]
    return _waiting_words(frame, behavior)


def _waiting_words(frame: Frame, behavior: BehaviorView) -> list[Span]:
    """What must end before there is a curve, and how far it has come."""
    started_at = frame.view.started_at
    pace = f" at {count(behavior.steps_per_second)} steps/s" if behavior.steps_per_second else ""
    pace += f", {duration(frame.time - started_at)} after the start" if started_at else ""
    if not behavior.has_returns:
        steps = f"learned from {count(behavior.step)} demonstrated steps{pace}"
        return [Span("waiting for the first summary", "wait"), Span(steps, "dim")]
    first = "summary" if behavior.plays_itself and behavior.num_episodes else "episode"
    steps = f"{count(max(behavior.learned, behavior.step))} steps collected{pace}"
    words = [Span(f"waiting for the first {first}", "wait"), Span(steps, "dim")]
    if behavior.is_filling:
        begins = round_count(behavior.first_update_step)
        words.append(Span(f"the replay buffer is filling; learning starts at step {begins}", "dim"))
    return words


def _listed(metrics: Sequence[str]) -> str:
    return " or ".join(metric_title(tag) for tag in metrics[:3])


def _why_no_metric(behavior: BehaviorView | None, is_at_end: bool) -> str:
    if behavior is not None and behavior.metrics:
        return f"{safe_text(behavior.name)} reports other metrics; M lists them"
    return "the run ended before the first summary" if is_at_end else "appears with the first summary"


def no_value_words(figure: Figure) -> list[Span]:
    """Why there is a curve but nothing of it is visible."""
    if figure.viewport.shown != figure.viewport.full:
        return [Span("no finite value in this window", "dim"), Span("0 shows the whole run", "dim")]
    return [Span("every value so far is NaN or infinite", "bad")]
