"""What the workers of a pool have counted, each together with those that it has replaced."""

from __future__ import annotations

from collections.abc import Sequence

from rl_tui.engine.sampling.collecting.counters import Counters, Counts, Times
from rl_tui.engine.sampling.collecting.pool import CollectingPool


class Totals:
    """Used by the thread of the pool. Behaviors are known by their numbers in the counters, from 0."""

    def __init__(self, pool: CollectingPool) -> None:
        self._pool = pool
        self._times_before = [Times()] * len(pool.workers)  # of predecessors, by worker
        self._counts_before: list[list[Counts]] = []  # the same, by behavior and worker

    def add_behavior(self) -> None:
        """Count for one more behavior."""
        self._counts_before.append([Counts()] * len(self._times_before))

    def add_lost(self, worker: int, counters: Counters, num_arrived: Sequence[int]) -> None:
        """A worker is lost, which has counted this. num_arrived: rows that came from it, by behavior; no more do."""
        self._times_before[worker] = self._times_before[worker].plus(counters.times)
        for behavior, before in enumerate(self._counts_before):
            counts = before[worker].plus(counters.counts(behavior))
            before[worker] = counts._replace(complete=num_arrived[behavior], held=0)

    def learned_before(self, behavior: int, worker: int) -> int:
        """Actions to learn from of the predecessors of a worker."""
        return self._counts_before[behavior][worker].learned

    def counts(self, behavior: int) -> list[Counts]:
        """Of each worker."""
        counts = []
        for before, worker in zip(self._counts_before[behavior], self._pool.workers, strict=True):
            own = worker.counters
            counts.append(before if own is None else before.plus(own.counts(behavior)))
        return counts

    @property
    def num_sampled(self) -> list[int]:
        """Actions of each worker, for all behaviors."""
        behaviors = range(len(self._counts_before))
        sampled = [[counts.sampled for counts in self.counts(behavior)] for behavior in behaviors]
        return [sum(each) for each in zip(*sampled, strict=True)] or [0] * len(self._times_before)

    @property
    def times(self) -> list[Times]:
        """Of each worker."""
        spent = []
        for before, worker in zip(self._times_before, self._pool.workers, strict=True):
            own = worker.counters
            spent.append(before if own is None else before.plus(own.times))
        return spent
