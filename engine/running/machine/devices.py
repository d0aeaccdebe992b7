"""Measurements of GPUs, CPU, memory and disk, as one event."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from rl_tui.engine.running.machine import cgroups
from rl_tui.engine.running.machine.gpus import GpuProbe
from rl_tui.engine.running.machine.processes import RunProcesses, max_descriptors
from rl_tui.engine.session.messages import DevicesSampled


def usable_cpus(root: Path = cgroups.ROOT) -> int:
    """How many CPUs this process can use: those it may run on, or fewer by its cgroup's quota; at least 1."""
    allowed = len(_affinity()) or os.cpu_count() or 1
    quota = cgroups.cpu_quota(root)
    return max(1, allowed if quota is None else min(allowed, math.ceil(quota.num_cpus)))


class DeviceSampler:
    """Measures the devices on request. Used by one thread. Owns the connection to the NVIDIA driver.

    gpu_index: torch's index of the CUDA device that trains, None on the CPU. names: as for RunProcesses.
    """

    def __init__(
        self,
        results_path: Path,
        gpu_index: int | None = None,
        names: Callable[[], Mapping[int, str]] = dict,
        root: Path = cgroups.ROOT,
    ):
        self._results_path = results_path
        self._root = root
        self._gpus = GpuProbe(gpu_index)
        self._cpu = CpuMeter(root)
        self._processes = RunProcesses(names)

    def sample(self) -> DevicesSampled:
        """Measure everything now. Never raises; sizes that cannot be read are 0.

        cpu_percent: of all usable CPUs since the last call, 0 at the first. process_memory_bytes: includes child
        processes; shared pages count in each.
        """
        gpus, note = self._gpus.probe()
        used, total, is_limited = self._memory()
        free, size = self._disk()
        own, processes = self._processes.sample()
        return DevicesSampled(
            gpus=gpus,
            gpu_note=note,
            cpu_percent=self._cpu.percent(),
            num_cpus=usable_cpus(self._root),
            memory_used_bytes=used,
            memory_total_bytes=total,
            process_memory_bytes=own,
            disk_free_bytes=free,
            disk_total_bytes=size,
            is_memory_limited=is_limited,
            processes=processes,
            max_descriptors=max_descriptors(),
        )

    def close(self) -> None:
        """Disconnect from the driver."""
        self._gpus.close()

    def _memory(self) -> tuple[int, int, bool]:
        """Bytes used, of how many, and whether that is the limit of a control group."""
        machine = psutil.virtual_memory()
        limit = cgroups.memory_limit(self._root)
        if limit is not None and limit.limit_bytes < machine.total:
            return limit.used_bytes, limit.limit_bytes, True
        return machine.total - machine.available, machine.total, False

    def _disk(self) -> tuple[int, int]:
        for folder in (self._results_path, *self._results_path.absolute().parents):
            try:
                usage = shutil.disk_usage(folder)
            except OSError:  # the results folder is created by its first run
                continue
            return usage.free, usage.total
        return 0, 0


class CpuMeter:
    """The load of the usable CPUs: of this group under a quota, otherwise of all processes on the allowed CPUs."""

    def __init__(self, root: Path = cgroups.ROOT):
        self._root = root
        self._last: tuple[float, float] | None = None  # (clock, busy seconds of one CPU)

    def percent(self) -> float:
        """Percent since the last call, 0 at the first; 100 is all usable CPUs."""
        quota = cgroups.cpu_quota(self._root)
        if quota is not None and quota.used_seconds is not None:
            busy, num_cpus = quota.used_seconds, min(quota.num_cpus, len(_affinity()) or math.inf)
        else:
            busy, num_cpus = _busy_seconds(), len(_affinity()) or os.cpu_count() or 1
        now, last = time.monotonic(), self._last
        self._last = now, busy
        if last is None or now <= last[0]:
            return 0.0
        return min(100.0, max(0.0, 100.0 * (busy - last[1]) / (now - last[0]) / num_cpus))


def _affinity() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def _busy_seconds() -> float:
    """CPU time of all processes on the allowed CPUs since the machine started."""
    allowed = _affinity()
    times = psutil.cpu_times(percpu=True)
    counted = [cpu for number, cpu in enumerate(times) if not allowed or number in allowed] or times
    return float(sum(_busy(cpu) for cpu in counted))


def _busy(cpu: Any) -> float:
    # The kernel includes guest time in user time, and iowait is idle time (proc(5)).
    others = ("idle", "iowait", "guest", "guest_nice")
    return float(sum(cpu) - sum(getattr(cpu, name, 0.0) for name in others))
