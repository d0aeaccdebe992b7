"""Worker processes whose steps take from 1 to 20 ms, asleep: a pool with a collector, workers that act with adaptive
shares, and as many independent loops.

python -m tests.benchmarks.uneven_workers [--workers 8] [--seconds 10] [--rounds 3]

A pool in which each waits for the slowest would make about half of what the loops make. The durations are drawn from
the same distribution everywhere; the policy is a network of two layers of 64 units.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median

import numpy as np

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.policies import make_policy
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.specs import Actions, Steps
from tests.benchmarks.processes import ROOT, surroundings
from tests.benchmarks.tables import table, verdict
from tests.sampling.collecting.rounds import Needs, Rounds, network_policies, started
from tests.sampling.driving import discrete
from tests.weights import Kind

AT_LEAST, ACTING_AT_LEAST = 0.9, 0.95
ROUND_ROWS = 2048  # about three seconds
NETWORK = NetworkSettings(hidden_units=64, num_layers=2)
SHORTEST, LONGEST = 0.001, 0.020  # seconds of a step
ALONE = "from tests.benchmarks.uneven_workers import step_alone; print(step_alone({seconds}))"


class Uneven(Line):
    """A Line of one agent whose steps take so long, asleep."""

    def __init__(self) -> None:
        super().__init__("B", 1)
        self._durations = np.random.default_rng(os.getpid()).uniform(SHORTEST, LONGEST, 10_000)
        self._count = 0

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._count += 1
        time.sleep(self._durations[self._count % len(self._durations)])
        return super().step(actions)


def step_alone(seconds: float) -> float:
    """Steps per second of one loop without a policy."""
    environment, action = Uneven(), {"B": discrete(0)}
    environment.reset(1)
    begin, count = time.monotonic(), 0
    while (elapsed := time.monotonic() - begin) < seconds:
        environment.step(action)
        count += 1
    return count / elapsed


def alone(num_workers: int, seconds: float) -> float:
    """Steps per second of so many loops at once, a process each."""
    words = [sys.executable, "-c", ALONE.format(seconds=seconds)]
    processes = [
        subprocess.Popen(words, cwd=ROOT, env=surroundings(), stdout=subprocess.PIPE, text=True)
        for _ in range(num_workers)
    ]
    return sum(float(process.communicate()[0]) for process in processes)


def pooled(num_workers: int, seconds: float) -> float:
    """Steps per second of a pool with so many workers, with its collector and one policy."""
    source = EnvironmentSource("tests.benchmarks.uneven_workers:Uneven", "B", {})
    pool = ProcessPool(source, num_workers, num_workers)
    pool.start()
    try:
        policy = make_policy(pool.specs["B"], NETWORK, False, 1)
        policy.load(Kind(pool.specs["B"], NETWORK).weights())
        collector = Collector(pool, {"B": policy}, {"B": 64})
        pool.reset(1)
        begin = time.monotonic()
        while (elapsed := time.monotonic() - begin) < seconds:
            if collector.receive(0.1):
                if collector.is_due("B", 64):
                    collector.drain("B")
                collector.act()
        return collector.num_sampled["B"] / elapsed
    finally:
        pool.close()


def acting(num_workers: int, seconds: float) -> float:
    """Steps per second of so many workers that act, in rounds of adaptive shares."""
    with started("tests.benchmarks.uneven_workers:Uneven", "B", num_workers, num_workers) as pool:
        rounds = Rounds(
            pool, Needs(ROUND_ROWS), horizon=64, policies=partial(network_policies, NETWORK), shares="adaptive"
        )
        begin = time.monotonic()
        while (elapsed := time.monotonic() - begin) < seconds:
            rounds.cycle()
        return rounds.collector.num_sampled["B"] / elapsed


def main(words: Sequence[str] | None = None) -> None:
    """Measure both in turns, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.uneven_workers", description=__doc__)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args(words)
    rows, ratios = [], []
    for number in range(chosen.rounds):
        loops, pool = alone(chosen.workers, chosen.seconds), pooled(chosen.workers, chosen.seconds)
        own = acting(chosen.workers, chosen.seconds)
        ratios.append((pool / loops, own / loops))
        speeds = (f"{speed:,.0f}" for speed in (loops, pool, own))
        rows.append((str(number + 1), *speeds, *(f"{ratio:.3f}" for ratio in ratios[-1])))
    print(table(("round", "loops, steps/s", "pool, steps/s", "acting, steps/s", "pool", "acting"), rows))
    marks = ("pool", AT_LEAST), ("acting", ACTING_AT_LEAST)
    for (name, at_least), found in zip(marks, zip(*ratios, strict=True), strict=True):
        print(f"{name}: median ratio {median(found):.3f}, at least {at_least}: {verdict(median(found) >= at_least)}")


if __name__ == "__main__":
    main()
