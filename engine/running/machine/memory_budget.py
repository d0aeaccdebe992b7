"""How much memory there is for what a run knows it will take: its replay buffers."""

from __future__ import annotations

from pathlib import Path

import psutil

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.machine import cgroups

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def available_bytes(root: Path = cgroups.ROOT) -> int:
    """What this process may still take: of the machine's memory, or of its cgroup's where that has less."""
    machine = int(psutil.virtual_memory().available)
    limit = cgroups.memory_limit(root)
    return machine if limit is None else min(machine, max(0, limit.limit_bytes - limit.used_bytes))


def size_text(num_bytes: int) -> str:
    """As a message shows it: "12.3 MiB"."""
    power = min(max(0, num_bytes.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{num_bytes} bytes" if power == 0 else f"{num_bytes / 1024**power:.1f} {_UNITS[power]}"


class MemoryBudget:
    """Used by the builder. Adds up what behaviors will take, before anything of it is taken.

    num_bytes: what is free now.
    """

    def __init__(self, num_bytes: int):
        self._free = num_bytes
        self._claimed = 0

    def claim(self, behavior: str, num_steps: int, num_bytes: int, is_saved: bool) -> None:
        """Set aside memory for a replay buffer, and for the copy that saving it takes. Raises ConfigError."""
        needed = num_bytes * (2 if is_saved else 1)
        if self._claimed + needed <= self._free:
            self._claimed += needed
            return
        cost = f"{num_steps} steps take {size_text(num_bytes)}"
        if is_saved:
            cost += ", twice that while save_replay_buffer copies them"
        free = f"{size_text(self._free)} of memory are free"
        if self._claimed:
            free += f", {size_text(self._claimed)} of that for other behaviors"
        raise ConfigError(
            f"behaviors.{behavior}.hyperparameters.buffer_size: {cost}, and {free}. Fewer steps are right."
        )
