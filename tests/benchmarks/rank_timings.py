"""How long the exchanges of a rank take: the part of rank_exchanges.py that every rank runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

import torch

from rl_tui.engine.learning.sync import ProcessGroup, Sync
from rl_tui.engine.running.ranks.shared_memory import shared_memory
from tests.deadline import DEADLINE_SECONDS


def timed(sync: Sync, sizes: Sequence[int], rounds: int, in_memory: bool) -> dict[str, float]:
    """The median seconds of every exchange, on this rank. in_memory: that the ranks share."""
    found: dict[str, float] = {}
    if in_memory and sync.size > 1:
        assert isinstance(sync, ProcessGroup)
        memory = shared_memory(sync, DEADLINE_SECONDS, lambda: "")
        assert memory is not None
        sync.transport = memory
    with sync.together("nothing"):
        for size in sizes:
            gradient, seconds = torch.zeros(size), []
            for _ in range(max(10, rounds * 10_000 // max(size, 10_000))):
                start = time.perf_counter()
                sync.average_gradients([gradient], 1)
                seconds.append(time.perf_counter() - start)
            found[f"gradient of {size:,}"] = median(seconds)
        seconds = []
        for _ in range(rounds):
            start = time.perf_counter()
            sync.all(True)
            seconds.append(time.perf_counter() - start)
        found["a flag"] = median(seconds)
    return found
