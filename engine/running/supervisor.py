"""The threads of a run: which are alive, which have parked, which must be abandoned."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rl_tui.engine.errors import CheckpointError
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.call_timeout import CallTimer
from rl_tui.engine.running.environment_worker import EnvironmentWorker
from rl_tui.engine.running.learner import LearnerCommand
from rl_tui.engine.running.saver import Saver
from rl_tui.engine.running.threads import spawn
from rl_tui.engine.running.triggers import Trigger
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import BehaviorStateChanged, StepsAwaited, StopMode

IDLE_SECONDS = 2.0  # without a step, after which that is reported
REPORT_SECONDS = 1.0


class Supervisor:
    """Used by the coordinator. Owns the threads of collectors, threaded learners and the saver."""

    def __init__(
        self,
        workers: list[EnvironmentWorker],
        saver: Saver,
        bus: EventBus,
        on_failure: Callable[[BaseException], None],
        on_change: Callable[[], None],
    ):
        """on_failure: called with an internal error; on_change: when a thread ends, or all of an environment have
        parked. Both in that thread."""
        self._workers = workers
        self._saver = saver
        self._bus = bus
        self._on_failure = on_failure
        self._on_change = on_change
        self._left: set[threading.Thread] = set()  # changes nothing more
        self._learner_threads: dict[str, threading.Thread] = {}  # by behavior: the one that serves its learner
        self._collector_threads: list[threading.Thread] = []
        self._saver_thread: threading.Thread | None = None
        self._abandoned: set[threading.Thread] = set()  # in a call that never returned
        self._call_timer = CallTimer()
        self._idle_report = Trigger(REPORT_SECONDS, by_clock=True)
        self._announced: set[str] = set()  # behaviors published as paused

    def start(self) -> None:
        """Every thread runs."""
        self._saver_thread = spawn("saver", self._saver.main, self._bus, self._on_failure)
        for worker in self._workers:
            worker.control.on_parked = self._on_change
            for name, behavior in worker.behaviors.items():
                if behavior.is_threaded:
                    worker.control.join()
                    self._start_learner(name, behavior)
            worker.control.join()
            name = next(iter(worker.behaviors), worker.environment)
            thread = self._start(f"collector:{name}", worker.main, worker.rescue)
            self._collector_threads.append(thread)
            for name in worker.behaviors:
                self._learner_threads.setdefault(name, thread)

    def _serve_late(self) -> None:
        """Learners of behaviors that have appeared run, each in its own thread or in that of its collector."""
        for worker, thread in zip(self._workers, self._collector_threads, strict=False):  # it may not have started all
            for name, behavior in worker.behaviors.items():
                if name in self._learner_threads:
                    continue
                if behavior.is_threaded:
                    self._start_learner(name, behavior)
                else:
                    self._learner_threads[name] = thread

    def _start_learner(self, name: str, behavior: Behavior) -> None:
        self._learner_threads[name] = self._start(f"learner:{name}", behavior.learn, behavior.rescue)

    def _start(self, name: str, main: Callable[[], None], rescue: Callable[[BaseException], None]) -> threading.Thread:
        def observed() -> None:
            main()
            self._leave()

        def crashed(error: BaseException) -> None:
            try:
                rescue(error)
            finally:
                self._on_failure(error)
                self._leave()

        return spawn(name, observed, self._bus, crashed)

    def _leave(self) -> None:
        self._left.add(threading.current_thread())
        self._on_change()

    @property
    def has_ended(self) -> bool:
        """Whether no collector or learner is left."""
        return self._threads <= self._left

    @property
    def is_paused(self) -> bool:
        """Whether everything that still trains has parked."""
        training = self._still_running(None)
        return bool(training) and all(worker.control.is_parked for worker in training)

    @property
    def losses(self) -> list[CheckpointError]:
        """Why the newest state of a behavior is not on disk; valid once `end` has returned."""
        if self._saver_thread is not None and self._saver_thread.is_alive():
            return [CheckpointError("the last checkpoints were not written: the disk did not answer in time")]
        return self._saver.losses

    def names(self, behavior: str | None) -> list[str]:
        """That behavior if there is one of that name, or all."""
        return [name for worker in self._workers for name in worker.behaviors if behavior in (None, name)]

    def forward(self, command: LearnerCommand, names: list[str]) -> None:
        """Queue the command for the learners of these behaviors."""
        for name in names:
            worker = self._worker_of(name)
            worker.behaviors[name].learner.commands.append(command)
            worker.control.ask()

    def pause(self, behavior: str | None) -> list[str]:
        """Let the environments of that behavior (or all) park; the names of the behaviors affected."""
        affected = self._still_running(behavior)
        for worker in affected:
            worker.control.pause()
        return [name for worker in affected for name in _still_training(worker)]

    def resume(self, behavior: str | None) -> list[str]:
        """Let them continue."""
        affected = [worker for worker in self._still_running(behavior) if worker.control.is_paused]
        names = [name for worker in affected for name in _still_training(worker)]
        for worker in affected:
            worker.control.resume()
        for name in self._announced.intersection(names):
            self._bus.publish(BehaviorStateChanged(name, "training"))
        self._announced.difference_update(names)
        return names

    def has_parked(self, names: list[str]) -> bool | None:
        """Whether the environments of these behaviors have parked, except those that ended or were resumed; None: not
        yet."""
        workers = [worker for worker in self._workers if set(names) & set(worker.behaviors)]
        parked = [worker.control.is_parked for worker in workers]
        if any(_will_park(worker) and not is_parked for worker, is_parked in zip(workers, parked, strict=True)):
            return None
        return any(parked)

    def stop(self, mode: StopMode) -> None:
        """Let every worker leave at its next safe point."""
        for worker in self._workers:
            worker.control.stop(mode)

    def check(self, timeout_wait: float) -> None:
        """Publish who has parked or is idle, abandon calls that do not return, serve learners without a thread."""
        self._serve_late()
        self._idle_report.fire(time.monotonic(), self._report_idle)
        for worker, thread in zip(self._workers, self._collector_threads, strict=True):
            if worker.control.is_parked and not worker.awaits_roll_back:
                self._announce_paused(worker)
            stuck = None if worker.control.has_ended else worker.find_stuck_call(timeout_wait, self._call_timer)
            if stuck is None:
                continue
            # the call cannot be ended; no other thread uses its learners: they are saved from here
            failure, evaluated = stuck
            abandoned = thread if evaluated is None else self._learner_threads[evaluated.learner.behavior]
            self._abandoned.add(abandoned)
            worker.abandon(failure, evaluated)
        for name, thread in self._learner_threads.items():
            if thread in self._left or thread in self._abandoned:
                self._behavior(name).learner.serve()

    def end(self, timeout: float) -> None:
        """Let every worker leave, serve the last commands, and wait for the saver to write everything."""
        self.stop("checkpoint")
        deadline = time.monotonic() + timeout
        self._join(set(self._collector_threads), deadline)
        self._serve_late()  # no behavior can appear any more
        self._join(self._threads, deadline)
        for name in self._learner_threads:
            self._behavior(name).learner.serve(may_wait=True)
        self._saver.end()
        if self._saver_thread is not None:
            self._saver_thread.join(max(0.0, deadline - time.monotonic()))

    def _join(self, threads: set[threading.Thread], deadline: float) -> None:
        for thread in threads - self._abandoned:
            thread.join(max(0.0, deadline - time.monotonic()))

    @property
    def _threads(self) -> set[threading.Thread]:
        return {*self._learner_threads.values(), *self._collector_threads} - self._abandoned

    def _announce_paused(self, worker: EnvironmentWorker) -> None:
        for name in _still_training(worker):
            if name not in self._announced:
                self._announced.add(name)
                self._bus.publish(BehaviorStateChanged(name, "paused"))

    def _report_idle(self, _: float) -> None:
        for worker in self._workers:
            seconds, waits_for = worker.idle_time()
            if seconds < IDLE_SECONDS or worker.control.has_ended or worker.control.is_paused:
                continue
            for name in _still_training(worker):
                self._bus.publish(StepsAwaited(name, seconds, waits_for))

    def _still_running(self, behavior: str | None) -> list[EnvironmentWorker]:
        running = [worker for worker in self._workers if not worker.control.has_ended]
        return [worker for worker in running if behavior is None or behavior in worker.behaviors]

    def _worker_of(self, behavior: str) -> EnvironmentWorker:
        return next(worker for worker in self._workers if behavior in worker.behaviors)

    def _behavior(self, name: str) -> Behavior:
        return self._worker_of(name).behaviors[name]


def _still_training(worker: EnvironmentWorker) -> list[str]:
    """The behaviors that still learn; one that is over only continues to act."""
    return [name for name, behavior in worker.behaviors.items() if not behavior.learner.is_over]


def _will_park(worker: EnvironmentWorker) -> bool:
    control = worker.control
    return control.is_paused and control.stop_mode is None and not control.has_ended
