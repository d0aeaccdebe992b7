"""What the training process pays for workers that act, by their number and by the size of the network.

python -m tests.benchmarks.collecting_scale [--rounds 40]

Each round, the workers collect 2048 rows of 17 numbers together, in an environment that costs nothing. For the training
process: CPU time, blocks, messages, bytes and waits. Then the time to write a version of the weights for all workers,
and that of a worker to read it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from statistics import median
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.sampling.collecting.pool import CollectingPool
from rl_tui.engine.sampling.collecting.shared_weights import SharedWeights, WeightsReader
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, ObservationSpec, Trajectories, Weights
from tests.benchmarks.tables import table
from tests.sampling.collecting.rounds import Needs, Rounds, network_policies, started
from tests.weights import Kind

NUM_COLUMNS, NUM_ACTIONS = 17, 6
ROWS, HORIZON = 2048, 128
NUM_WORKERS, HIDDEN_UNITS = (1, 2, 4, 8, 16), (64, 256, 1024)
STILL = "tests.benchmarks.collecting_scale:Still"


class Still(gymnasium.Env[Any, Any]):
    """Always observes zeros, and costs nothing; an episode has a thousand steps."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-1, 1, (NUM_COLUMNS,), np.float32)
        self.action_space = spaces.Box(-1, 1, (NUM_ACTIONS,), np.float32)
        self._seen = np.zeros(NUM_COLUMNS, np.float32)
        self._count = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return self._seen, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._count += 1
        return self._seen, 0.0, False, self._count % 1000 == 0, {}


@dataclass(frozen=True)
class Cost:
    """Of a round, for the training process. Times in milliseconds."""

    wall: float
    cpu: float
    blocks: float
    messages: float
    bytes_per_row: float

    @property
    def rows_per_second(self) -> float:
        """That one process could take in if it did nothing else."""
        return 1000 * ROWS / self.cpu


class Counting(CollectingPool):
    """Counts what the workers send."""

    num_messages = 0

    def receive_news(self, timeout: float) -> list[object]:
        """See CollectingPool."""
        news = super().receive_news(timeout)
        self.num_messages += len(news)
        return news


def measure(num_workers: int, num_rounds: int) -> Cost:
    """Of so many workers with a copy each."""
    network = NetworkSettings(hidden_units=64, num_layers=2)
    with started(STILL, "Agent", num_workers, num_workers, kind=Counting) as pool:
        assert isinstance(pool, Counting)
        rounds = Rounds(
            pool, Needs(ROWS), HORIZON, partial(network_policies, network), longest=ROWS, has_checksums=False
        )
        rounds.until(lambda: rounds.rounds > 2)
        rounds.blocks.clear()
        first, messages = rounds.rounds, pool.num_messages
        wall, cpu = time.perf_counter(), time.process_time()
        rounds.until(lambda: rounds.rounds >= first + num_rounds)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        size = sum(_bytes_of(block) for _, block in rounds.blocks)
        rows = sum(block.num_rows for _, block in rounds.blocks)
        blocks, messages = len(rounds.blocks), pool.num_messages - messages
    each = 1 / num_rounds
    return Cost(1000 * wall * each, 1000 * cpu * each, blocks * each, messages * each, size / rows)


def _bytes_of(block: Trajectories) -> int:
    values = [getattr(block, field.name) for field in fields(block)]
    arrays = [*block.observations, *block.next_observations, *values]
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


def swap(hidden_units: int) -> tuple[int, float, float]:
    """Bytes of the weights, and milliseconds to write a version and to read it."""
    seen = (ObservationSpec("vector", (NUM_COLUMNS,), "float32"),)
    spec = BehaviorSpec("Agent", seen, ActionSpec(NUM_ACTIONS, ()))
    arrays = Kind(spec, NetworkSettings(hidden_units=hidden_units, num_layers=2)).weights().arrays
    shared, writing, reading = SharedWeights(), [], []
    shared.write("Agent", Weights(0, arrays))
    reader = WeightsReader(shared.descriptor, shared.place("Agent"))
    for version in range(1, 50):
        start = time.perf_counter()
        shared.write("Agent", Weights(version, arrays))
        written = time.perf_counter()
        reader.read()
        writing.append(written - start)
        reading.append(time.perf_counter() - written)
    shared.close()
    return sum(array.nbytes for array in arrays.values()), 1000 * median(writing), 1000 * median(reading)


def main(words: Sequence[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.collecting_scale", description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    chosen = parser.parse_args(words)
    heads = ("workers", "CPU ms a round", "blocks", "messages", "wait ms a block", "bytes a row", "most rows/s")
    print(table(heads, [_row(number, measure(number, chosen.rounds)) for number in NUM_WORKERS]), flush=True)
    swaps = [swap(units) for units in HIDDEN_UNITS]
    rows = [
        (f"{units}", f"{size:,}", f"{writing:.3f}", f"{reading:.3f}")
        for units, (size, writing, reading) in zip(HIDDEN_UNITS, swaps, strict=True)
    ]
    print(table(("hidden units", "bytes", "write ms", "read ms"), rows))


def _row(num_workers: int, cost: Cost) -> tuple[str, ...]:
    waits = (cost.wall - cost.cpu) / cost.blocks
    counted = f"{cost.blocks:.1f}", f"{cost.messages:.1f}", f"{waits:.1f}", f"{cost.bytes_per_row:.0f}"
    return f"{num_workers}", f"{cost.cpu:.2f}", *counted, f"{cost.rows_per_second:,.0f}"


if __name__ == "__main__":
    main()
