"""The further lines that `--debug` adds to events: about sizes, times, ranks and devices."""

from __future__ import annotations

from rl_tui.engine.running.machine.memory import size_text
from rl_tui.engine.session.messages import (
    CheckpointSaved,
    DevicesSampled,
    Envelope,
    MetricsReported,
    PolicyExported,
    RanksReported,
    TimeSplit,
)
from rl_tui.engine.session.ranks_view import RanksView


class DebugLines:
    """What `--debug` adds to the events of one run. Used by one thread."""

    def __init__(self) -> None:
        self._splits: dict[str, TimeSplit] = {}
        self._ranks = RanksView()
        self._has_devices = False

    def follow(self, envelope: Envelope) -> list[str]:
        """The lines to print below the event's own."""
        event = envelope.event
        match event:
            case TimeSplit():
                self._splits[event.behavior] = event
            case RanksReported():
                self._ranks.apply(event, envelope.time)
            case MetricsReported():
                split = self._splits.get(event.behavior)
                return [*([_time_split(split)] if split else []), *_ranks(self._ranks)]
            case CheckpointSaved():
                size = size_text(event.size_bytes)
                return [f"{event.behavior}: checkpoint of step {event.step}: {size} in {event.seconds:.3f} s"]
            case PolicyExported():
                return [f"{event.behavior}: export of step {event.step}: written and checked in {event.seconds:.3f} s"]
            case DevicesSampled() if not self._has_devices:
                self._has_devices = True
                return [_devices(event)]
        return []


def _time_split(split: TimeSplit) -> str:
    return (
        f"{split.behavior}: seconds so far: environment {split.environment_seconds:.1f}, policy"
        f" {split.inference_seconds:.1f}, updates {split.update_seconds:.1f}, waiting {split.waiting_seconds:.1f},"
        f" other {split.other_seconds:.1f}"
    )


def _ranks(ranks: RanksView) -> list[str]:
    """All of them in a line, in the order of their numbers; none of a run that has one."""
    if not ranks.statuses:
        return []
    each = ", ".join(
        f"{status.rank}{f' on {status.host}' if ranks.has_hosts else ''} ({status.device})"
        f" {status.steps_per_second:.0f} steps/s, waiting {status.waiting:.0%}"
        for status in ranks.statuses
    )
    return [f"ranks: {each}"]


def _devices(event: DevicesSampled) -> str:
    gpus = ", ".join(gpu.name for gpu in event.gpus) or event.gpu_note
    free = size_text(max(0, event.memory_total_bytes - event.memory_used_bytes))
    return f"machine: {event.num_cpus} CPUs, {free} of memory free, {size_text(event.disk_free_bytes)} of disk; {gpus}"
