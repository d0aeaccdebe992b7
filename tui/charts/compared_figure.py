"""The figure of several runs: their curves in one chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.session.text import safe_text
from engine.session.view import EVALUATION, BehaviorView
from tui.charts.curve import Curve, history_curve, source_of
from tui.charts.figure import Figure
from tui.charts.metrics import metric_title
from tui.charts.run_figure import LABELS, MAX_CURVES
from tui.charts.state import ChartState
from tui.charts.window import sight_of
from tui.charts.x_axis import full_range
from tui.lines import SERIES, Tone


class Compared(NamedTuple):
    """One behavior of one of the runs.

    number: of the run, from 0; dash: of the behavior, likewise; origin: when the run began.
    """

    number: int
    name: str
    behavior: BehaviorView
    origin: float
    dash: int = 0
    run_id: str = ""

    @property
    def label(self) -> str:
        """The sign at the end of its curve."""
        return LABELS[self.number % len(LABELS)]

    @property
    def tone(self) -> Tone:
        """The color of its run."""
        return SERIES[self.number % len(SERIES)]


def compared_figure(shown: Sequence[Compared], state: ChartState) -> Figure | None:
    """The chosen metrics of each; None while none has a point."""
    curves = [curve for each in shown for curve in _curves(each, state)]
    full = full_range([curve.extent for curve in curves], state.x_axis)
    if full is None:
        return None
    sight = sight_of(state.window, state.is_live, full, max(curve.extent[1] for curve in curves))
    return Figure(
        tuple(curves[:MAX_CURVES]), sight, state.x_axis, state.smoothing, state.is_log, state.crosshair, (),
        max(0, len(curves) - MAX_CURVES),
    )  # fmt: skip


def _curves(each: Compared, state: ChartState) -> list[Curve]:
    has_several = len(state.metrics) > 1
    return [
        history_curve(
            each.behavior.histories[tag], state.x_axis, each.origin, label=each.label, tone=each.tone, metric=tag,
            name=f"{safe_text(each.name)} {metric_title(tag)}" if has_several else safe_text(each.name),
            dash=each.dash + at, has_points=tag == EVALUATION,
            source=source_of(each.run_id, each.behavior.name, tag),
        )
        for at, tag in enumerate(state.metrics)
        if len(each.behavior.histories.get(tag, ()))
    ]  # fmt: skip
