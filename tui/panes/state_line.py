"""The top line: which run, what it does, how long still, how fast, how safe."""

from __future__ import annotations

import math

from engine.session.text import safe_text
from engine.session.view import BehaviorView, RunView
from tui.charts.bar import bar
from tui.lines import Line, Span, flush, line, pack, state_tone
from tui.panes.base import Frame, Pane, is_over
from tui.text import count, duration, fit, percent, time_of_day

STALE_SECONDS = 5.0  # the engine samples devices every second, so this much silence means it is stuck


class StateLine(Pane):
    """One line; what does not fit goes in order of importance."""

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """One line."""
        return [state_line(frame, width)]


def state_line(frame: Frame, width: int) -> Line:
    """The run's line, as much of it as fits `width`."""
    view = frame.view
    name = safe_text(view.run.run_id if view.run else frame.config_name)
    title = line(Span("rl-tui ", "dim"), Span(fit(name, max(8, width // 3), frame.glyphs.ellipsis), "strong"))
    state = line(Span(f"{frame.glyphs.of(view.state)} {_state_word(view)}", state_tone(view.state)))
    parts = [line(" ", *title), state]
    if frame.is_frozen:
        parts.append(line(Span(" VIEW FROZEN ", "flag")))
    silent = frame.now - view.now
    if view.state == "training" and not frame.is_frozen and silent > STALE_SECONDS:
        parts.append(line(Span(f"{frame.glyphs.warning} no data for {duration(silent)}", "warning")))
    parts += _figures(frame, width)
    return pack(parts, width) if width < 100 else _with_progress(frame, pack(parts, width), width)


def _state_word(view: RunView) -> str:
    if view.run is None and view.state == "starting":
        return "starting engine"
    if view.state == "training" and view.behaviors:
        training = sum(behavior.state == "training" for behavior in view.behaviors.values())
        return f"TRAINING {training}/{len(view.behaviors)}"
    code = f" (exit {view.exit_code})" if view.exit_code is not None and is_over(view) else ""
    return view.state.upper() + code


def _figures(frame: Frame, width: int) -> list[Line]:
    view, is_wide = frame.view, width >= 100
    if view.started_at is None:
        return []
    figures = [line(Span("up " if is_wide else "", "dim"), duration(frame.time - view.started_at))]
    left = eta_seconds(view)
    if left is not None and not is_over(view):
        end = f" ({time_of_day(frame.time + left, seconds=False)})" if is_wide else ""
        figures.append(line(Span("ETA ", "dim"), duration(left) + end))
    if view.steps_per_second > 0:
        figures.append(line(count(view.steps_per_second), Span(" steps/s" if is_wide else " st/s", "dim")))
    saved_at = view.last_checkpoint_at
    if saved_at is not None and not is_over(view):
        age = duration(frame.time - saved_at)
        figures.append(line(Span("checkpoint " if is_wide else "ckpt ", "dim"), age, Span(" ago" * is_wide, "dim")))
    return figures


def _with_progress(frame: Frame, spans: Line, width: int) -> Line:
    """The line with the run's progress at its right end, where there is room."""
    behaviors = [behavior for behavior in frame.view.behaviors.values() if behavior.max_steps > 0]
    if not behaviors:
        return spans
    share = sum(min(1.0, behavior.step / behavior.max_steps) for behavior in behaviors) / len(behaviors)
    shown = f" {percent(share, 1.0):3}% "
    return flush(spans, line(*bar(share, 20 if width >= 160 else 10, frame.glyphs, "accent"), shown), width)


def eta_seconds(view: RunView) -> float | None:
    """Seconds until the last of the training behaviors reaches max_steps; None when nothing tells."""
    times = [_remaining(b) for b in view.behaviors.values() if b.state == "training" and b.steps_per_second > 0]
    known = [seconds for seconds in times if math.isfinite(seconds)]
    return max(known) if known else None


def _remaining(behavior: BehaviorView) -> float:
    return max(0, behavior.max_steps - behavior.step) / behavior.steps_per_second
