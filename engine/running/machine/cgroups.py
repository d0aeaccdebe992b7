"""The limits of this process's control groups (Linux, versions 1 and 2; other systems have none).

A limit may be set for the process's own group or any group above it; the tightest one applies. `root` is the root of
the file system for all functions here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path("/")


@dataclass(frozen=True, slots=True)
class CpuQuota:
    """num_cpus: how many CPUs the group may use, for example 1.5. used_seconds: CPU time used so far."""

    num_cpus: float
    used_seconds: float | None


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """used_bytes: without file pages that the kernel can drop at any time."""

    limit_bytes: int
    used_bytes: int


def cpu_quota(root: Path = ROOT) -> CpuQuota | None:
    """The tightest CPU quota of this process; None without one."""
    quotas = [(quota, folder) for folder in _folders("cpu", root) if (quota := _quota(folder)) is not None]
    if not quotas:
        return None
    num_cpus, folder = min(quotas)
    return CpuQuota(num_cpus, _cpu_seconds(folder, root))


def memory_limit(root: Path = ROOT) -> MemoryLimit | None:
    """The tightest memory limit of this process, and how much of it is used; None without one."""
    limits = []
    for folder in _folders("memory", root):
        limit = _integer(folder / "memory.max") or _integer(folder / "memory.limit_in_bytes")
        if limit is not None:
            limits.append((limit, folder))
    if not limits:
        return None
    limit, folder = min(limits)
    used = _integer(folder / "memory.current") or _integer(folder / "memory.usage_in_bytes") or 0
    stat = _table(folder / "memory.stat")
    droppable = stat.get("total_inactive_file", stat.get("inactive_file", 0))  # version 1 has the sum under total_
    return MemoryLimit(limit, max(0, used - droppable))


def _quota(folder: Path) -> float | None:
    fields = _text(folder / "cpu.max").split()
    if len(fields) == 2 and fields[0].isdigit() and int(fields[1]) > 0:
        return int(fields[0]) / int(fields[1])
    quota, period = _integer(folder / "cpu.cfs_quota_us"), _integer(folder / "cpu.cfs_period_us")
    return quota / period if quota and period and quota > 0 else None


def _cpu_seconds(folder: Path, root: Path) -> float | None:
    microseconds = _table(folder / "cpu.stat").get("usage_usec")
    if microseconds is not None:
        return microseconds / 1e6
    nanoseconds = next((_integer(accounts / "cpuacct.usage") for accounts in _folders("cpuacct", root)), None)
    return None if nanoseconds is None else nanoseconds / 1e9


def _folders(controller: str, root: Path) -> Iterator[Path]:
    """The folder of this process's group and of each group above it, nearest first."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        mount = root / "sys/fs/cgroup"
        if controller in controllers.split(","):
            mount /= controller
        elif controllers:
            continue
        group = PurePosixPath(path.lstrip("/"))
        # Inside a container the path may be the host's, or lead out of the namespace: only existing folders count.
        for part in (group, *group.parents):
            if ".." not in part.parts and (mount / part).is_dir():
                yield mount / part


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _integer(path: Path) -> int | None:
    try:
        return int(_text(path))
    except ValueError:  # absent, or "max"
        return None


def _table(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in _text(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
