"""Collectors in worker processes, driven as a run does it, with learners that only count."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.policies import make_policy
from rl_tui.engine.sampling.block_sizes import BlockLimits, RowCounts
from rl_tui.engine.sampling.collecting.pool import CollectingPool
from rl_tui.engine.sampling.collecting.remote_collector import ActingBehavior, RemoteCollector, Shares
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.pools.quota import RestartQuota
from rl_tui.engine.sampling.pools.reports import Report
from rl_tui.engine.specs import BehaviorSpec, CopyPolicy, Trajectories, Weights
from tests.deadline import DEADLINE_SECONDS
from tests.fakes import RandomPolicy
from tests.weights import Kind

UNLIMITED = partial(RestartQuota, -1, -1, 60.0)
NO_WEIGHTS = Weights(0, {})
NO_END = 1 << 40  # rows


@dataclass
class Needs:
    """Implements Demand."""

    rows_per_update: int
    max_rows: int = NO_END

    def rows_left(self, num_rows: int) -> int:
        """Of max_rows."""
        return self.max_rows - num_rows


def random_policies(spec: BehaviorSpec) -> tuple[CopyPolicy, Weights]:
    """A policy that acts at random, without weights."""
    return RandomPolicy(spec.actions), NO_WEIGHTS


def network_policies(network: NetworkSettings, spec: BehaviorSpec) -> tuple[CopyPolicy, Weights]:
    """A network that acts, with its weights."""
    policy, weights = make_policy(spec, network, False, 1), Kind(spec, network).weights()
    policy.load(weights)
    assert isinstance(policy, CopyPolicy)
    return policy, weights


class Rounds:
    """A pool with a collector, and everything that has come out."""

    def __init__(
        self,
        pool: CollectingPool,
        needs: Needs,
        horizon: int,
        policies: Callable[[BehaviorSpec], tuple[CopyPolicy, Weights]] = random_policies,
        shares: Shares = "even",
        longest: int = 2048,
        seed: int = 5,
        cuts_at_update: bool = False,
        *,
        has_checksums: bool = True,
        learns_meanwhile: bool = False,
    ) -> None:
        self.pool = pool
        self.counts: dict[str, RowCounts] = {}
        self.blocks: list[tuple[str, Trajectories]] = []
        self.reports: list[Report] = []
        self.rounds = 0
        self.on_round: Callable[[], None] = lambda: None  # before the next one begins
        limits = BlockLimits(longest, cuts_at_update)

        def acting(spec: BehaviorSpec) -> ActingBehavior:
            policy, weights = policies(spec)
            counts = self.counts[spec.name] = RowCounts(needs, limits)
            return ActingBehavior(policy, weights, horizon, counts, lambda: False, learns_meanwhile)

        known = {name: acting(spec) for name, spec in pool.specs.items()}
        spare_rows = 16 if cuts_at_update else 0
        self.collector = RemoteCollector(pool, known, acting, shares, spare_rows, has_checksums=has_checksums)
        pool.reset(seed)

    def cycle(self) -> None:
        """Receive once, take what is due, and begin the next round where the last one is over."""
        has_news = self.collector.receive(0.1)
        self.reports += self.pool.pop_reports()
        for name, counts in self.counts.items():
            while self.collector.is_due(name, counts.size):
                block = self.collector.drain(name)
                counts.count(block.num_learned)
                self.blocks.append((name, block))
        if has_news and self.collector.awaits_round:
            self.on_round()
            self.rounds += 1
            self.collector.act()

    def until(self, is_reached: Callable[[], bool]) -> None:
        """Cycles until something holds."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not is_reached():
            assert time.monotonic() < deadline, self.reports
            self.cycle()

    def until_rows(self, behavior: str, num_rows: int) -> None:
        """Cycles until so many rows have come."""
        self.until(lambda: self.num_rows(behavior) >= num_rows)

    def num_rows(self, behavior: str) -> int:
        """That have come."""
        return sum(block.num_rows for name, block in self.blocks if name == behavior)

    def of(self, kind: type[Report]) -> list[Report]:
        """The reports of one kind."""
        return [report for report in self.reports if isinstance(report, kind)]


@contextmanager
def started(
    env: str,
    behavior: str,
    num_copies: int,
    num_workers: int,
    kwargs: Mapping[str, object] | None = None,
    timeout: float = DEADLINE_SECONDS,
    quota: Callable[[], RestartQuota] | None = UNLIMITED,
    kind: type[CollectingPool] = CollectingPool,
) -> Iterator[CollectingPool]:
    """A started pool of this kind."""
    source = EnvironmentSource(env, behavior, kwargs or {})
    pool = kind(source, num_copies, num_workers, timeout, make_quota=quota)
    try:
        pool.start()
        yield pool
    finally:
        pool.close()
