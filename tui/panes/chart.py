"""Charts of the selected behavior: its reward, and any metric of its summaries."""

from __future__ import annotations

import numpy as np

from engine.session.text import safe_text
from engine.session.view import BehaviorView, History
from tui.charts.line import Look, Mark, line_chart
from tui.lines import Line, Span, flush, line, pack, wrap
from tui.panes.base import Frame, Pane, is_over
from tui.text import count, duration, fit, number


class RewardChart(Pane):
    """The mean reward over steps, with the checkpoints on the step axis."""

    seconds = 0.9

    def inputs(self, frame: Frame) -> object:
        """How far the run has come up."""
        return frame.view.run is None, frame.behavior is not None and len(frame.behavior.returns) > 0

    def heading(self, frame: Frame) -> str:
        """Whose reward it is."""
        return f"Mean reward {frame.glyphs.dot} {safe_text(frame.behavior.name)}" if frame.behavior else "Mean reward"

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Figures above, the curve below; words as long as there is no curve."""
        behavior = frame.behavior
        if behavior is None or not len(behavior.returns):
            return _centered(_waiting(frame), height, width)
        figures = height >= 6
        chart = _chart(behavior.returns, frame, width, height - figures, _marks(behavior, frame))
        if not chart:
            return _centered([Span("every reward so far is NaN or infinite", "bad")], height, width)
        return [_figures(behavior, frame, width), *chart] if figures else chart


class MetricChart(Pane):
    """One metric of the summaries over steps. tag: ML-Agents' name of it."""

    seconds = 1.9

    def __init__(self, title: str, tag: str) -> None:
        super().__init__()
        self._title = title
        self._tag = tag

    def heading(self, frame: Frame) -> str:
        """What is drawn."""
        return self._title

    def inputs(self, frame: Frame) -> object:
        """Whether there is a curve."""
        return frame.behavior is not None and self._tag in frame.behavior.metric_histories

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The curve."""
        history = frame.behavior.metric_histories.get(self._tag) if frame.behavior else None
        chart = _chart(history, frame, width, height, []) if history is not None and len(history) else []
        return chart or _centered([Span("comes with the first summary", "dim")], height, width)


def _chart(history: History, frame: Frame, width: int, height: int, marks: list[Mark]) -> list[Line]:
    # Copies: an array that numpy views cannot grow, and the view goes on folding.
    xs, ys = np.array(history.xs), np.array(history.ys)
    look = Look(frame.glyphs, frame.tone, spread=frame.has_color or not frame.glyphs.braille)
    return line_chart(xs, ys, width, height, look, marks)


def _marks(behavior: BehaviorView, frame: Frame) -> list[Mark]:
    saved = [Mark(event.step, frame.glyphs.saved, "dim") for _, event in behavior.checkpoints]
    best = [Mark(event.step, frame.glyphs.best, "warning") for _, event in behavior.checkpoints if event.is_best]
    return saved + best[-1:]


def _figures(behavior: BehaviorView, frame: Frame, width: int) -> Line:
    if behavior.state == "failed":
        reason = fit(f" {frame.glyphs.failed} failed: {safe_text(behavior.reason)}", width, frame.glyphs.ellipsis)
        return line(Span(reason, "bad"))
    last = line(Span(" last ", "dim"), Span(number(behavior.mean_return), "strong"))
    best = line(Span("best ", "dim"), number(behavior.best_return))
    steps = line(Span("step ", "dim"), count(behavior.step), Span(f" of {count(behavior.max_steps)}", "dim"))
    saved = line(Span(f"{frame.glyphs.saved} checkpoint  {frame.glyphs.best} best", "dim"), " ")
    return flush(pack([last, best, steps], width), saved if behavior.checkpoints else (), width)


def _waiting(frame: Frame) -> list[Span]:
    """Why there is no curve yet, in the order in which a run comes up."""
    view, behavior = frame.view, frame.behavior
    if behavior is not None and behavior.state == "failed":
        return [Span(f"{frame.glyphs.failed} failed: {safe_text(behavior.reason)}", "bad")]
    if is_over(view):
        return [Span("the run ended before the first episode did", "dim")]
    if view.run is None:
        return [Span("starting engine", "wait"), Span("the libraries are being loaded", "dim")]
    if behavior is None or behavior.state == "starting":
        return [Span("starting the environments", "wait")]
    steps = max(behavior.sampled, behavior.step)
    rate = f" at {count(behavior.steps_per_second)} steps/s" if behavior.steps_per_second else ""
    since = f", {duration(frame.time - view.started_at)} after the start" if view.started_at else ""
    return [Span("waiting for the first episode", "wait"), Span(f"{count(steps)} steps collected{rate}{since}", "dim")]


def _centered(spans: list[Span], height: int, width: int) -> list[Line]:
    rows = [Span(row, span.tone) for span in spans for row in wrap(span.text, width - 2, 3)]
    top = max(0, (height - len(rows)) // 2)
    return [line()] * top + [line(" " * max(0, (width - len(r.text)) // 2), r) for r in rows]
