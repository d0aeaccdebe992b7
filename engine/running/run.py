"""A run from its configuration to its exit code. The only file that knows everybody."""

from __future__ import annotations

import gc
import platform
import queue
import threading
import time
from contextlib import suppress

import numpy as np
import threadpoolctl
import torch

from rl_tui.engine.config.loading import effective_yaml
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.support import find_unused, list_warnings
from rl_tui.engine.errors import CheckpointError, ConfigError, EnvironmentFailure, RlTuiError
from rl_tui.engine.running.building import Builder, device_of, run_seed
from rl_tui.engine.running.commands import CommandLedger
from rl_tui.engine.running.environments import settings_of
from rl_tui.engine.running.health import HealthReporter
from rl_tui.engine.running.logs import RunLogs
from rl_tui.engine.running.machine.devices import DeviceSampler, usable_cpus
from rl_tui.engine.running.machine.memory import keep_freed_memory
from rl_tui.engine.running.saver import Saver
from rl_tui.engine.running.supervisor import Supervisor
from rl_tui.engine.running.watching.service import WatchService
from rl_tui.engine.running.workers import UiPriority, spawn
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import (
    AddNote,
    Command,
    ExportPolicy,
    LogEmitted,
    LogLevel,
    NoteAdded,
    Pause,
    Resume,
    RollBack,
    RunStarted,
    RunStateChanged,
    SaveCheckpoint,
    SetHyperparameter,
    Stop,
    StopMode,
)
from rl_tui.engine.session.states import RunState
from rl_tui.engine.session.text import excerpt, one_line
from rl_tui.engine.storage.disk import write_atomically
from rl_tui.engine.storage.run_folder import RunFolder
from rl_tui.engine.storage.training_status import read_training_status, status_of, write_training_status
from rl_tui.engine.version import VERSION

OVER = "the run is over"
TICK_SECONDS = 0.05  # how soon it is seen that a command has been carried out
CALM_SECONDS = 0.5  # between looks at the workers while nothing was asked for: every look holds up learning
DEVICES_SECONDS = 1.0
PROBE_SECONDS = 2.0  # a driver that takes longer to answer is left
NOTE_LENGTH = 500  # a remark; more is a document
ENDING_SECONDS = 60.0  # a disk that takes longer than that for the last files is lost


class Run:
    """Lives in the coordinator's thread. Owns the run's folder and state, routes commands, starts and ends the rest."""

    def __init__(
        self,
        config: RunConfig,
        bus: EventBus,
        commands: queue.Queue[Command | None],
        ui_priority: UiPriority,
        watching: WatchService,
    ):
        self._config = config
        self._watching = watching
        self._bus = bus
        self._commands = commands
        self._ui_priority = ui_priority
        self._folder = RunFolder.of(config)
        self._ledger = CommandLedger(bus)
        self._state: RunState = "starting"
        self._stop: Stop | None = None
        self._bug: BaseException | None = None
        self._is_training = not config.checkpoint_settings.inference
        self._has_trained = False
        self._has_report = False  # of an environment that failed at the start: its traceback is in the run's folder
        self._ended = threading.Event()

    def main(self) -> int:
        """Train to the end and return the exit code. Raises RlTuiError when the run cannot start."""
        limit_threads()
        keep_freed_memory()
        settings = self._config.checkpoint_settings
        try:
            with self._folder:
                for line in self._folder.open(settings.resume, settings.force):
                    self._log("warning", line)
                return self._record()
        except RlTuiError as error:
            self._refuse(error)
            raise

    def _record(self) -> int:
        """Train with the log files open."""
        logs = RunLogs(self._folder, self._config, self._bus, time.time())
        writers = spawn("writers", logs.main, self._bus, self._crashed)
        health = HealthReporter(self._bus)
        try:
            return self._train(health)
        except RlTuiError as error:
            self._has_report = isinstance(error, EnvironmentFailure)
            self._refuse(error)
            raise
        finally:
            health.close()
            logs.close()
            writers.join(ENDING_SECONDS)
            if self._state == "failed" and not self._has_trained:
                if not self._has_report:
                    self._folder.discard()
            elif self._is_training:
                self._write_timers(logs)

    def _write_timers(self, logs: RunLogs) -> None:
        try:
            logs.write_timers()
        except OSError as error:
            self._log("warning", f"{self._folder.timers}: not written ({error.strerror})")

    def _refuse(self, error: RlTuiError) -> None:
        """Tell once that the run cannot start."""
        if self._state != "failed":
            self._answer_all()
            detail = "" if self._has_report else excerpt(error.detail)
            self._enter("failed", f"{error}\n{detail}".rstrip(), error.exit_code)

    def _train(self, health: HealthReporter) -> int:
        seed, device = run_seed(self._config), device_of(self._config)
        is_intact = self._config.checkpoint_settings.resume and self._folder.configuration.exists()
        if not is_intact:
            self._write_configuration()
        self._announce(seed, device)
        self._log("debug", f"device {device} ({_why_device(self._config)}), threads: {torch.get_num_threads()}")
        builder = Builder(self._config, self._folder, seed, device, self._bus, self._ledger.report, self._ui_priority)
        saver = Saver(builder.files, self._bus, lambda: self._write_status(builder))
        workers = builder.workers(saver)
        try:
            for worker in workers:
                worker.build()
            if is_intact and self._is_training:  # not before: a run that cannot go on with these settings keeps its own
                self._write_configuration()
        except BaseException:
            for worker in workers:
                worker.close()
            raise
        self._watching.admit(builder.plays)
        supervisor = Supervisor(workers, saver, self._bus, self._crashed, self._look_around)
        self._has_trained = True
        if self._config.checkpoint_settings.resume:
            self._keep_status(builder)  # it names the newest max_steps
        self._enter("training")
        probe = spawn("devices", lambda: self._sample_devices(device), self._bus, self._crashed)
        try:
            while not self._commands.empty():  # a pause or a stop that came meanwhile holds the first step
                self._take_command(supervisor)
            gc.freeze()  # what was imported and built stays: looking through it again and again takes 0.1 s each time
            supervisor.start()
            while not supervisor.has_ended:
                self._tick(supervisor)
                health.tick()
        finally:  # also when this thread makes a mistake: the others must not go on without it
            supervisor.end(ENDING_SECONDS)
            self._ended.set()
            probe.join(PROBE_SECONDS)
            health.tick()  # the last checkpoint may have failed
            self._answer_all()
        return self._end(supervisor, builder)

    def _announce(self, seed: int, device: torch.device) -> None:
        settings = self._config.checkpoint_settings
        versions = {"rl-tui": VERSION, "python": platform.python_version(), "torch": torch.__version__}
        self._bus.publish(
            RunStarted(
                run_id=self._folder.run_id,
                path=str(self._folder.path),
                seed=seed,
                device=str(device),
                resumed=settings.resume,
                versions=versions | {"numpy": np.__version__},
            )
        )
        for line in (*list_warnings(self._config), *find_unused(self._config)):
            self._log("warning", line)
        if settings.resume and self._folder.training_status.exists():
            warning = read_training_status(self._folder.training_status, torch.__version__).warning
            if warning:
                self._log("warning", warning)

    def _write_configuration(self) -> None:
        settings = self._config.checkpoint_settings.model_copy(update={"run_id": self._folder.run_id})
        named = self._config.model_copy(update={"checkpoint_settings": settings})
        try:
            write_atomically(self._folder.configuration, effective_yaml(named).encode())
        except OSError as error:
            raise ConfigError(f"{self._folder.configuration}: cannot be written ({error.strerror})") from error

    def _tick(self, supervisor: Supervisor) -> None:
        """Take one command, tell outcomes, look after the workers."""
        self._take_command(supervisor)
        if self._bug is not None and self._stop is None:
            self._halt(Stop("checkpoint"), supervisor)
        supervisor.check(self._config.env_settings.timeout_wait)
        self._ledger.settle()
        if self._stop is None:
            paused = supervisor.is_paused
            if paused != (self._state == "paused"):
                self._enter("paused" if paused else "training")

    def _take_command(self, supervisor: Supervisor) -> None:
        is_calm = self._stop is None and not self._ledger.is_waiting and not supervisor.is_leaving
        try:
            command = self._commands.get(timeout=CALM_SECONDS if is_calm else TICK_SECONDS)
        except queue.Empty:
            return
        if command is not None:
            self._ledger.open(command.id)
            self._obey(command, supervisor)

    def _look_around(self) -> None:
        """Any thread: the coordinator should not wait any longer. It does not where commands wait for it."""
        with suppress(queue.Full):
            self._commands.put_nowait(None)

    def _obey(self, command: Command, supervisor: Supervisor) -> None:
        match command:
            case Stop():
                self._halt(command, supervisor)
                self._ledger.expect_when(command.id, lambda: (True, "stopped") if supervisor.has_ended else None)
            case Pause():
                self._pause(command, supervisor)
            case Resume():
                names = supervisor.resume(command.behavior)
                nothing = _nothing(supervisor, command.behavior, "nothing is paused")
                self._ledger.finish(command.id, bool(names), f"{_listed(names)} training" if names else nothing)
            case SaveCheckpoint() | ExportPolicy() | SetHyperparameter() | RollBack():
                names = supervisor.names(command.behavior)
                self._ledger.expect(command.id, names)
                supervisor.forward(command, names)
                if not names:
                    self._ledger.finish(
                        command.id, False, _nothing(supervisor, command.behavior, "there is no behavior")
                    )
            case AddNote():
                self._ledger.finish(command.id, *self._note(command, supervisor))

    def _note(self, command: AddNote, supervisor: Supervisor) -> tuple[bool, str]:
        """Whether the note is in the run's events, and what it is or why it is not."""
        text = one_line(command.text)
        if command.behavior is not None and not supervisor.names(command.behavior):
            return False, _nothing(supervisor, command.behavior, "")
        if not text:
            return False, "the note is empty"
        if len(text) > NOTE_LENGTH:
            return False, f"the note has {len(text)} characters, at most {NOTE_LENGTH} are kept"
        self._bus.publish(NoteAdded(text, command.behavior))
        return True, text

    def _halt(self, stop: Stop, supervisor: Supervisor) -> None:
        """Let everybody leave; of several stops, the first exit code but 0 counts and the hastiest mode."""
        if self._stop is not None:
            mode: StopMode = "now" if "now" in (stop.mode, self._stop.mode) else "checkpoint"
            stop = Stop(mode, self._stop.exit_code or stop.exit_code)
        self._stop = stop
        self._enter("stopping", "saving" if stop.mode == "checkpoint" else "")
        supervisor.stop(stop.mode)

    def _pause(self, command: Pause, supervisor: Supervisor) -> None:
        names = supervisor.pause(command.behavior)
        if not names:
            self._ledger.finish(command.id, False, _nothing(supervisor, command.behavior, "nothing trains"))
            return

        def outcome() -> tuple[bool, str] | None:
            has_parked = supervisor.has_parked(names)
            if has_parked is None:
                return None
            return has_parked, f"{_listed(names)} {'paused' if has_parked else 'went on or ended before it was paused'}"

        self._ledger.expect_when(command.id, outcome)

    def _end(self, supervisor: Supervisor, builder: Builder) -> int:
        """Everything is on disk; the last state is told with the exit code."""
        self._keep_status(builder, has_ended=True)
        self._answer_all()
        exit_code = self._exit_code(supervisor)
        self._enter(self._end_of(supervisor), self._reason(supervisor), exit_code)
        return exit_code

    def _end_of(self, supervisor: Supervisor) -> RunState:
        if self._bug is not None or supervisor.failures:
            return "failed"
        if supervisor.losses:
            return "unsaved"
        return "finished" if self._stop is None else "stopped"

    def _answer_all(self) -> None:
        """Every command that came has its outcome."""
        self._ledger.close(OVER)
        with suppress(queue.Empty):
            while True:
                command = self._commands.get_nowait()
                if command is not None:
                    self._ledger.finish(command.id, False, OVER)

    def _reason(self, supervisor: Supervisor) -> str:
        """Why the run ended before its time; empty when it did not."""
        if self._bug is not None:
            return f"{type(self._bug).__name__}: {self._bug}"
        failures = [*supervisor.failures, *supervisor.losses]
        if failures:
            return "; ".join(map(str, failures))
        if self._stop is not None:
            return "everything is saved" if self._stop.mode == "checkpoint" else "without saving"
        return ""

    def _exit_code(self, supervisor: Supervisor) -> int:
        """A bug of ours first, then what was not saved, what the user or a signal asked for, what ended a behavior."""
        if self._bug is not None:
            return 1
        if self._stop is not None and self._stop.exit_code and not supervisor.losses:
            return self._stop.exit_code
        return supervisor.exit_code

    def _crashed(self, error: BaseException) -> None:
        """Any thread: a bug of ours stops the run with everything saved; the first one is told."""
        self._bug = self._bug or error
        self._look_around()

    def _keep_status(self, builder: Builder, has_ended: bool = False) -> None:
        """The list of checkpoints is up to date, or a warning says why not; what only plays changes nothing in it."""
        if not self._is_training:
            return
        try:
            self._write_status(builder, has_ended)
        except (CheckpointError, OSError) as error:
            self._log("warning", f"the list of checkpoints is not up to date: {error}")

    def _write_status(self, builder: Builder, has_ended: bool = False) -> None:
        statuses = {
            name: status_of(files.folder, files.store.list(), has_ended, settings_of(self._config, name).max_steps)
            for name, files in builder.files.items()
        }
        write_training_status(self._folder.training_status, statuses, torch.__version__)

    def _sample_devices(self, device: torch.device) -> None:
        """The main of the thread `devices`: a driver that hangs must hold up nobody else."""
        sampler = DeviceSampler(self._folder.path, device.index if device.type == "cuda" else None)
        try:
            while not self._ended.is_set():
                self._bus.publish(sampler.sample())
                self._ended.wait(DEVICES_SECONDS)
        finally:
            sampler.close()

    def _enter(self, state: RunState, reason: str = "", exit_code: int | None = None) -> None:
        self._state = state
        self._bus.publish(RunStateChanged(state, reason, exit_code))

    def _log(self, level: LogLevel, message: str) -> None:
        self._bus.publish(LogEmitted(level, "run", message))


def limit_threads() -> None:
    """ML-Agents' rule for torch, and for numpy's BLAS too: half the usable cores, one to four.

    Small networks gain nothing from more, and BLAS threads that wait for each other cost a busy machine its speed
    (measured on two cores beside other work: 110k steps per second with one thread, 10k with two).
    """
    threads = min(max(usable_cpus() // 2, 1), 4)
    torch.set_num_threads(threads)
    threadpoolctl.threadpool_limits(threads, user_api="blas")


def _why_device(config: RunConfig) -> str:
    if config.torch_settings.device:
        return "named by torch_settings.device"
    return "the GPU that torch finds" if torch.cuda.is_available() else "torch finds no GPU"


def _nothing(supervisor: Supervisor, behavior: str | None, otherwise: str) -> str:
    """Why a command touched no behavior."""
    return otherwise if behavior is None or supervisor.names(behavior) else f"there is no behavior {behavior}"


def _listed(names: list[str]) -> str:
    return ", ".join(names)
