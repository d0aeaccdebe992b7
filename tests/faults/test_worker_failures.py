"""A pool survives a thousand failures of its workers, and nothing of them is left."""

from __future__ import annotations

import gc
from pathlib import Path

import psutil
import pytest

from rl_tui.engine.sampling.pools.reports import Restarting
from tests.sampling.driving import named_memory
from tests.sampling.pools.test_restarts import FAULTS, Run, mortals

NUM_FAILURES = 1000
SETTLED = 100  # restarts, after which memory no longer grows
MAX_GROWTH = 2**20  # bytes


class Counting(Run):
    """Keeps no report and no block, only how many failures there were and how much memory was used after each."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]  # passed on as they are
        self.memory: list[int] = []

    def cycle(self) -> bool:
        """As a Run, but nothing is kept."""
        has_arrived = super().cycle()
        for report in self.reports:
            if isinstance(report, Restarting):
                gc.collect()
                self.memory.append(psutil.Process().memory_info().rss)
        self.reports.clear()
        self.blocks.clear()
        return has_arrived


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_a_thousand_mixed_failures_are_survived_and_leave_nothing(tmp_path: Path) -> None:
    own = psutil.Process()
    children, descriptors = own.children(recursive=True), own.num_fds()
    faults = [*FAULTS, "cannot_be_made"]  # the last of them, since the first lives must begin
    with mortals(tmp_path / "lives", *faults, num_copies=4, num_workers=4, repeats=True, timeout=0.5) as pool:
        run = Counting(pool)
        run.until(lambda: len(run.memory) >= NUM_FAILURES, seconds=1500)
        assert len(pool.worker_pids) == 4
        assert len(own.children()) == len(children) + 4
        assert named_memory(own.pid, *pool.worker_pids.values()) == set()
    assert (own.children(recursive=True), own.num_fds()) == (children, descriptors)
    grown = max(run.memory[SETTLED:]) - run.memory[SETTLED]
    print(f"{NUM_FAILURES} failures; memory grew by {grown / 2**10:.0f} KiB since restart {SETTLED}")
    assert grown < MAX_GROWTH
