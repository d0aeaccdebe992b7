"""The top line: which run, what it does, how long still, how fast, how safe."""

from __future__ import annotations

import math

from engine.session.text import safe_text
from engine.session.view import BehaviorView, RunView
from tui.charts.bar import bar
from tui.lines import Line, Span, flush, line, pack, state_tone
from tui.panes.base import BEAT, Frame, Pane, is_over
from tui.panes.behaviors import is_filling
from tui.panes.devices import DISK_LOW_BYTES
from tui.text import count, duration, fit, left, percent, right, size, time_of_day

STALE_SECONDS = 5.0  # the engine samples devices every second, so this much silence means it is stuck


class StateLine(Pane):
    """One line; what does not fit goes in order of importance."""

    seconds = BEAT

    def inputs(self, frame: Frame) -> object:
        """What is more than a figure."""
        view = frame.view
        states = [behavior.state for behavior in view.behaviors.values()]
        return states, frame.notes, len(view.warnings), _silent_seconds(frame) > 0, view.last_checkpoint_at

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """One line."""
        return [state_line(frame, width)]


def state_line(frame: Frame, width: int) -> Line:
    """The run's line, as much of it as fits `width`."""
    view, glyphs = frame.view, frame.glyphs
    name = safe_text(view.run.run_id if view.run else frame.config_name)
    brand = Span("rl-tui " if width >= 100 else "", "dim")
    title = line(brand, Span(fit(name, max(8, width // 3), glyphs.ellipsis), "strong"))
    state = line(Span(f"{glyphs.of(view.state)} {_state_word(view)}", state_tone(view.state)))
    parts = [line(" ", *title), state] if name else [line(" ", *state)]
    if frame.is_frozen:
        parts.append(line(Span(" VIEW FROZEN ", "flag")))
    parts += [line(Span(note, "accent")) for note in frame.notes]
    parts += [line(Span(f"{glyphs.warning} {words}", "warning")) for words in _alarms(frame)]
    parts += _figures(frame, width)
    return pack(parts, width, gap=2) if width < 100 else _with_progress(frame, pack(parts, width), width)


def _alarms(frame: Frame) -> list[str]:
    """What is wrong with the run as a whole, and how many warnings there are."""
    view, silent = frame.view, _silent_seconds(frame)
    alarms = [f"no data for {duration(silent)}"] if silent else []
    if view.devices is not None and view.devices.disk_free_bytes < DISK_LOW_BYTES and not is_over(view):
        alarms.append(f"disk {size(view.devices.disk_free_bytes)} free")
    if view.warnings:
        alarms.append(f"{len(view.warnings)} warning{'s' if len(view.warnings) > 1 else ''}")
    return alarms


def _silent_seconds(frame: Frame) -> float:
    """For how long a training run has told nothing; 0 while that is no cause for alarm."""
    silent = frame.now - frame.view.now
    return silent if frame.view.state == "training" and not frame.is_frozen and silent > STALE_SECONDS else 0.0


def _state_word(view: RunView) -> str:
    if view.run is None and view.state == "starting":
        return "starting engine"
    if view.state == "training" and view.behaviors:
        training = sum(behavior.state == "training" for behavior in view.behaviors.values())
        return f"TRAINING {training}/{len(view.behaviors)}"
    code = f" (exit {view.exit_code})" if view.exit_code is not None and is_over(view) else ""
    return view.state.upper() + code


def _figures(frame: Frame, width: int) -> list[Line]:
    """Each of a fixed width, so that none moves while another changes."""
    view, is_wide = frame.view, width >= 100
    if view.started_at is None:
        return []
    figures = [line(Span("up " if is_wide else "", "dim"), left(duration(frame.time - view.started_at), 5))]
    if is_over(view):
        return figures
    remaining = eta_seconds(view)
    if remaining is not None:
        end = f" ({time_of_day(frame.time + remaining, seconds=False)})" if is_wide else ""
        figures.append(line(Span("ETA ", "dim"), left(duration(remaining) + end, 5 + len(end))))
    if view.steps_per_second > 0:
        rate = right(count(view.steps_per_second), 5)
        figures.append(line(rate, Span(" steps/s" if is_wide else " st/s", "dim")))
    saved_at = view.last_checkpoint_at
    if saved_at is not None:
        age = left(duration(frame.time - saved_at) + " ago" * is_wide, 9 if is_wide else 5)
        figures.append(line(Span("checkpoint " if is_wide else "ckpt ", "dim"), age))
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
    times = [remaining_seconds(behavior) for behavior in view.behaviors.values()]
    return max((seconds for seconds in times if seconds is not None), default=None)


def remaining_seconds(behavior: BehaviorView) -> float | None:
    """Seconds until a training behavior reaches max_steps at its speed of now; None when nothing tells.

    While it fills its replay buffer nothing does: it will be slower once it learns.
    """
    if behavior.state != "training" or is_filling(behavior) or behavior.steps_per_second <= 0 or not behavior.max_steps:
        return None
    seconds = max(0, behavior.max_steps - behavior.step) / behavior.steps_per_second
    return seconds if math.isfinite(seconds) else None
