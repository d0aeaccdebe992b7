"""Instances in worker processes, several copies in each."""

from __future__ import annotations

import logging
import math
import select
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.failures import Guard, InstanceFailure, InstanceStopped
from rl_tui.engine.sampling.parameters import ParameterValues
from rl_tui.engine.sampling.pools.base import never
from rl_tui.engine.sampling.pools.numbering import CommonSpecs
from rl_tui.engine.sampling.pools.pictures import Picture
from rl_tui.engine.sampling.pools.reports import Report
from rl_tui.engine.sampling.pools.restarts import MakeQuota, Restarts, Seeds
from rl_tui.engine.sampling.pools.worker_process import WorkerPlan, WorkerProcess
from rl_tui.engine.specs import Actions, BehaviorSpec, Steps

DRAW_MILLISECONDS = 50  # between checks of whether to keep waiting for a picture
END_SECONDS = 2.0  # for environments to close
CHECK_SECONDS = 0.1  # between looks for a call that takes too long, while other workers answer

logger = logging.getLogger(__name__)


class ProcessPool:
    """Copies distributed evenly over workers. Used by one thread; steps are views of shared memory.

    A call that takes longer than `timeout_wait` seconds fails its instance; to make them may take a minute in any case.
    A worker with a failed instance is killed and started again, alone, as often as the quota that make_quota makes for
    it allows; with None, or where a number is not finite, the failure is raised. The output of each worker goes into
    log_folder, as worker-0.log and so on; None drops it. log_name: the word before the number. niceness: of the
    workers. variables: of their environment, unless set there. inherited: descriptors that they get.
    """

    worker_kind: ClassVar[type[WorkerProcess]] = WorkerProcess
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
        make_quota: MakeQuota | None = None,
        log_name: str = "worker",
        niceness: int = 0,
        variables: Mapping[str, str] | None = None,
        inherited: Sequence[int] = (),
    ) -> None:
        self._log_folder, self._log_name = log_folder, log_name
        self._first_log = source.first_copy  # so that no two environments of a run share a log
        self._workers: list[WorkerProcess] = []
        first = 0
        for index in range(num_workers):
            count = num_copies // num_workers + (index < num_copies % num_workers)
            if count:
                plan = WorkerPlan(
                    index, source, (first, count), timeout_wait, niceness, variables or {}, tuple(inherited)
                )
                self._workers.append(self.worker_kind(plan))
            first += count
        self._restarts = Restarts(make_quota, len(self._workers))
        self._seeds = Seeds()
        self._check_at = 0.0  # monotonic
        self._instances: list[tuple[int, int]] = []  # by the pool's number: worker, number within it
        self._poll = select.poll()
        self._by_replies: dict[int, WorkerProcess] = {}
        self._env = source.env
        self._common = CommonSpecs()

    @property
    def specs(self) -> Mapping[str, BehaviorSpec]:
        """Every behavior that has appeared in an instance so far."""
        return self._common.specs

    @property
    def num_agents(self) -> Mapping[str, int]:
        """Agents that usually act in the same step, summed over all instances that have their behavior."""
        counts = [self._workers[worker].answers.num_agents[local] for worker, local in self._instances]
        return {name: sum(count.get(name, 0) for count in counts) for name in self.specs}

    @property
    def num_instances(self) -> int:
        """How many environments the workers made."""
        return len(self._instances)

    @property
    def worker_pids(self) -> Mapping[int, int]:
        """Of the running workers, by their numbers. Any thread."""
        return {worker.index: worker.pid for worker in self._workers if worker.pid is not None}

    @property
    def env(self) -> str:
        """The name of the environment, as in the configuration."""
        return self._env

    @property
    def num_restarts(self) -> Sequence[int]:
        """Of each worker, by number."""
        return [self._restarts.count_of(worker.index) for worker in self._workers]

    def set_parameters(self, values: ParameterValues, *, restart: bool = False) -> None:
        """Environment parameters, also of workers that are started again."""
        for worker in self._workers:
            worker.set_parameters(values, restart=restart)

    def start(self, is_stopped: Callable[[], bool] = never) -> None:
        """Start all workers in parallel and wait for their instances.

        Raises InstanceFailure, StartStopped, or ConfigError and NotSupportedError as making the environment does.
        """
        for worker in self._workers:
            self._begin(worker)
        for worker in self._workers:
            worker.finish_start(len(self._instances), is_stopped)
            self._instances.extend((worker.index, local) for local in range(worker.num_instances))
        if not self._instances:
            raise InstanceFailure(f"{self._env}: no instance was made", None)
        for instance, (index, local) in enumerate(self._instances):
            self._add_specs(self._workers[index], local, instance, "start")

    def _begin(self, worker: WorkerProcess) -> None:
        """Start a worker, and listen to it."""
        name = f"{self._log_name}-{self._first_log + worker.index}.log"
        worker.start(self._log_folder / name if self._log_folder else None)
        self._by_replies[worker.replies] = worker
        self._poll.register(worker.replies, select.POLLIN)

    def reset(self, seed: int | None) -> None:
        """Have every instance reset, instance i with seed + i."""
        self._seeds.begin(seed, len(self._instances))
        self._restarts.pop_lost()
        for instance in range(len(self._instances)):
            self._request_reset(instance)

    def _request_reset(self, instance: int) -> None:
        """Have one instance reset with its next seed; one of a worker that is restarting will be once it is made."""
        index, local = self._instances[instance]
        seed, worker = self._seeds.next(instance), self._workers[index]
        if worker.is_ready:
            worker.request_reset(local, seed)

    def receive(self, timeout: float) -> list[tuple[int, Mapping[str, Steps]]]:
        """Steps of every instance whose worker has replied, waiting at most `timeout` seconds for the first.

        Raises InstanceFailure for a worker that may not be restarted, and ConfigError, NotSupportedError or PluginError
        where its environments can no longer be made.
        """
        for worker in self._workers:
            worker.flush()
        ready = self._poll.poll(0)
        if not ready:
            ready = self._poll.poll(math.ceil(1000 * max(0.0, min(timeout, self._seconds_left()))))
        replied = [self._by_replies[descriptor] for descriptor, _ in ready]
        received = [steps for worker in replied for steps in self._read(worker)]
        if not received or time.monotonic() >= self._check_at:
            self._check_overdue(replied)
        return received

    def _read(self, worker: WorkerProcess) -> list[tuple[int, Mapping[str, Steps]]]:
        """The steps that this worker has replied with; none if it has failed and is restarted."""
        was_ready = worker.is_ready
        try:
            answered = worker.read()
            if worker.is_ready and not was_ready:
                self._begin_again(worker)
            steps = [self._steps(worker, local) for local in answered]
        except InstanceFailure as failure:
            self._restarts.add_reports(worker.pop_reports())
            self._restart(worker, failure)
            return []
        self._restarts.add_reports(worker.pop_reports())
        for stopped in worker.pop_stopped():
            self._continue(stopped)
        if steps:
            self._restarts.note_answer(worker.index)
        return steps

    def _check_overdue(self, replied: Sequence[WorkerProcess]) -> None:
        """Restart workers with a call that takes too long; those that just replied later: their steps are in use."""
        self._check_at = time.monotonic() + CHECK_SECONDS
        for worker in self._workers:
            if worker in replied:
                continue
            try:
                worker.fail_if_overdue()
            except InstanceFailure as failure:
                self._restart(worker, failure)

    def _restart(self, worker: WorkerProcess, failure: InstanceFailure) -> None:
        """Kill a worker and start it again, without waiting until it is ready. Raises the failure where it may not."""
        instances = self._instances_of(worker)
        self._restarts.admit(worker.index, instances, failure)
        self._poll.unregister(worker.replies)
        del self._by_replies[worker.replies]
        worker.end(0.0)
        self._workers[worker.index] = worker.successor(self._seeds.shift(instances[0]))
        try:
            self._begin(self._workers[worker.index])
        except OSError as error:  # no process or descriptor is left
            message = f"{self._env}, worker {worker.index}: restart failed: {error}"
            raise InstanceFailure(message, None, worker.index) from failure

    def _begin_again(self, worker: WorkerProcess) -> None:
        """Have the instances of a restarted worker reset. Raises InstanceFailure where they are not as before."""
        for local, instance in enumerate(self._instances_of(worker)):
            self._add_specs(worker, local, instance, "start")
            self._request_reset(instance)

    def _continue(self, stopped: InstanceStopped) -> None:
        """Have an instance that the user stopped reset, which takes until it is started again."""
        if not self._restarts.are_allowed:
            raise stopped
        assert stopped.instance is not None
        self._restarts.add_lost([stopped.instance])
        self._request_reset(stopped.instance)

    def _instances_of(self, worker: WorkerProcess) -> range:
        """The pool's numbers of its instances."""
        first = worker.first_instance
        assert first is not None, "it has been made"
        return range(first, first + worker.num_instances)

    def pop_lost(self) -> list[int]:
        """Instances that were lost with their worker, or stopped by the user, since the last call."""
        return self._restarts.pop_lost()

    def pop_reports(self) -> list[Report]:
        """What happened to the workers since the last call, in order."""
        return self._restarts.pop_reports()

    def send(self, instance: int, actions: Mapping[str, Actions]) -> None:
        """Let one instance act; the actions are copied."""
        index, local = self._instances[instance]
        self._workers[index].request_step(local, actions)

    def picture(self, instance: int, width: int, height: int, should_wait: Callable[[], bool]) -> Picture | None:
        """What one instance looks like, in at most so many pixels; None once `should_wait` says no.

        Call it while no steps of that worker are pending. Raises EnvironmentFailure as `receive` does.
        """
        index, local = self._instances[instance]
        worker = self._workers[index]
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
        if not self._common.has(instance, worker.answers.specs[local]):
            self._add_specs(worker, local, instance, "step")
        return instance, worker.answers.read_steps(local, scale=len(self._instances), offset=instance)

    def _add_specs(self, worker: WorkerProcess, local: int, instance: int, doing: str) -> None:
        """What that instance has by now. Raises InstanceFailure."""
        with Guard(self._env, worker.index) as guard:
            guard.doing, guard.instance = doing, instance
            self._common.add(instance, worker.answers.specs[local])
