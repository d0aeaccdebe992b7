"""The threads of a run: who is alive, who parks, who must be given up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rl_tui.engine.errors import CheckpointError, RlTuiError
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.call_timeout import CallTimer
from rl_tui.engine.running.environment_worker import EnvironmentWorker
from rl_tui.engine.running.learner import LearnerCommand
from rl_tui.engine.running.progress import Throttle
from rl_tui.engine.running.saver import Saver
from rl_tui.engine.running.workers import spawn
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import BehaviorStateChanged, StepsAwaited, StopMode

SILENT_SECONDS = 2.0  # without a step, after which that is reported


class Supervisor:
    """Used by the coordinator. Owns the threads of workers, threaded learners and the saver."""

    def __init__(
        self,
        workers: list[EnvironmentWorker],
        saver: Saver,
        bus: EventBus,
        on_failure: Callable[[BaseException], None],
        on_leave: Callable[[], None],
    ):
        """on_failure: called with a mistake of ours; on_leave: when a worker leaves. Both in that worker's thread."""
        self._workers = workers
        self._saver = saver
        self._bus = bus
        self._on_failure = on_failure
        self._on_leave = on_leave
        self._leaving: list[threading.Thread] = []
        self._threads: dict[str, threading.Thread] = {}  # of behavior: the one that serves its learner
        self._collector_threads: list[threading.Thread] = []
        self._saver_thread: threading.Thread | None = None
        self._given_up: set[threading.Thread] = set()  # of workers whose step never came back
        self._watch = CallTimer()
        self._silence_throttle = Throttle(1.0)
        self._announced: set[str] = set()  # behaviors told to be paused

    def start(self) -> None:
        """Every thread runs."""
        self._saver_thread = spawn("saver", self._saver.main, self._bus, self._on_failure)
        for worker in self._workers:
            for name, behavior in worker.behaviors.items():
                if behavior.inbox is not None:
                    self._threads[name] = self._start_learner(name, worker, behavior)
            thread = self._start_collector(worker)
            self._collector_threads.append(thread)
            for name in worker.behaviors:
                self._threads.setdefault(name, thread)

    def _start_learner(self, name: str, worker: EnvironmentWorker, behavior: Behavior) -> threading.Thread:
        def crashed(error: BaseException) -> None:
            try:
                worker.rescue(behavior, error)
            finally:
                self._on_failure(error)

        worker.control.join()
        return spawn(f"learner:{name}", lambda: self._work(lambda: worker.learn(behavior)), self._bus, crashed)

    def _start_collector(self, worker: EnvironmentWorker) -> threading.Thread:
        def crashed(error: BaseException) -> None:
            try:
                worker.rescue_all(error)
            finally:
                self._on_failure(error)

        worker.control.join()
        name = f"collector:{next(iter(worker.behaviors))}"
        return spawn(name, lambda: self._work(worker.main), self._bus, crashed)

    def _work(self, main: Callable[[], None]) -> None:
        try:
            main()
        finally:
            self._leaving.append(threading.current_thread())
            self._on_leave()

    @property
    def has_ended(self) -> bool:
        """Whether no collector or learner is left."""
        return not any(thread.is_alive() for thread in self._worker_threads)

    @property
    def is_leaving(self) -> bool:
        """Whether a collector or learner has done its work and is about to end."""
        return any(thread.is_alive() for thread in self._leaving)

    @property
    def is_paused(self) -> bool:
        """Whether everything that still trains has parked."""
        training = self._touched(None)
        return bool(training) and all(worker.control.is_parked for worker in training)

    @property
    def exit_code(self) -> int:
        """Of the worst that happened to a behavior: not saved (7), diverged (5), a lost environment (3), else 0."""
        return max((failure.exit_code for failure in (*self.failures, *self.losses)), default=0)

    @property
    def failures(self) -> list[RlTuiError]:
        """What ended behaviors before their time; once where it ended several."""
        failures = [b.learner.failure for worker in self._workers for b in worker.behaviors.values()]
        return list(dict.fromkeys(failure for failure in failures if failure is not None))

    @property
    def losses(self) -> list[CheckpointError]:
        """Why the newest state of a behavior is not on disk; asked once `end` has returned."""
        if self._saver_thread is not None and self._saver_thread.is_alive():
            return [CheckpointError("the last checkpoints were not written: the disk did not answer in time")]
        return self._saver.losses

    def names(self, behavior: str | None) -> list[str]:
        """That behavior if there is one of that name, or all."""
        return [name for worker in self._workers for name in worker.behaviors if behavior in (None, name)]

    def give(self, command: LearnerCommand, names: list[str]) -> None:
        """Leave the command with the learners of these behaviors."""
        for name in names:
            self._behavior(name).learner.commands.append(command)

    def pause(self, behavior: str | None) -> list[str]:
        """Let the workers of that behavior (or all) park; the behaviors that this touches."""
        touched = self._touched(behavior)
        for worker in touched:
            worker.control.pause()
        return [name for worker in touched for name in _still_training(worker)]

    def resume(self, behavior: str | None) -> list[str]:
        """Let them go on."""
        touched = [worker for worker in self._touched(behavior) if worker.control.is_paused]
        names = [name for worker in touched for name in _still_training(worker)]
        for worker in touched:
            worker.control.resume()
        for name in self._announced.intersection(names):
            self._bus.publish(BehaviorStateChanged(name, "training"))
        self._announced.difference_update(names)
        return names

    def has_parked(self, names: list[str]) -> bool | None:
        """Whether the workers of these behaviors have parked, those aside that ended or went on; None: not yet."""
        workers = [worker for worker in self._workers if set(names) & set(worker.behaviors)]
        parked = [worker.control.is_parked for worker in workers]
        if any(_will_park(worker) and not is_parked for worker, is_parked in zip(workers, parked, strict=True)):
            return None
        return any(parked)

    def stop(self, mode: StopMode) -> None:
        """Let everybody leave at the next safe point."""
        for worker in self._workers:
            worker.control.stop(mode)

    def look_after(self, timeout_wait: float) -> None:
        """Tell who has parked, answer for learners without a thread, give up steps that do not come back."""
        tells_silence = self._silence_throttle.ticks()
        for worker, thread in zip(self._workers, self._collector_threads, strict=True):
            if worker.control.is_parked:
                if not worker.awaits_roll_back:
                    self._announce_paused(worker)
            elif tells_silence:
                self._tell_silence(worker)
            stuck = None if worker.has_ended else worker.stuck(timeout_wait, self._watch)
            if stuck is None:
                continue
            # the call cannot be ended; nobody else touches its learners: they are saved from here
            given_up = thread if stuck.evaluated is None else self._threads[stuck.evaluated.learner.behavior]
            self._given_up.add(given_up)
            worker.lose(stuck)
        for name, thread in self._threads.items():
            if thread not in self._worker_threads or not thread.is_alive():
                self._behavior(name).learner.serve()

    def end(self, timeout: float) -> None:
        """Let everybody leave, serve what was asked last, and wait for the saver to write everything."""
        self.stop("checkpoint")
        deadline = time.monotonic() + timeout
        for thread in self._worker_threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for name in self._threads:
            self._behavior(name).learner.serve(may_wait=True)
        self._saver.end()
        if self._saver_thread is not None:
            self._saver_thread.join(max(0.0, deadline - time.monotonic()))

    @property
    def _worker_threads(self) -> set[threading.Thread]:
        return {*self._threads.values(), *self._collector_threads} - self._given_up

    def _announce_paused(self, worker: EnvironmentWorker) -> None:
        for name in _still_training(worker):
            if name not in self._announced:
                self._announced.add(name)
                self._bus.publish(BehaviorStateChanged(name, "paused"))

    def _tell_silence(self, worker: EnvironmentWorker) -> None:
        seconds, waits_for = worker.silence()
        if seconds < SILENT_SECONDS or worker.has_ended or worker.control.is_paused:
            return
        for name in _still_training(worker):
            self._bus.publish(StepsAwaited(name, seconds, waits_for))

    def _touched(self, behavior: str | None) -> list[EnvironmentWorker]:
        training = [worker for worker in self._workers if not worker.has_ended]
        return [worker for worker in training if behavior is None or behavior in worker.behaviors]

    def _behavior(self, name: str) -> Behavior:
        return next(worker.behaviors[name] for worker in self._workers if name in worker.behaviors)


def _still_training(worker: EnvironmentWorker) -> list[str]:
    """The behaviors that learn from it; one that is over only goes on acting."""
    return [name for name, behavior in worker.behaviors.items() if not behavior.learner.is_over]


def _will_park(worker: EnvironmentWorker) -> bool:
    return worker.control.is_paused and worker.control.stop_mode is None and not worker.has_ended
