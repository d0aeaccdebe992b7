"""A run from its configuration to its exit code. The only file that knows all the others."""

from __future__ import annotations

import gc
import queue
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import threadpoolctl
import torch

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.errors import EnvironmentFailure, RlTuiError
from rl_tui.engine.process.tracebacks import name_and_text, show_stacks_of_crash
from rl_tui.engine.process.vital_signs import SIGNS
from rl_tui.engine.running.announcements import LoggedWarnings
from rl_tui.engine.running.building import Builder, device_of, run_seed
from rl_tui.engine.running.command_ledger import OVER, CommandLedger, refuse_waiting
from rl_tui.engine.running.command_router import CommandRouter
from rl_tui.engine.running.environment_worker import EnvironmentWorker
from rl_tui.engine.running.hooks import Hooks
from rl_tui.engine.running.lessons.restoring import make_lessons
from rl_tui.engine.running.logs import RunLogs
from rl_tui.engine.running.machine import cgroups
from rl_tui.engine.running.machine.devices import DeviceSampler, usable_cpus
from rl_tui.engine.running.machine.memory import keep_freed_memory
from rl_tui.engine.running.preflight import require_players, require_writers, resumed_or_started
from rl_tui.engine.running.record import RunRecord
from rl_tui.engine.running.saver import Saver
from rl_tui.engine.running.supervisor import Supervisor
from rl_tui.engine.running.threads import UiPriority, spawn
from rl_tui.engine.running.trainer_health import trainer_health
from rl_tui.engine.running.watching.service import WatchService
from rl_tui.engine.sampling.failures import StartStopped
from rl_tui.engine.sampling.pools.worker_process import start_seconds
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.health.monitor import HealthMonitor
from rl_tui.engine.session.messages import (
    Command,
    RunStateChanged,
    Stop,
)
from rl_tui.engine.session.states import RunState
from rl_tui.engine.session.text import excerpt
from rl_tui.engine.storage.run_folder import RunFolder

DEVICES_SECONDS = 1.0
DRIVER_SECONDS = 2.0  # a driver that takes longer to answer is left behind
ENDING_SECONDS = 60.0  # a disk that takes longer than that for the last files is lost
STOP_PATIENCE = 2.0  # seconds for which a signal waits for a call into an environment of this process
START_PATIENCE = 2.0  # seconds for which a stop waits for environments that start
HEALTH_MAILBOX = 2000  # about two minutes of a busy run; a coordinator that is further behind has other troubles


class HealthReporter:
    """Publishes the warnings that the run's events give reason for. Used by the coordinator. Owns its subscription."""

    def __init__(self, bus: EventBus):
        self._bus = bus
        self._subscription = bus.subscribe(HEALTH_MAILBOX)
        self._watch = HealthMonitor(trainer_health)

    def tick(self) -> None:
        """Publish the warnings that began or ended with the events since the last call."""
        for envelope in self._subscription.drain():
            for warning in self._watch.apply(envelope):
                self._bus.publish(warning)

    def close(self) -> None:
        """Leave the bus. Harmless when called twice."""
        self._subscription.close()


class Run:
    """Runs in the coordinator's thread. Owns the run's folder and state, starts and ends the rest.

    failure: what ended it badly, once it is over.
    """

    failure: BaseException | None = None

    def __init__(
        self,
        config: RunConfig,
        bus: EventBus,
        commands: queue.Queue[Command | None],
        ui_priority: UiPriority,
        watching: WatchService,
        hooks: Hooks,
    ):
        self._config = config
        self._hooks = hooks
        self._watching = watching
        self._bus = bus
        self._commands = commands
        self._ui_priority = ui_priority
        self._folder = RunFolder.of(config)
        self._record = RunRecord(config, self._folder, bus)
        self._ledger = CommandLedger(bus)
        self._state: RunState = "starting"
        self._internal_error: BaseException | None = None
        self._is_training = not config.checkpoint_settings.inference
        self._has_trained = False
        self._was_finished = False  # before this process
        self._has_traceback = False  # in the run's folder, of an environment that failed at the start
        self._is_stopped_now = False  # without saving
        self._building_since = 0.0  # monotonic
        self._stopped_at = 0.0  # by a signal; monotonic
        self._ended = threading.Event()

    def main(self) -> int:
        """Train to the end and return the exit code. Raises RlTuiError when the run cannot start."""
        limit_threads()
        keep_freed_memory()
        show_stacks_of_crash()
        SIGNS.call_seconds = start_seconds(self._config.env_settings.timeout_wait)
        settings = self._config.checkpoint_settings
        try:
            require_writers(self._config)
            require_players(self._config)  # else the log would say that they are started
            with self._folder:
                for line in self._folder.open(settings.resume, settings.force, or_start=settings.resume_or_start):
                    self._bus.log("warning", "run", line)
                if settings.resume_or_start:
                    self._bus.log("info", "run", resumed_or_started(self._folder.path, self._folder.is_resumed))
                return self._write_logs()
        except RlTuiError as error:
            self._refuse(error)
            raise

    def _write_logs(self) -> int:
        """Train with the log files open."""
        logs = RunLogs(self._folder, self._record.named_config, self._bus, time.time())
        writers = spawn("writers", logs.main, self._bus, self._crashed)
        health = HealthReporter(self._bus)
        try:
            with LoggedWarnings(self._bus):
                return self._train(health, logs)
        except RlTuiError as error:
            self._has_traceback = isinstance(error, EnvironmentFailure)
            self._refuse(error)
            raise
        finally:
            health.close()
            logs.close(self._is_stopped_now)
            writers.join(ENDING_SECONDS)
            if self._state in ("failed", "stopped") and not self._has_trained:
                if not self._has_traceback:
                    self._folder.discard()
            elif self._is_training and not self._was_finished:
                logs.write_timers()

    def _refuse(self, error: RlTuiError) -> None:
        """Publish once that the run cannot start."""
        self.failure = error
        if self._state != "failed":
            self._finish_commands()
            detail = "" if self._has_traceback else excerpt(error.detail)
            self._enter("failed", f"{error}\n{detail}".rstrip(), error.exit_code)

    def _train(self, health: HealthReporter, logs: RunLogs) -> int:
        seed, device = run_seed(self._config), device_of(self._config)
        is_intact = self._folder.is_resumed and self._folder.configuration.exists()
        if not is_intact:
            self._record.write_configuration()
        self._record.announce(seed, device)
        found = "the GPU that torch finds" if torch.cuda.is_available() else "torch finds no GPU"
        why = "named by torch_settings.device" if self._config.torch_settings.device else found
        self._bus.log("debug", "run", f"device {device} ({why}), threads: {torch.get_num_threads()}")
        lessons = make_lessons(self._config, seed, self._bus, self._folder if self._folder.is_resumed else None)
        self._record.lesson_numbers = lambda: lessons.numbers
        builder = Builder(
            self._config, self._folder, seed, device, self._bus, self._ledger.report, self._ui_priority, self._hooks,
            lessons,
        )  # fmt: skip
        saver = Saver(builder.files, self._bus, self._ledger.report, partial(self._record.write_status, builder.files))
        workers = [EnvironmentWorker(runner, self._bus, self._folder.output) for runner in builder.runners(saver)]
        self._building_since = time.monotonic()
        try:
            for worker in workers:
                worker.build(self._is_to_stop)
            if is_intact and self._is_training:  # a run that cannot resume with these settings keeps its own
                self._record.write_configuration()
        except StartStopped:
            _close(workers)
            return self._end_before_training()
        except BaseException:
            _close(workers)
            raise
        self._watching.offer(builder.watch_targets)
        supervisor = Supervisor(workers, saver, self._bus, self._crashed, self._wake)
        router = CommandRouter(self._commands, self._ledger, supervisor, self._bus, self._enter, lessons)
        self._has_trained = True
        if self._folder.is_resumed:
            self._record.update_status(builder.files)  # it names the newest max_steps
        self._enter("training")
        logs.start_writers(self._crashed)
        devices = spawn("devices", lambda: self._sample_devices(device, workers), self._bus, self._crashed)
        try:
            while not self._commands.empty():  # a pause or a stop that arrived meanwhile comes before the first step
                router.receive()
            gc.freeze()  # what was imported and built stays: collecting it takes 0.1 s each time
            supervisor.start()
            while not supervisor.has_ended:
                self._tick(supervisor, router)
                health.tick()
                logs.check_writers()
        finally:  # also after an internal error here: the other threads must not continue without this one
            supervisor.end(ENDING_SECONDS)
            self._ended.set()
            devices.join(DRIVER_SECONDS)
            health.tick()  # the last checkpoint may have failed
            self._finish_commands()
        self._is_stopped_now = router.stop is not None and router.stop.mode == "now"
        return self._end(supervisor, builder, router.stop)

    def _tick(self, supervisor: Supervisor, router: CommandRouter) -> None:
        """Carry out one command, finish others, check the workers."""
        router.receive()
        if (self._internal_error is not None or supervisor.must_halt) and router.stop is None:
            router.halt(Stop("checkpoint"))
        supervisor.check(self._patience(router.stop))
        self._ledger.settle()
        if router.stop is None:
            paused = supervisor.is_paused
            if paused != (self._state == "paused"):
                self._enter("paused" if paused else "training")

    def _patience(self, stop: Stop | None) -> float:
        """For how many seconds a call into an environment may go on: not for long once a signal has stopped the run."""
        seconds = self._config.env_settings.timeout_wait
        if stop is None or not stop.exit_code:
            return seconds
        self._stopped_at = self._stopped_at or time.monotonic()
        return min(seconds, STOP_PATIENCE) if time.monotonic() - self._stopped_at > STOP_PATIENCE else seconds

    def _is_to_stop(self) -> bool:
        """Whether a stop waits to be carried out, and the environments take long to start: a run whose environments are
        there at once ends as at any other time, with a checkpoint."""
        if time.monotonic() - self._building_since < START_PATIENCE:
            return False
        with self._commands.mutex:
            return any(isinstance(command, Stop) for command in self._commands.queue)

    def _end_before_training(self) -> int:
        """Carry out the stop that the environments were not waited for."""
        exit_code = 0
        with suppress(queue.Empty):
            while True:
                command = self._commands.get_nowait()
                if isinstance(command, Stop):
                    exit_code = exit_code or command.exit_code
                    self._ledger.finish(command.id, True, "stopped")
                elif command is not None:
                    self._ledger.finish(command.id, False, OVER)
        self._enter("stopped", "before training began", exit_code)
        return exit_code

    def _wake(self) -> None:
        """Any thread: end the coordinator's wait. Where commands are queued, it does not wait."""
        with suppress(queue.Full):
            self._commands.put_nowait(None)

    def _end(self, supervisor: Supervisor, builder: Builder, stop: Stop | None) -> int:
        """Everything is on disk, and the last state is published with the exit code."""
        self._record.update_status(builder.files, has_ended=True)
        self._finish_commands()
        state, reason, exit_code = self._outcome(supervisor, stop)
        learners = builder.learners.values()
        self._was_finished = bool(learners) and all(learner.was_finished for learner in learners)
        self._enter(state, reason, exit_code)
        return exit_code

    def _outcome(self, supervisor: Supervisor, stop: Stop | None) -> tuple[RunState, str, int]:
        """The last state, its reason and the exit code: of an internal error first, then of what was not saved, of the
        stop, of what ended a behavior."""
        error, failures, losses = self._internal_error, supervisor.failures, supervisor.losses
        self.failure = next(iter((*([error] if error else []), *failures, *losses)), None)
        if error is not None:
            return "failed", name_and_text(error), 1
        exit_code = stop.exit_code if stop is not None and stop.exit_code and not losses else supervisor.exit_code
        if failures or losses:
            return "failed" if failures else "unsaved", "; ".join(map(str, [*failures, *losses])), exit_code
        if stop is not None and stop.mode == "now":
            return "stopped", "without saving", exit_code
        if stop is not None or supervisor.must_halt:  # stopped by a hook, and over before that was seen here
            return "stopped", "everything is saved", exit_code
        return "finished", "", exit_code

    def _finish_commands(self) -> None:
        self._ledger.close(OVER)
        refuse_waiting(self._commands, self._bus)

    def _crashed(self, error: BaseException) -> None:
        """Any thread: an internal error stops the run with everything saved; the first one is reported."""
        self._internal_error = self._internal_error or error
        self._wake()

    def _sample_devices(self, device: torch.device, workers: Sequence[EnvironmentWorker]) -> None:
        """The main of the thread `devices`: a driver that hangs must not delay the coordinator."""

        def names() -> dict[int, str]:
            return {pid: name for worker in workers for pid, name in worker.process_names.items()}

        index = device.index if device.type == "cuda" else None
        sampler = DeviceSampler(self._folder.path, index, names, cgroups.ROOT)
        try:
            while not self._ended.is_set():
                self._bus.publish(sampler.sample())
                self._ended.wait(DEVICES_SECONDS)
        finally:
            sampler.close()

    def _enter(self, state: RunState, reason: str = "", exit_code: int | None = None) -> None:
        self._state = state
        if state == "training":
            SIGNS.enter("training")
            SIGNS.call_seconds = self._config.env_settings.timeout_wait
        elif state == "stopping":
            SIGNS.enter("saving")
        self._bus.publish(RunStateChanged(state, reason, exit_code))


def _close(workers: Sequence[EnvironmentWorker]) -> None:
    for worker in workers:
        worker.close()


def limit_threads() -> None:
    """ML-Agents' rule for torch, and for numpy's BLAS too: half the usable cores, one to four.

    Small networks gain nothing from more, and BLAS threads that wait for each other cost a busy machine its speed
    (measured on two cores that are busy otherwise: 110k steps per second with one thread, 10k with two).
    """
    threads = min(max(usable_cpus() // 2, 1), 4)
    torch.set_num_threads(threads)
    threadpoolctl.threadpool_limits(threads, user_api="blas")
