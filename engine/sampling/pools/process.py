"""Instances in worker processes, several copies in each."""

from __future__ import annotations

import logging
import math
import select
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.failures import Guard, InstanceFailure
from rl_tui.engine.sampling.pools.numbering import CommonSpecs
from rl_tui.engine.sampling.pools.pictures import Picture
from rl_tui.engine.sampling.pools.reports import Report
from rl_tui.engine.sampling.pools.worker_process import WorkerProcess
from rl_tui.engine.specs import Actions, BehaviorSpec, Steps

START_SECONDS = 60.0  # ML-Agents' timeout_wait: the time that an environment may take to start
DRAW_MILLISECONDS = 50  # between checks of whether to keep waiting for a picture
END_SECONDS = 2.0  # for environments to close

logger = logging.getLogger(__name__)


class ProcessPool:
    """Copies distributed evenly over workers. Used by one thread; steps are views of shared memory.

    A call that takes longer than `timeout_wait` seconds fails its instance. The output of each worker goes into
    log_folder, as worker-0.log and so on; None drops it. A worker is self-contained: one could be restarted alone.
    log_name: the word before the number. niceness: of the workers. variables: of their environment, unless set there.
    """

    busy_since: float | None = None  # no environment runs in this process, and `receive` finds one that hangs
    busy_with = "nothing"
    busy_in: int | None = None

    def __init__(
        self,
        source: EnvironmentSource,
        num_copies: int,
        num_workers: int,
        timeout_wait: float = 60.0,
        log_folder: Path | None = None,
        *,
        log_name: str = "worker",
        niceness: int = 0,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._log_folder, self._log_name = log_folder, log_name
        self._start_seconds = max(START_SECONDS, timeout_wait)
        self._workers: list[WorkerProcess] = []
        first = 0
        for index in range(num_workers):
            count = num_copies // num_workers + (index < num_copies % num_workers)
            if count:
                worker = WorkerProcess(
                    index, source, first, count, timeout_wait, niceness=niceness, variables=variables
                )
                self._workers.append(worker)
            first += count
        self._instances: list[tuple[WorkerProcess, int]] = []  # by the pool's number: worker, number within it
        self._poll = select.poll()
        self._by_replies: dict[int, WorkerProcess] = {}
        self._env = source.env
        self._common = CommonSpecs()

    @property
    def specs(self) -> Mapping[str, BehaviorSpec]:
        """Every behavior that an instance has met so far."""
        return self._common.specs

    @property
    def num_agents(self) -> Mapping[str, int]:
        """Agents that usually act in the same step, summed over all instances that have met their behavior."""
        counts = [worker.num_agents[local] for worker, local in self._instances]
        return {name: sum(count.get(name, 0) for count in counts) for name in self.specs}

    @property
    def num_instances(self) -> int:
        """How many environments the workers made."""
        return len(self._instances)

    @property
    def pids(self) -> list[int]:
        """Of the running workers."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    def start(self) -> None:
        """Start all workers in parallel and wait for their instances.

        Raises InstanceFailure, or ConfigError and NotSupportedError as making the environment does.
        """
        for worker in self._workers:
            name = f"{self._log_name}-{len(self._by_replies)}.log"
            worker.start(self._log_folder / name if self._log_folder else None)
            self._by_replies[worker.replies] = worker
            self._poll.register(worker.replies, select.POLLIN)
        deadline = time.monotonic() + self._start_seconds
        for worker in self._workers:
            worker.finish_start(len(self._instances), deadline - time.monotonic())
            self._instances.extend((worker, local) for local in range(worker.num_instances))
        if not self._instances:
            raise InstanceFailure(f"{self._env}: no instance was made", None)
        for instance, (worker, local) in enumerate(self._instances):
            self._add_specs(worker, local, instance, "start")

    def reset(self, seed: int | None) -> None:
        """Have every instance reset, instance i with seed + i."""
        for instance, (worker, local) in enumerate(self._instances):
            worker.request_reset(local, None if seed is None else seed + instance)

    def receive(self, timeout: float) -> list[tuple[int, Mapping[str, Steps]]]:
        """Steps of every instance whose worker has replied, waiting at most `timeout` seconds for the first."""
        for worker in self._workers:
            worker.flush()
        ready = self._poll.poll(0)
        if not ready:
            ready = self._poll.poll(math.ceil(1000 * max(0.0, min(timeout, self._seconds_left()))))
        received: list[tuple[int, Mapping[str, Steps]]] = []
        for descriptor, _ in ready:
            worker = self._by_replies[descriptor]
            received.extend(self._steps(worker, local) for local in worker.read())
        if not received:
            for worker in self._workers:
                worker.fail_if_overdue()
        return received

    def pop_lost(self) -> list[int]:
        """None: a failure here ends the pool."""
        return []

    def pop_reports(self) -> list[Report]:
        """None."""
        return []

    def send(self, instance: int, actions: Mapping[str, Actions]) -> None:
        """Let one instance act; the actions are copied."""
        worker, local = self._instances[instance]
        worker.request_step(local, actions)

    def picture(self, instance: int, width: int, height: int, should_wait: Callable[[], bool]) -> Picture | None:
        """What one instance looks like, in at most so many pixels; None once `should_wait` says no.

        Call it while no steps of that worker are pending. Raises EnvironmentFailure as `receive` does.
        """
        worker, local = self._instances[instance]
        worker.request_picture(local, width, height)
        poll = select.poll()
        poll.register(worker.replies, select.POLLIN)
        while should_wait():
            if poll.poll(DRAW_MILLISECONDS):
                worker.read()
            else:
                worker.fail_if_overdue()
            picture = worker.pop_picture()
            if picture is not None:
                return picture
        return None

    def close(self) -> None:
        """End every worker, by force if its environments do not close within two seconds."""
        deadline = time.monotonic() + END_SECONDS
        for worker in self._workers:
            worker.request_end()
        for worker in self._workers:
            worker.end(deadline)
        self._workers = []
        self._by_replies.clear()

    def _seconds_left(self) -> float:
        """Until the first pending call is overdue."""
        left = [worker.seconds_left() for worker in self._workers]
        return min((seconds for seconds in left if seconds is not None), default=math.inf)

    def _steps(self, worker: WorkerProcess, local: int) -> tuple[int, Mapping[str, Steps]]:
        assert worker.first_instance is not None
        instance = worker.first_instance + local
        if not self._common.has(instance, worker.specs[local]):
            self._add_specs(worker, local, instance, "step")
        return instance, worker.read_steps(local, scale=len(self._instances), offset=instance)

    def _add_specs(self, worker: WorkerProcess, local: int, instance: int, doing: str) -> None:
        """What that instance has by now. Raises InstanceFailure."""
        with Guard(self._env, worker.index) as guard:
            guard.doing, guard.instance = doing, instance
            self._common.add(instance, worker.specs[local])
