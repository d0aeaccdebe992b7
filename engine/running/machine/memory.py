"""The memory of this process: how much it may still use, and that it keeps what it has freed."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import psutil

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.machine import cgroups

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD of malloc.h
_THRESHOLD_BYTES = 1 << 30  # larger than any temporary of an update


def available_bytes(root: Path = cgroups.ROOT) -> int:
    """Free memory of the machine, or of this process's cgroup where that has less."""
    machine = int(psutil.virtual_memory().available)
    limit = cgroups.memory_limit(root)
    return machine if limit is None else min(machine, max(0, limit.limit_bytes - limit.used_bytes))


def keep_freed_memory() -> bool:
    """Let the C library reuse freed memory instead of returning it to the kernel; whether it accepted that.

    glibc returns large blocks at once, and the kernel clears each page of the next one: measured, 800 page faults and
    1.3 of the 9 ms of a SAC update, all for temporaries of the same few sizes. Other C libraries are left alone.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
        ctypes.CDLL(None).gnu_get_libc_version  # noqa: B018  # only glibc has it, and only its mallopt has these rules
    except (AttributeError, OSError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _THRESHOLD_BYTES)) and bool(mallopt(_TRIM_THRESHOLD, _THRESHOLD_BYTES))


def size_text(num_bytes: int) -> str:
    """A number of bytes for messages: "12.3 MiB"."""
    power = min(max(0, num_bytes.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{num_bytes} bytes" if power == 0 else f"{num_bytes / 1024**power:.1f} {_UNITS[power]}"


class MemoryBudget:
    """Adds up what the behaviors' replay buffers will need, before anything is allocated. num_bytes: free now."""

    def __init__(self, num_bytes: int):
        self._free = num_bytes
        self._claimed = 0

    def claim(self, behavior: str, num_steps: int, num_bytes: int, num_copies: int) -> None:
        """Reserve memory for a replay buffer, and for so many copies that saving it needs. Raises ConfigError."""
        needed = num_bytes * (1 + num_copies)
        if self._claimed + needed <= self._free:
            self._claimed += needed
            return
        cost = f"{num_steps} steps take {size_text(num_bytes)}"
        if num_copies:
            times = "twice" if num_copies == 1 else f"{1 + num_copies} times"
            cost += f", {times} that while save_replay_buffer copies them"
        free = f"{size_text(self._free)} of memory is free"
        if self._claimed:
            free += f", {size_text(self._claimed)} of that reserved for other behaviors"
        raise ConfigError(f"behaviors.{behavior}.hyperparameters.buffer_size: must be smaller: {cost}, and {free}")
