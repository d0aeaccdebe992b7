"""The processes that have memory on a GPU, as the NVIDIA driver and the system tell them."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

import psutil

from rl_tui.engine.session.messages import GpuProcess

MOST_PROCESSES = 32  # of one GPU: those with the most memory
LONGEST_NAME = 100


class ProcessNames:
    """What the system says of processes, asked once as long as they stay on a GPU. Used by one thread.

    In a container the driver may count processes as its host does: those have no name here, and are nobody's.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[str, bool]] = {}  # (name, is it this process or one below it)

    def described(self, by_gpu: list[dict[int, int | None]]) -> list[tuple[GpuProcess, ...]]:
        """The processes of each GPU, most memory first. by_gpu: bytes by process id."""
        self._known = {pid: self._known.get(pid) or _described(pid) for memory in by_gpu for pid in memory}
        return [
            tuple(GpuProcess(pid, self._known[pid][0], memory[pid], self._known[pid][1]) for pid in memory)
            for memory in by_gpu
        ]


def memory_by_process(nvml: ModuleType, handle: Any) -> dict[int, int | None]:
    """Bytes by process id, None where the driver does not tell, of at most MOST_PROCESSES; {} when it fails."""
    memory: dict[int, int | None] = {}
    for kind in ("Compute", "Graphics"):
        for process in _running(nvml, handle, kind):  # one that does both is in both lists, with all its memory
            memory[process.pid] = max(memory.get(process.pid) or 0, process.usedGpuMemory or 0) or None
    largest = sorted(memory.items(), key=lambda item: (-(item[1] or 0), item[0]))
    return dict(largest[:MOST_PROCESSES])


def _running(nvml: ModuleType, handle: Any, kind: str) -> list[Any]:
    for version in ("v3", "v2"):  # drivers before 510 know only the second
        try:
            return list(getattr(nvml, f"nvmlDeviceGet{kind}RunningProcesses_{version}")(handle))
        except nvml.NVMLError_FunctionNotFound:
            continue
        except nvml.NVMLError:
            break
    return []


def _described(pid: int) -> tuple[str, bool]:
    try:
        process = psutil.Process(pid)
        is_ours = os.getpid() in (pid, *(parent.pid for parent in process.parents()))
        return process.name()[:LONGEST_NAME], is_ours
    except (psutil.Error, OSError):  # it has ended, or lives where this process cannot look
        return "", False
