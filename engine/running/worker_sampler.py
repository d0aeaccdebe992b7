"""Measurements of an environment's worker processes, as one event."""

from __future__ import annotations

from collections.abc import Mapping

from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.machine.processes import WorkerMemory
from rl_tui.engine.running.speed import Speed
from rl_tui.engine.sampling.collecting.remote_collector import RemoteCollector
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.session.messages import Worker, WorkersSampled


class WorkerSampler:
    """Used in the collector's thread. Workers count their steps and times where they act by themselves."""

    def __init__(self, pool: ProcessPool, collector: Collector | RemoteCollector) -> None:
        """Made when training begins."""
        self._pool = pool
        self._collector = collector if isinstance(collector, RemoteCollector) else None
        self._memory = WorkerMemory()
        self._activities: list[_Activity] = []
        if self._collector is not None:
            self._activities = [_Activity(times.waiting) for times in self._collector.totals.times]

    def sample(self, behaviors: Mapping[str, Behavior], seconds: float) -> WorkersSampled:
        """Every worker now. behaviors: those of the environment. seconds: since training began, without pauses."""
        pids = self._pool.worker_pids
        memory = self._memory.sample(pids.values())
        speeds, lag = self._speeds(seconds), None
        if self._collector is not None:
            lag = max((behavior.learner.version_lag for behavior in behaviors.values()), default=None)
        workers = []
        for number, restarts in enumerate(self._pool.num_restarts):
            pid = pids.get(number)
            used = None if pid is None else memory[pid]
            workers.append(Worker(number, pid, *speeds[number], lag, restarts, used))
        return WorkersSampled(self._pool.env, tuple(behaviors), tuple(workers))

    def resume(self) -> None:
        """A pause is over, whose waiting does not count. Nothing was sampled since the last `sample`."""
        if self._collector is not None:
            for activity, times in zip(self._activities, self._collector.totals.times, strict=True):
                activity.skip(times.waiting)

    def _speeds(self, seconds: float) -> list[tuple[float | None, float | None]]:
        """Steps per second and share of waiting of each worker."""
        if self._collector is None:
            return [(None, None)] * len(self._pool.num_restarts)
        totals = self._collector.totals
        measured = zip(self._activities, totals.num_sampled, totals.times, strict=True)
        return [activity.measure(seconds, steps, times.waiting) for activity, steps, times in measured]


class _Activity:
    """How fast a worker steps, and how much of its time it waits. waited: seconds, in all so far."""

    def __init__(self, waited: float) -> None:
        self._steps, self._waiting = Speed(0.0), Speed(0.0, waited)
        self._waited = waited  # at the last measurement
        self._skipped = 0.0

    def measure(self, seconds: float, steps: int, waited: float) -> tuple[float, float]:
        """Steps per second, and the share of its time in which it waits; rounded, since a file keeps them as text."""
        self._waited = waited
        share = self._waiting.measure(seconds, waited - self._skipped)
        return round(self._steps.measure(seconds, steps), 2), round(min(1.0, max(0.0, share)), 4)

    def skip(self, waited: float) -> None:
        """What it has waited since the last measurement does not count."""
        self._skipped += waited - self._waited
        self._waited = waited
