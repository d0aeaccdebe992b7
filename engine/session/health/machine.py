"""Rules about the machine of a run, judged at each sample of its devices."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

from rl_tui.engine.session.health.rules import Finding, Streak, Verdict
from rl_tui.engine.session.messages import DevicesSampled

GIB = 1 << 30
SAMPLES = 3  # in a row, so that a short peak gives no warning
OWN_SHARE = 0.05  # of what is used: below it, other programs fill the memory


def gib(num_bytes: float) -> str:
    """The number of GiB, with two digits or more: 0.49, 7.1, 128."""
    return f"{num_bytes / GIB:.2g}" if num_bytes < 10 * GIB else f"{num_bytes / GIB:.0f}"


@dataclass(frozen=True, slots=True)
class Moment:
    """When a sample was taken. seconds: never decreasing. steps: of all behaviors together. is_filling: some replay
    buffer still grows."""

    seconds: float
    steps: int = 0
    is_filling: bool = False


class MachineRule(Protocol):
    """One thing that can be wrong with the machine, with the state needed to detect it."""

    def judge(self, sample: DevicesSampled, at: Moment) -> Verdict:
        """Judge this sample, taken at that moment."""


class DiskFilling:
    """At the rate of the last minutes the disk will soon be full."""

    def __init__(self) -> None:
        self._window: deque[tuple[float, int]] = deque(maxlen=60)  # ten minutes of (now, free bytes)

    def judge(self, sample: DevicesSampled, at: Moment) -> Verdict:
        """Judge over at least five minutes, so that one large checkpoint does not look like a trend."""
        free, now = sample.disk_free_bytes, at.seconds
        if sample.disk_total_bytes <= 0:
            return None
        if not self._window or now - self._window[-1][0] >= 10.0:
            self._window.append((now, free))
        since, before = self._window[0]
        if now - since < 300.0:
            return None
        if before <= free:
            return "fine"
        minutes = free / (before - free) * (now - since) / 60
        if minutes < 60 and free < 10 * GIB:
            return Finding(
                f"disk full in {minutes:.0f} minutes at this rate, {gib(free)} GiB free",
                "free space, lower keep_checkpoints or raise checkpoint_interval",
            )
        return "fine" if minutes > 120 or free > 12 * GIB else None


class DiskNearlyFull:
    """The disk has no room for many more checkpoints."""

    def judge(self, sample: DevicesSampled, at: Moment) -> Verdict:
        """Judge by a limit of 1 GiB, on a small disk by a twentieth of its size."""
        free, low = sample.disk_free_bytes, min(GIB, sample.disk_total_bytes // 20)
        if low <= 0:
            return None
        if free < low:
            return Finding(
                f"disk nearly full, {free >> 20} MiB free", "free space: checkpoints and logs will fail without it"
            )
        return "fine" if free > 1.5 * low else None


class MemoryNearlyFull:
    """The memory of the machine, or of this program's share of it, is nearly used up, and not by others alone."""

    def __init__(self) -> None:
        self._is_high = Streak(SAMPLES)

    def judge(self, sample: DevicesSampled, at: Moment) -> Verdict:
        """Judge by 80 % of a control group's limit, where the system kills at once, or 92 % of a machine's memory."""
        used, total, own = sample.memory_used_bytes, sample.memory_total_bytes, sample.process_memory_bytes
        if total <= 0:
            return None
        limit = (0.8 if sample.is_memory_limited else 0.92) * total
        if self._is_high.add(used > limit and own >= OWN_SHARE * used):
            most = "".join(f", {gib(each.memory_bytes)} GiB of it by {each.name}" for each in sample.processes[:1])
            return Finding(
                f"memory {used / total:.0%} used, {gib(own)} GiB of {gib(total)} GiB by this run{most}",
                "end other programs, or lower num_envs or buffer_size, before the system kills the run",
            )
        return "fine" if used < limit - 0.04 * total or own < OWN_SHARE * used / 2 else None


class GpuHot:
    """A GPU is so hot that its driver may slow it down."""

    def __init__(self) -> None:
        self._is_high = Streak(SAMPLES)

    def judge(self, sample: DevicesSampled, at: Moment) -> Verdict:
        """Judge the hottest one by a limit of 85 degrees."""
        heats = [(gpu.temperature_celsius, gpu) for gpu in sample.gpus if gpu.temperature_celsius is not None]
        heat, hottest = max(heats, key=lambda pair: pair[0], default=(0.0, None))
        if self._is_high.add(heat >= 85) and hottest is not None:
            return Finding(f"GPU {hottest.index} at {heat:.0f} C", "check its cooling; a hot GPU slows itself down")
        return "fine" if heat < 80 else None
