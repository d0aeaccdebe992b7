"""The processes of a run: this one, its workers and what they have started."""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

import psutil

from rl_tui.engine.session.messages import RunProcess

SEARCH_SECONDS = 10.0  # between searches for child processes, each of which reads the whole process table
MOST_PROCESSES = 8  # that a sample names: those with the most memory
OWN_NAME = "training"


class RunProcesses:
    """Measures them on request. Used by one thread.

    names: called with each sample; what worker processes are to the user, by process id.
    """

    def __init__(self, names: Callable[[], Mapping[int, str]] = dict):
        self._names = names
        self._searched_at = -math.inf
        self._families: dict[int, list[psutil.Process]] = {}  # this process, and each child with all below it

    def sample(self) -> tuple[int, tuple[RunProcess, ...]]:
        """Resident bytes of all together, shared pages in each, and those with the most. Never raises."""
        if time.monotonic() - self._searched_at > SEARCH_SECONDS:
            self._searched_at = time.monotonic()
            self._families = _families()
        own, names = next(iter(self._families)), self._names()
        found = []
        for pid, family in self._families.items():
            name = OWN_NAME if pid == own else names.get(pid) or f"process {pid}"
            memory = sum(_resident_bytes(process) for process in family)
            found.append(RunProcess(pid, name, memory, max(_descriptors(process) for process in family)))
        found.sort(key=lambda process: -process.memory_bytes)
        return sum(process.memory_bytes for process in found), tuple(found[:MOST_PROCESSES])


class WorkerMemory:
    """How much memory worker processes take, each with what it has started itself. Used by one thread.

    A search takes a hundredth of a second where a machine has a thousand processes, the rest some microseconds each.
    """

    def __init__(self) -> None:
        self._searched_at = -math.inf
        self._families: dict[int, list[psutil.Process]] = {}

    def sample(self, pids: Iterable[int]) -> dict[int, int | None]:
        """Resident bytes by process id, shared pages in each; None for one that has ended. Never raises."""
        pids = tuple(pids)
        if time.monotonic() - self._searched_at > SEARCH_SECONDS or not self._families.keys() >= set(pids):
            self._searched_at = time.monotonic()
            families = _families()
            self._families = {pid: families.get(pid) or _alone(pid) for pid in pids}
        return {pid: sum(map(_resident_bytes, self._families[pid])) or None for pid in pids}


def max_descriptors() -> int:
    """How many descriptors this process, and each that inherits its limits, may have open; 0 for no limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 0 if soft == resource.RLIM_INFINITY else soft


def _families() -> dict[int, list[psutil.Process]]:
    own = psutil.Process()
    families, heads = {own.pid: [own]}, dict[int, int]()
    with suppress(psutil.Error, OSError):  # one has ended meanwhile: the rest is found at the next search
        for process in own.children(recursive=True):  # parents before their children
            head = heads[process.pid] = heads.get(process.ppid(), process.pid)
            families.setdefault(head, []).append(process)
    return families


def _alone(pid: int) -> list[psutil.Process]:
    """A process that is no child of this one, or has ended."""
    with suppress(psutil.Error, OSError):
        return [psutil.Process(pid)]
    return []


def _resident_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except (psutil.Error, OSError):  # it has ended
        return 0


def _descriptors(process: psutil.Process) -> int:
    try:
        return int(process.num_fds())
    except (psutil.Error, OSError):
        return 0
