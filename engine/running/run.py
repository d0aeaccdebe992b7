"""A run from its configuration to its exit code: its threads, and the commands of its user."""

from __future__ import annotations

import gc
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import torch

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.types import AUTO
from rl_tui.engine.errors import EnvironmentFailure, RlTuiError
from rl_tui.engine.running.announcements import LoggedWarnings
from rl_tui.engine.running.command_router import CommandRouter
from rl_tui.engine.running.environment_runner import EnvironmentRunner
from rl_tui.engine.running.environment_worker import EnvironmentWorker
from rl_tui.engine.running.hooks import Hooks
from rl_tui.engine.running.machine import cgroups
from rl_tui.engine.running.machine.devices import DeviceSampler
from rl_tui.engine.running.ranks.rank_meter import RankMeter
from rl_tui.engine.running.ranks.ranked_learning import RankedLearning
from rl_tui.engine.running.ranks.role import ALONE, Role
from rl_tui.engine.running.runtime import ENDING_SECONDS, Runtime
from rl_tui.engine.running.supervisor import Supervisor
from rl_tui.engine.running.threads import UiPriority, spawn
from rl_tui.engine.running.trainer_health import trainer_health
from rl_tui.engine.running.watching.service import WatchService
from rl_tui.engine.sampling.failures import StartStopped
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.command_desk import CommandDesk
from rl_tui.engine.session.health.monitor import HealthMonitor
from rl_tui.engine.session.messages import Command, RunStateChanged, Stop
from rl_tui.engine.session.states import RunState

if TYPE_CHECKING:
    from rl_tui.engine.running.ranks.requested import Ranks

DEVICES_SECONDS = 1.0
DRIVER_SECONDS = 2.0  # a driver that takes longer to answer is left behind
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
    """Runs in the coordinator's thread. Drives a runtime by threads, and carries out commands.

    failure: what ended it badly, once it is over.
    """

    failure: BaseException | None = None

    def __init__(
        self,
        config: RunConfig,
        bus: EventBus,
        desk: CommandDesk,
        commands: queue.Queue[Command | None],
        ui_priority: UiPriority,
        watching: WatchService,
        hooks: Hooks,
        ranks: Ranks | None = None,
    ):
        """ranks: where there are several. One that does not lead trains, and ends when rank 0 does."""
        self._config = config
        self._ranks = ranks
        self._watching = watching
        self._bus = bus
        self._commands = commands
        self._desk = desk
        self._ui_priority = ui_priority
        self._hooks = hooks
        self._internal_error: BaseException | None = None
        self._building_since = 0.0  # monotonic
        self._stopped_at = 0.0  # by a signal; monotonic
        self._ended = threading.Event()
        self._ranked: list[RankedLearning] = []
        self._passed_on: Stop | None = None  # to rank 0

    def main(self) -> int:
        """Train to the end and return the exit code. Raises RlTuiError when the run cannot start."""
        self._building_since = time.monotonic()
        try:
            role = self._join()
        except StartStopped:
            return self._end_before_training(self._enter)
        if not role.leads:
            self._ui_priority.is_attended = True  # rank 0 knows whether a user watches
        runtime = Runtime(self._config, self._bus, self._desk.report, self._ui_priority, self._hooks, role=role)
        self._runtime = runtime
        with runtime:
            try:
                try:
                    runtime.open(self._crashed, self._is_to_stop)
                except StartStopped:
                    return self._end_before_training(runtime.enter)
                health = HealthReporter(self._bus)
                try:
                    with LoggedWarnings(self._bus):
                        return self._train(health)
                finally:
                    health.close()
            except RlTuiError as error:
                self.failure = error
                self._desk.close()
                raise

    def _join(self) -> Role:
        """What this process is among others. Raises RlTuiError, StartStopped."""
        if self._ranks is None:
            return ALONE
        try:
            return self._ranks.join(self._config, self._bus, self._is_to_stop)
        except StartStopped:
            raise
        except RlTuiError as error:
            self.failure = error
            self._desk.close()
            self._enter("failed", str(error), error.exit_code)
            raise

    def _enter(self, state: RunState, reason: str, exit_code: int) -> None:
        """Publish a state of the run before there is anything of it."""
        self._bus.publish(RunStateChanged(state, reason, exit_code))

    def _train(self, health: HealthReporter) -> int:
        runtime = self._runtime
        runtime.assemble()
        found = "or cpu, each behavior chooses" if runtime.chooses_device else "torch finds no GPU"
        why = found if self._config.torch_settings.device == AUTO else "named by torch_settings.device"
        self._bus.log("debug", "run", f"device {runtime.device} ({why}), threads: {torch.get_num_threads()}")
        workers = [self._worker(runner) for runner in runtime.runners]
        self._building_since = time.monotonic()
        try:
            for worker in workers:
                worker.build(self._is_to_stop)
        except StartStopped:
            _close(workers)
            return self._end_before_training(runtime.enter)
        except BaseException as error:
            runtime.has_traceback = isinstance(error, EnvironmentFailure)
            _close(workers)
            raise
        self._watching.offer(runtime.watch_targets)
        supervisor = Supervisor(workers, runtime.saver, self._bus, self._crashed, partial(_wake, self._commands))
        router = CommandRouter(self._commands, self._desk, supervisor, self._bus, runtime.enter, runtime.lessons)
        router.passes_on = self._passes_on
        runtime.begin(self._crashed)
        devices = spawn("devices", lambda: self._sample_devices(workers), self._bus, self._crashed)
        try:
            while not self._commands.empty():  # a pause or a stop that arrived meanwhile comes before the first step
                router.receive()
            gc.freeze()  # what was imported and built stays: collecting it takes 0.1 s each time
            supervisor.start()
            while not supervisor.has_ended:
                self._tick(supervisor, router)
                health.tick()
                runtime.check_writers()
        finally:  # also after an internal error here: the other threads must not continue without this one
            supervisor.end(ENDING_SECONDS)
            self._ended.set()
            devices.join(DRIVER_SECONDS)
            health.tick()  # the last checkpoint may have failed
            router.end()
        self.failure, exit_code = runtime.end(router.stop or self._passed_on, supervisor.losses, self._internal_error)
        return exit_code

    def _worker(self, runner: EnvironmentRunner) -> EnvironmentWorker:
        role, runtime = self._runtime.role, self._runtime
        if not role.has_others:
            return EnvironmentWorker(runner, self._bus, runtime.folder.output)
        meter = RankMeter(role, self._bus, runtime.folder.results_dir)
        ranked = RankedLearning(role, runner, runtime.lessons, self._request, self._bus, meter)
        self._ranked.append(ranked)
        runtime.saver.on_wait = ranked.beat
        return EnvironmentWorker(runner, self._bus, runtime.folder.output, ranked)

    def _passes_on(self, stop: Stop) -> bool:
        """Whether the first stop of another rank than 0 is left to that one, as that of a signal."""
        if self._runtime.role.leads or stop.mode == "now" or self._passed_on is not None:
            return False
        self._passed_on = stop
        for ranked in self._ranked:
            ranked.ask_to_stop()
        return True

    def _request(self, stop: Stop) -> None:
        """Any thread: as if the user had."""
        if self._desk.open(stop):
            with suppress(queue.Full):
                self._commands.put_nowait(stop)

    def _tick(self, supervisor: Supervisor, router: CommandRouter) -> None:
        """Carry out a command, check the workers."""
        router.receive()
        if (self._internal_error is not None or self._runtime.must_halt) and router.stop is None:
            router.halt(Stop("checkpoint"))
        supervisor.check(self._patience(router.stop))
        router.finish_pauses()
        if router.stop is None:
            paused = supervisor.is_paused
            if paused != (self._runtime.state == "paused"):
                self._runtime.enter("paused" if paused else "training")

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

    def _end_before_training(self, enter: Callable[[RunState, str, int], None]) -> int:
        """Carry out the stop that the environments were not waited for."""
        exit_code = 0
        with suppress(queue.Empty):
            while True:
                command = self._commands.get_nowait()
                if isinstance(command, Stop):
                    exit_code = exit_code or command.exit_code
                    self._desk.finish(command.id, True, "stopped")
        self._desk.close()
        enter("stopped", "before training began", exit_code)
        return exit_code

    def _crashed(self, error: BaseException) -> None:
        """Any thread: an internal error stops the run with everything saved; the first one is reported."""
        self._internal_error = self._internal_error or error
        _wake(self._commands)

    def _sample_devices(self, workers: Sequence[EnvironmentWorker]) -> None:
        """The main of the thread `devices`: a driver that hangs must not delay the coordinator."""

        if not self._runtime.role.leads:
            return

        def names() -> dict[int, str]:
            return {pid: name for worker in workers for pid, name in worker.process_names.items()}

        device = self._runtime.device
        index = device.index if device.type == "cuda" else None
        sampler = DeviceSampler(self._runtime.folder.path, index, names, cgroups.ROOT)
        try:
            while not self._ended.is_set():
                self._bus.publish(sampler.sample())
                self._ended.wait(DEVICES_SECONDS)
        finally:
            sampler.close()


def _wake(commands: queue.Queue[Command | None]) -> None:
    """Any thread: end the coordinator's wait. Where commands are queued, it does not wait."""
    with suppress(queue.Full):
        commands.put_nowait(None)


def _close(workers: Sequence[EnvironmentWorker]) -> None:
    for worker in workers:
        worker.close()
