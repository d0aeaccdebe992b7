"""Workers that act fail a thousand times, also while blocks are written: none is torn, every reward is on its row."""

from __future__ import annotations

import gc
import itertools
import os
import signal
from pathlib import Path

import numpy as np
import psutil
import pytest

from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.sampling.environments.toys.moves import moves
from rl_tui.engine.sampling.pools.reports import Restarted, Restarting
from rl_tui.engine.specs import Actions, Ending, Trajectories
from tests.faults.test_worker_failures import MAX_GROWTH, SETTLED
from tests.sampling.collecting.rounds import Needs, Rounds, started
from tests.sampling.driving import named_memory
from tests.sampling.pools.test_restarts import FAULTS

NUM_FAILURES = int(os.environ.get("RL_TUI_FAILURES", "1000"))
NUM_AGENTS = 2  # of each worker
KILL_EVERY = 3  # restarts: then a worker is killed from outside, wherever it is


class Audit:
    """Checks every row of a walk along a line."""

    def __init__(self) -> None:
        self.num_rows = self.num_interrupted = 0
        self._open: set[int] = set()  # agents whose last segment was cut

    def add(self, block: Trajectories) -> None:
        """Each action must have led to the next position, with its reward; each segment continues one, or begins."""
        sides, positions = (column[:, 0] for column in block.observations)
        after = np.append(positions[1:], np.float32(0))
        after[np.cumsum(block.lengths) - 1] = block.next_observations[1][:, 0]
        moved = moves(Actions(block.continuous_actions, block.discrete_actions)) / np.float32(Line.LENGTH)
        np.testing.assert_allclose(after, np.clip(positions + moved, -1, 1), atol=1e-6)
        has_arrived = np.abs(after) > 1 - 1e-6
        np.testing.assert_allclose(block.rewards, np.where(has_arrived, after * sides, 0) + Line.STEP_REWARD, atol=1e-6)
        columns = block.agent_ids.tolist(), block.begins.tolist(), block.endings.tolist()
        for agent, begins, ending in zip(*columns, strict=True):
            assert begins or agent in self._open, "only a segment that was cut is continued"
            self.num_interrupted += begins and agent in self._open
            (self._open.add if ending == Ending.CUT else self._open.discard)(agent)
        assert not set(block.departed.tolist()) & set(columns[0])
        self._open -= set(block.departed.tolist())
        self.num_rows += block.num_rows


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_a_thousand_mixed_failures_of_workers_that_act(tmp_path: Path) -> None:
    own = psutil.Process()
    children, descriptors = own.children(recursive=True), own.num_fds()
    faults = [*FAULTS, "cannot_be_made"]
    arguments = {"folder": str(tmp_path), "faults": faults, "repeats": True, "at": 37}
    audit, memory, kills = Audit(), list[int](), itertools.count(1)
    with started("tests.sampling.mortal:Mortal", "Walker", 4, 4, arguments, timeout=0.5) as pool:
        rounds = Rounds(pool, Needs(32), horizon=4)
        while len(memory) < NUM_FAILURES:
            rounds.cycle()
            for report in rounds.reports:
                if isinstance(report, Restarting):
                    gc.collect()
                    memory.append(own.memory_info().rss)
                elif isinstance(report, Restarted) and next(kills) % KILL_EVERY == 0:
                    os.kill(pool.worker_pids[report.worker], signal.SIGKILL)
            for _, block in rounds.blocks:
                audit.add(block)
            rounds.reports.clear()
            rounds.blocks.clear()
        assert len(pool.worker_pids) == 4
        assert named_memory(own.pid, *pool.worker_pids.values()) == set()
    assert (own.children(recursive=True), own.num_fds()) == (children, descriptors)
    grown = max(memory[SETTLED:], default=0) - (memory[SETTLED] if len(memory) > SETTLED else 0)
    print(f"{len(memory)} failures, {audit.num_rows:,} rows; memory grew by {grown / 2**10:.0f} KiB since {SETTLED}")
    assert audit.num_rows > 10 * NUM_FAILURES
    assert audit.num_interrupted <= NUM_AGENTS * len(memory), "only a failure ends an episode without an end"
    assert grown < MAX_GROWTH
