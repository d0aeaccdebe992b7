"""The figure of a run, as the user chose it."""

from __future__ import annotations

from collections.abc import Sequence

from rl_tui.engine.session.behavior_view import EVALUATION, RETURN, BehaviorView
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import Note, RunView
from rl_tui.tui.charts.curve import Curve, Range, XAxis, history_curve, nearest, source_of
from rl_tui.tui.charts.drawn_metrics import drawn_metrics
from rl_tui.tui.charts.figure import Figure, Mark
from rl_tui.tui.charts.metrics import metric_title, scale_metric
from rl_tui.tui.charts.state import ChartState
from rl_tui.tui.charts.window import Viewport, viewport_of
from rl_tui.tui.charts.x_axis import full_range
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import SERIES
from rl_tui.tui.drawing.text import number, round_count

MAX_CURVES = 12  # more could not be distinguished
LABELS = "123456789abcdefghijklmnopqrstuvwxyz"


def run_figure(
    view: RunView, selected: int, state: ChartState, glyphs: Glyphs, metrics: Sequence[str] | None = None
) -> Figure | None:
    """The chosen metrics, or those given, of the selected behavior or of all; None while none has a point.

    The selected behavior is in front. Colors and labels are those of the behaviors, or of the metrics of one. Beside
    the return of one stands what was measured apart from its training, on the same scale.
    """
    if not view.behaviors:
        return None
    everyone = list(view.behaviors.values())
    selected = min(selected, len(everyone) - 1)
    shown = [(selected, everyone[selected])]
    if state.has_all_behaviors:
        shown += [each for each in enumerate(everyone) if each[0] != selected]
    viewport = _viewport([behavior for _, behavior in shown], state, view.started_at or 0.0)
    tags = list(metrics or drawn_metrics(view, selected, state))
    run_id = view.run.run_id if view.run is not None else ""
    curves = _curves(shown, tags, state.x_axis, view.started_at or 0.0, run_id)
    if curves and tags == [RETURN] and len(shown) == 1:
        curves += _evaluation(everyone[selected], selected, state.x_axis, view.started_at or 0.0, glyphs, run_id)
    if viewport is None or not curves:
        return None
    happened = marks(everyone[selected], view.notes, state.x_axis, view.started_at or 0.0, glyphs)
    return Figure(
        tuple(curves[:MAX_CURVES]), viewport, state.x_axis, state.smoothing, state.is_log, state.crosshair, happened,
        max(0, len(curves) - MAX_CURVES), state.clips_outliers, state.ranges_of(tags),
    )  # fmt: skip


def place_on(view: RunView, selected: int, x: float, x_axis: XAxis, other: XAxis) -> float:
    """Where the selected behavior was on the other axis when it was at x."""
    origin = view.started_at or 0.0
    behaviors = list(view.behaviors.values())
    longest = max(behaviors[min(selected, len(behaviors) - 1)].histories.values(), key=len)
    here, there = (history_curve(longest, axis, origin).xs for axis in (x_axis, other))
    if len(here) == 0:
        return x
    return float(there[nearest(here, x)])


def _viewport(behaviors: Sequence[BehaviorView], state: ChartState, origin: float) -> Viewport | None:
    """Of everything the behaviors have reported, so that charts of other metrics show the same."""
    extents: list[Range] = []
    for behavior in behaviors:
        for history in behavior.histories.values():
            if len(history):
                xs = history.steps if state.x_axis == "steps" else history.times
                offset = origin if state.x_axis == "relative" else 0.0
                extents.append((xs[0] - offset, xs[-1] - offset))
    full = full_range(extents, state.x_axis)
    if full is None:
        return None
    return viewport_of(state.window, state.is_live, full, max(last for _, last in extents))


def _curves(
    shown: Sequence[tuple[int, BehaviorView]], metrics: Sequence[str], x_axis: XAxis, origin: float, run_id: str
) -> list[Curve]:
    is_overlay, has_several = len(shown) > 1, len(metrics) > 1
    is_alone = not is_overlay and not has_several
    curves: list[Curve] = []
    for index, behavior in shown:
        for at, tag in enumerate(metrics):
            history = behavior.histories.get(tag)
            if history is None or not len(history):
                continue
            by_behavior = is_overlay and not has_several
            color = index if is_overlay else index + at
            words = [safe_text(behavior.name)] * is_overlay + [metric_title(tag)] * (has_several or not is_overlay)
            number = index if by_behavior else len(curves)
            curves.append(history_curve(
                history, x_axis, origin, name=" ".join(words), label="" if is_alone else LABELS[number % len(LABELS)],
                tone=SERIES[color % len(SERIES)], metric=scale_metric(tag, metrics), has_points=tag == EVALUATION,
                dash=(at + index // len(SERIES)) if is_overlay else at // len(SERIES),
                source=source_of(run_id, behavior.name, tag),
            ))  # fmt: skip
    return curves


def _evaluation(
    behavior: BehaviorView, index: int, x_axis: XAxis, origin: float, glyphs: Glyphs, run_id: str
) -> list[Curve]:
    """The curve of its evaluations on the scale of its return; none before the first."""
    history = behavior.histories.get(EVALUATION)
    if history is None or not len(history):
        return []
    return [history_curve(
        history, x_axis, origin, name=metric_title(EVALUATION), label=glyphs.evaluation,
        tone=SERIES[(index + 1) % len(SERIES)], metric=RETURN, dash=1, has_points=True,
        source=source_of(run_id, behavior.name, EVALUATION),
    )]  # fmt: skip


def marks(
    behavior: BehaviorView, notes: Sequence[Note], x_axis: XAxis, origin: float, glyphs: Glyphs
) -> tuple[Mark, ...]:
    """The behavior's checkpoints, lessons, rollbacks and changes, and the run's notes; what is rarer lies above."""

    def place(step: float, time: float) -> float:
        return step if x_axis == "steps" else time - origin if x_axis == "relative" else time

    best = behavior.best_checkpoint
    saved = [Mark(place(event.step, at), glyphs.saved, "dim", "checkpoint")
             for at, event in behavior.checkpoints if event is not best]  # fmt: skip
    saved += [
        Mark(place(event.step, at), glyphs.best, "warning", "best", f"best checkpoint {number(event.mean_return)}")
        for at, event in behavior.checkpoints if event is best
    ]  # fmt: skip
    lessons = [
        Mark(place(event.step, at), glyphs.lesson, "good", "lesson",
             f"{safe_text(event.parameter)} lesson {event.lesson} {safe_text(event.name)}".rstrip())
        for at, event in behavior.lessons
    ]  # fmt: skip
    changes = [
        Mark(place(event.step, at), glyphs.changed, "accent", "change",
             f"{safe_text(event.name)} {number(event.old)} to {number(event.new)}")
        for at, event in behavior.changes
    ]  # fmt: skip
    rollbacks = [Mark(place(event.step, at), glyphs.rolled_back, "bad", "rollback",
                      f"rolled back from {round_count(event.from_step)}")
                 for at, event in behavior.rollbacks]  # fmt: skip
    written = [
        Mark(place(note.steps.get(behavior.name, 0), note.time), glyphs.note, "strong", "note", safe_text(note.text))
        for note in notes
        if note.behavior in (None, behavior.name)
    ]
    return (*saved, *lessons, *changes, *rollbacks, *written)
