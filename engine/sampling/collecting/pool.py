"""A pool whose workers may act by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from rl_tui.engine.sampling.collecting.process import BehaviorMet, CollectingProcess, News, WorkerLost, WorkerRenewed
from rl_tui.engine.sampling.collecting.shared_weights import SharedWeights
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.failures import InstanceFailure
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.sampling.pools.worker_process import WorkerProcess
from rl_tui.engine.specs import Steps


class CollectingPool(ProcessPool):
    """A ProcessPool until `begin_collecting`; from then on `receive_news` and what `workers` can do replace `receive`
    and `send`. Used by one thread.

    weights: of the policies that act in the workers.
    """

    worker_kind: ClassVar = CollectingProcess

    def __init__(self, source: EnvironmentSource, *rest: Any, **keywords: Any):
        """See ProcessPool."""
        self.weights = SharedWeights()
        self._first_copy = source.first_copy
        inherited = (self.weights.descriptor,)
        super().__init__(source, *rest, inherited=inherited, **keywords)
        self._is_collecting, self._spare_rows, self._has_checksums = False, 0, False
        self._news: list[News] = []

    @property
    def workers(self) -> Sequence[CollectingProcess]:
        """All of them, by their numbers."""
        return cast("list[CollectingProcess]", self._workers)

    def copies_of(self, worker: int) -> range:
        """The numbers of the copies that a worker holds, among all of the run."""
        first, count = self._workers[worker].copies
        return range(self._first_copy + first, self._first_copy + first + count)

    def num_instances_of(self, worker: int) -> int:
        """How many instances hold these copies."""
        return self._workers[worker].num_instances

    def begin_collecting(self, spare_rows: int = 0, *, has_checksums: bool = False) -> None:
        """Have the started workers act by themselves. Called before `reset`. spare_rows: see Assembly. has_checksums:
        of blocks, which are then checked."""
        self._is_collecting, self._spare_rows, self._has_checksums = True, spare_rows, has_checksums
        for worker in self.workers:
            self._have_collect(worker)

    def _have_collect(self, worker: CollectingProcess) -> None:
        worker.begin_collecting(len(self._instances), self._spare_rows, has_checksums=self._has_checksums)

    def receive_news(self, timeout: float) -> list[News]:
        """What workers have passed on, in the order of each, waiting at most `timeout` seconds for the first.

        Raises as `receive`.
        """
        self.receive(timeout)
        for worker in self.workers:
            self._news += worker.pop_news()
        news, self._news = self._news, []
        for each in news:
            if isinstance(each, BehaviorMet):
                worker = self.workers[each.worker]
                for local, instance in enumerate(self._instances_of(worker)):
                    self._add_specs(worker, local, instance, "step")
        return news

    def close(self) -> None:
        """See ProcessPool."""
        super().close()
        self.weights.close()

    def _read(self, worker: WorkerProcess) -> list[tuple[int, Mapping[str, Steps]]]:
        steps = super()._read(worker)
        assert isinstance(worker, CollectingProcess)
        if worker.pop_has_acted():
            self._restarts.note_answer(worker.index)
        return steps

    def _restart(self, worker: WorkerProcess, failure: InstanceFailure) -> None:
        super()._restart(worker, failure)
        if self._is_collecting:
            self._restarts.pop_lost()
            assert isinstance(worker, CollectingProcess)
            self._news += [*worker.pop_news(), WorkerLost(worker.index, worker.counters)]

    def _begin_again(self, worker: WorkerProcess) -> None:
        assert isinstance(worker, CollectingProcess)
        if self._is_collecting:
            self._have_collect(worker)
            self._news.append(WorkerRenewed(worker.index))
        super()._begin_again(worker)
