"""What `--debug` adds to the console's lines: when, how long it took, and where the time goes."""

from __future__ import annotations

import time

from rl_tui.engine.running.machine.memory_budget import size_text
from rl_tui.engine.session.messages import (
    CheckpointSaved,
    DevicesSampled,
    Event,
    MetricsReported,
    PolicyExported,
    TimeSplit,
)


class Details:
    """Follows the events of one run. Used by one thread."""

    def __init__(self) -> None:
        self._splits: dict[str, TimeSplit] = {}
        self._has_devices = False

    def about(self, event: Event) -> str | None:
        """One line about the event, below its own; None where there is nothing to add."""
        match event:
            case TimeSplit():
                self._splits[event.behavior] = event
            case MetricsReported() if split := self._splits.get(event.behavior):
                return _time_split(split)
            case CheckpointSaved():
                size = size_text(event.size_bytes)
                return f"{event.behavior}: checkpoint of step {event.step}: {size} in {event.seconds:.3f} s"
            case PolicyExported():
                return f"{event.behavior}: export of step {event.step}: written and checked in {event.seconds:.3f} s"
            case DevicesSampled() if not self._has_devices:
                self._has_devices = True
                return _devices(event)
        return None


def clock_time(seconds: float) -> str:
    """Local date and time to the millisecond, as in 2026-01-31 12:00:00.125."""
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(seconds))}.{int(seconds * 1000) % 1000:03}"


def _time_split(split: TimeSplit) -> str:
    return (
        f"{split.behavior}: seconds so far: environment {split.environment_seconds:.1f}, policy"
        f" {split.inference_seconds:.1f}, updates {split.update_seconds:.1f}, waiting {split.waiting_seconds:.1f},"
        f" other {split.other_seconds:.1f}"
    )


def _devices(event: DevicesSampled) -> str:
    gpus = ", ".join(gpu.name for gpu in event.gpus) or event.gpu_note
    free = size_text(max(0, event.memory_total_bytes - event.memory_used_bytes))
    return f"machine: {event.num_cpus} CPUs, {free} of memory free, {size_text(event.disk_free_bytes)} of disk; {gpus}"
