"""Which workers of a pool were restarted, which instances lost their last actions, and what to report of it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from rl_tui.engine.sampling.failures import InstanceFailure, NonFiniteAnswer
from rl_tui.engine.sampling.pools.quota import RestartQuota
from rl_tui.engine.sampling.pools.reports import Report, Restarted, Restarting

MakeQuota: TypeAlias = Callable[[], RestartQuota]
_REPORTS_KEPT = 1000  # where nobody asks for them


class Restarts:
    """Owned by the pool's thread. Without `make_quota` no worker is restarted."""

    def __init__(self, make_quota: MakeQuota | None, num_workers: int) -> None:
        self._quotas = [make_quota() for _ in range(num_workers)] if make_quota else []
        self._failed_at: dict[int, float] = {}  # monotonic, by worker, until it acts again
        self._reports: deque[Report] = deque(maxlen=_REPORTS_KEPT)
        self._lost: list[int] = []

    @property
    def are_allowed(self) -> bool:
        """Whether a failed worker may be restarted at all."""
        return bool(self._quotas)

    def admit(self, worker: int, instances: Sequence[int], failure: InstanceFailure) -> None:
        """Count a restart of that worker, whose instances are lost. Raises the failure where none is allowed."""
        if isinstance(failure, NonFiniteAnswer) or not self._quotas:
            raise failure
        quota = self._quotas[worker]
        if not quota.take():
            message = f"{failure}; {quota.words}"
            raise InstanceFailure(message, failure.instance, failure.worker, failure.detail) from failure
        self._failed_at.setdefault(worker, time.monotonic())
        self.add_lost(instances)
        self._reports.append(Restarting(worker, tuple(instances), str(failure), failure.detail, quota.count))

    def count_of(self, worker: int) -> int:
        """How often that worker was restarted."""
        return self._quotas[worker].count if self._quotas else 0

    def note_answer(self, worker: int) -> None:
        """An instance of that worker has answered."""
        if (failed_at := self._failed_at.pop(worker, None)) is not None:
            self._reports.append(Restarted(worker, time.monotonic() - failed_at))

    def add_lost(self, instances: Iterable[int]) -> None:
        """What followed the last actions in these instances is not known."""
        self._lost.extend(instances)

    def add_reports(self, reports: Iterable[Report]) -> None:
        """Report these, too."""
        self._reports.extend(reports)

    def pop_lost(self) -> list[int]:
        """The instances that were lost since the last call."""
        lost, self._lost = self._lost, []
        return lost

    def pop_reports(self) -> list[Report]:
        """What happened since the last call, in order."""
        reports = list(self._reports)
        self._reports.clear()
        return reports


class Seeds:
    """Another seed for each reset of each instance, the same ones in every run."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._counts: list[int] = []

    def begin(self, seed: int | None, num_instances: int) -> None:
        """Instance i is reset with seed + i."""
        self._first, self._counts = seed, [0] * num_instances

    def shift(self, instance: int) -> int:
        """How much larger the seed of this instance's next reset is than that of its first one."""
        return self._counts[instance] * len(self._counts)

    def next(self, instance: int) -> int | None:
        """The seed of this instance's next reset."""
        shift = self.shift(instance)
        self._counts[instance] += 1
        return None if self._first is None else self._first + instance + shift
