"""The figure of several runs: their curves in one chart, those of a group as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rl_tui.engine.session.behavior_view import EVALUATION, BehaviorView
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.charts.band import band_curve
from rl_tui.tui.charts.curve import Curve, history_curve, source_of
from rl_tui.tui.charts.figure import Figure
from rl_tui.tui.charts.metrics import metric_title
from rl_tui.tui.charts.run_figure import LABELS, MAX_CURVES
from rl_tui.tui.charts.state import ChartState
from rl_tui.tui.charts.window import viewport_of
from rl_tui.tui.charts.x_axis import full_range
from rl_tui.tui.drawing.lines import SERIES, Tone


class Member(NamedTuple):
    """A behavior of one run. origin: when the run began."""

    run_id: str
    behavior: BehaviorView
    origin: float


class Compared(NamedTuple):
    """One behavior of one of the runs, or of each run of a group.

    number: of the run or group, from 0; dash: of the behavior, likewise; members: at least one, of a run one.
    """

    number: int
    name: str
    members: tuple[Member, ...]
    is_group: bool = False
    dash: int = 0

    @property
    def label(self) -> str:
        """The sign at the end of its curve."""
        return LABELS[self.number % len(LABELS)]

    @property
    def tone(self) -> Tone:
        """The color of its run."""
        return SERIES[self.number % len(SERIES)]

    @property
    def tags(self) -> list[str]:
        """The metrics that any of the members has."""
        return list(dict.fromkeys(tag for member in self.members for tag in member.behavior.histories))

    def curves(self, tag: str, state: ChartState) -> list[Curve]:
        """That of each member that has a point."""
        return [
            history_curve(member.behavior.histories[tag], state.x_axis, member.origin)
            for member in self.members
            if len(member.behavior.histories.get(tag, ()))
        ]


def compared_figure(shown: Sequence[Compared], state: ChartState) -> Figure | None:
    """The chosen metrics of each; None while none has a point."""
    extents = [
        curve.extent for each in shown for tag in state.metrics for curve in each.curves(tag, state)
    ]  # fmt: skip
    full = full_range(extents, state.x_axis)
    if full is None:
        return None
    viewport = viewport_of(state.window, state.is_live, full, max(last for _, last in extents))
    curves = [curve for each in shown for curve in _curves(each, state, viewport.shown)]
    return Figure(
        tuple(curves[:MAX_CURVES]), viewport, state.x_axis, state.smoothing, state.is_log, state.crosshair, (),
        max(0, len(curves) - MAX_CURVES), state.clips_outliers, state.ranges_of(state.metrics),
    )  # fmt: skip


def _curves(each: Compared, state: ChartState, in_sight: tuple[float, float]) -> Iterator[Curve]:
    for at, tag in enumerate(state.metrics):
        name = safe_text(each.name) + (f" {metric_title(tag)}" if len(state.metrics) > 1 else "")
        dash = each.dash + at
        if each.is_group:
            band = band_curve(
                each.curves(tag, state), in_sight, state.smoothing,
                name=name, label=each.label, tone=each.tone, metric=tag, dash=dash,
                source=source_of(each.name, each.members[0].behavior.name, tag),
            )  # fmt: skip
            if band is not None:
                yield band
        elif each.curves(tag, state):
            run_id, behavior, origin = each.members[0]
            yield history_curve(
                behavior.histories[tag], state.x_axis, origin, name=name, label=each.label, tone=each.tone, metric=tag,
                dash=dash, has_points=tag == EVALUATION, source=source_of(run_id, behavior.name, tag),
            )  # fmt: skip
