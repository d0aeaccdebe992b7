"""What a run trains with, put together in one place: threads drive it, or the caller of a Learner."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

import threadpoolctl
import torch

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.types import AUTO
from rl_tui.engine.errors import CheckpointError, ConfigError, HookError, NotSupportedError, RlTuiError
from rl_tui.engine.process.tracebacks import name_and_text, show_stacks_of_crash
from rl_tui.engine.process.vital_signs import SIGNS
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.building import Builder
from rl_tui.engine.running.environment_runner import EnvironmentRunner
from rl_tui.engine.running.environments import named_environments
from rl_tui.engine.running.hooks import NO_HOOKS, Hooks
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.running.lessons.restoring import make_lessons
from rl_tui.engine.running.logs import RunLogs
from rl_tui.engine.running.machine.devices import usable_cpus
from rl_tui.engine.running.machine.memory import keep_freed_memory
from rl_tui.engine.running.preflight import require_players, require_writers, resumed_or_started
from rl_tui.engine.running.ranks.messages import RANKS, Welcome
from rl_tui.engine.running.ranks.no_saver import NoSaver
from rl_tui.engine.running.ranks.role import ALONE, Role
from rl_tui.engine.running.record import RunRecord
from rl_tui.engine.running.restoring import resumed_step
from rl_tui.engine.running.run_setup import RunSetup, device_of, run_seed
from rl_tui.engine.running.saver import Files, Saver
from rl_tui.engine.running.threads import UiPriority, spawn
from rl_tui.engine.running.worker_choice import choose_workers
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.pools.base import never
from rl_tui.engine.sampling.pools.worker_process import start_seconds
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.command_desk import Report
from rl_tui.engine.session.messages import RunStarted, RunStateChanged, Stop
from rl_tui.engine.session.states import RunState
from rl_tui.engine.session.text import excerpt
from rl_tui.engine.storage.run_folder import RunFolder

ENDING_SECONDS = 60.0  # a disk that takes longer than that for the last files is lost

OnCrash: TypeAlias = Callable[[BaseException], None]


class Runtime:
    """Used by the thread that made it. Owns the run's folder and its lock, log files, environments, behaviors with
    their learners, lessons and saver.

    As a context manager, in which the caller calls `open`, `assemble`, builds the runners, `begin`, drives them, and
    `end`, in this order; what is raised within is published as the run's failure, and everything is given back at the
    end. A new folder is removed where training has not begun, unless has_traceback.
    """

    def __init__(
        self,
        config: RunConfig,
        bus: EventBus,
        report: Report,
        ui_priority: UiPriority,
        hooks: Hooks = NO_HOOKS,
        source: EnvironmentSource | None = None,
        role: Role = ALONE,
        *,
        is_inline: bool = False,
    ):
        """report: where learners answer commands. source: of the environments, instead of those that the configuration
        names. role: of this rank; one that does not lead has no folder, and writes nothing. is_inline: everything is
        done in the caller's thread, which calls `logs.write_pending` from time to time.
        """
        limit_threads(role.local_size)
        keep_freed_memory()
        show_stacks_of_crash()
        self.config = own_part(config, role)
        self.bus = bus
        self.role = role
        self.folder = RunFolder.of(config)
        self.record = RunRecord(config, self.folder, bus)
        self.state: RunState = "starting"
        self.is_training = not config.checkpoint_settings.inference
        self.has_begun = False
        self.has_traceback = False  # in the folder, of an environment that failed at the start
        self._report = report
        self._ui_priority = ui_priority
        self._hooks = hooks
        self._source = source
        self._is_inline = is_inline
        self._is_open = False
        self._is_stopped_now = False  # without saving
        self._writers: threading.Thread | None = None

    def __enter__(self) -> Runtime:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if isinstance(error, RlTuiError) and self.state != "failed":
                detail = "" if self.has_traceback else excerpt(error.detail)
                self.enter("failed", f"{error}\n{detail}".rstrip(), error.exit_code)
            if isinstance(error, RlTuiError) and not self.has_begun:
                self.role.fail(error)
        finally:
            self._close()

    def open(self, on_crash: OnCrash, is_stopped: Callable[[], bool] = never) -> None:
        """The folder is locked, and its log files are written. Raises RlTuiError where the run cannot start so, and
        StartStopped once `is_stopped`.

        on_crash: called in a thread of a writer, with what that raises.
        """
        config, settings = self.record.config, self.config.checkpoint_settings
        SIGNS.call_seconds = start_seconds(config.env_settings.timeout_wait)
        require_players(config)  # else the log would say that they are started
        if not self.role.leads:
            return
        require_writers(config)
        for line in self.folder.open(settings.resume, settings.force, or_start=settings.resume_or_start):
            self.bus.log("warning", "run", line)
        if self.role.has_others:
            self.bus.log("info", RANKS, self.role.all_in_words)
        if settings.resume_or_start:
            self.bus.log("info", "run", resumed_or_started(self.folder.path, self.folder.is_resumed))
        reason = self._choose_workers(is_stopped)
        self.logs = RunLogs(self.folder, self.record.named_config, self.bus, time.time())
        self._is_open = True
        if not self._is_inline:
            self._writers = spawn("writers", self.logs.main, self.bus, on_crash)
        if reason:
            self.bus.log("info", "run", reason)

    def _choose_workers(self, is_stopped: Callable[[], bool]) -> str:
        """Where `num_workers` is auto, make it a number; why it is that one, "" where there is nothing to say."""
        if self.config.env_settings.num_workers != AUTO:
            return ""
        named = named_environments(self.config) if self._source is None else ()
        sources = [each.source for each in named] if self._source is None else [self._source]
        num_cpus = max(1, usable_cpus() // self.role.local_size)
        choice = choose_workers(self.config, sources, self.folder, num_cpus, is_stopped)
        self._take_workers(choice.num_workers)
        return choice.reason

    def _take_workers(self, num_workers: int) -> None:
        self.config, self.record.config = (
            config.model_copy(
                update={"env_settings": config.env_settings.model_copy(update={"num_workers": num_workers})}
            )
            for config in (self.config, self.record.config)
        )

    def assemble(self) -> None:
        """The start is announced, and everything is made that needs no environment. Raises RlTuiError."""
        self.device = device_of(self.config, partial(self.bus.log, "warning", "run"), self.role.local_rank)
        self.files: dict[str, Files] = {}
        welcome = self.role.share(Welcome, self._begin_record)
        self.seed = welcome.seed
        if self.role.leads:
            on_saved = partial(self.record.write_status, self.files)
            self.saver = Saver(self.files, self.bus, self._report, on_saved, is_inline=self._is_inline)
        else:
            self._take_workers(welcome.num_workers)
            path = Path(welcome.path)
            self.folder = RunFolder(path.parent, path.name)
            self.bus.log("info", RANKS, self.role.where(self.folder.path))
            self.bus.publish(RunStarted(path.name, welcome.path, self.seed, str(self.device), welcome.step > 0, {}))
            self.saver = NoSaver(self.files, self.bus, self._report, lambda _: None)
            self.lessons = Lessons(self.config.environment_parameters, self.seed, self.bus, advances=False)
            self.lessons.adopt(welcome.lessons, 0)
        num_envs, hooks = self.record.config.env_settings.num_envs, self._hooks if self.role.leads else NO_HOOKS
        setup = RunSetup(
            self.config, num_envs, self.folder, self.seed, self.device, self.bus, self._report, hooks, self.lessons,
            self.saver, self.files, welcome.step, self.role,
        )  # fmt: skip
        self.resumed_from = setup.restorer.resumed_from
        builder = Builder(setup, self._ui_priority, self._source, is_inline=self._is_inline)
        self.watch_targets = builder.watch_targets
        self.runners: Sequence[EnvironmentRunner] = builder.runners()

    @property
    def chooses_device(self) -> bool:
        """Whether each behavior chooses between the CPU and another device."""
        return self.config.torch_settings.device == AUTO and self.device.type != "cpu"

    def _begin_record(self) -> Welcome:
        """Write and publish what the run begins with."""
        seed = run_seed(self.config)
        self._is_intact = self.folder.is_resumed and self.folder.configuration.exists()
        if not (self._is_intact or self._is_inline):
            self.record.write_configuration()
        self.record.announce(seed, AUTO if self.chooses_device else str(self.device))
        resumed = self.folder if self.folder.is_resumed else None
        self.lessons = self.record.lessons = make_lessons(self.config, seed, self.bus, resumed)
        step = resumed_step(self.folder, self.config.checkpoint_settings)
        num_workers = self.config.env_settings.worker_count
        return Welcome(seed, num_workers, str(self.folder.path), step, self.lessons.state())

    def begin(self, on_crash: OnCrash) -> None:
        """The runners are built: training begins. on_crash: as of `open`."""
        self.has_begun = True
        if not self.role.leads:
            self.enter("training")
            return
        if self._is_inline:
            self.record.name_behaviors(self.behaviors)
        if self._is_inline or (self._is_intact and self.is_training):  # a run that cannot resume so keeps its own
            self.record.write_configuration()
        if self.folder.is_resumed:
            self.record.update_status(self.files)  # it names the newest max_steps
        self.enter("training")
        self.logs.start_writers(on_crash)

    def check_writers(self) -> None:
        """Log of each writer that has lost events."""
        if self.role.leads:
            self.logs.check_writers()

    @property
    def behaviors(self) -> Mapping[str, Behavior]:
        """Those that have appeared, by name. Any thread."""
        return {name: behavior for runner in self.runners for name, behavior in runner.behaviors.items()}

    @property
    def failures(self) -> list[RlTuiError]:
        """What ended behaviors early, or environments without any; once where it ended several."""
        failures = [behavior.learner.failure for behavior in self.behaviors.values()]
        failures += [runner.failure for runner in self.runners]
        return list(dict.fromkeys(failure for failure in failures if failure is not None))

    @property
    def must_halt(self) -> bool:
        """Whether one behavior ends all: a hook raised, or an environment has shown a behavior for which the
        configuration has no settings, or unusable ones."""
        if any(behavior.learner.halts_run for behavior in self.behaviors.values()):
            return True
        return any(isinstance(failure, ConfigError | NotSupportedError | HookError) for failure in self.failures)

    def end(
        self, stop: Stop | None, losses: Sequence[CheckpointError], error: BaseException | None = None
    ) -> tuple[BaseException | None, int]:
        """Publish the last state, once everything is on disk; what ended the run badly, and the exit code.

        stop: by which it ended; None where every behavior ended by itself. losses: why the newest state of a behavior
        is not on disk. error: an internal one.
        """
        if self.role.leads:
            self.record.update_status(self.files, has_ended=True)
        self._is_stopped_now = stop is not None and stop.mode == "now"
        failures = self.failures
        bad = [*([error] if error else []), *failures, *losses]
        state, reason, exit_code = self._outcome(stop, failures, losses, error)
        self.enter(state, reason, exit_code)
        return next(iter(bad), None), exit_code

    def _outcome(
        self,
        stop: Stop | None,
        failures: Sequence[RlTuiError],
        losses: Sequence[CheckpointError],
        error: BaseException | None,
    ) -> tuple[RunState, str, int]:
        """The last state, its reason and the exit code: of an internal error first, then of what was not saved, of the
        stop, of what ended a behavior: not saved (7), diverged (5), a lost environment (3), else 0."""
        if error is not None:
            return "failed", name_and_text(error), 1
        worst = max((each.exit_code for each in (*failures, *losses)), default=0)
        exit_code = stop.exit_code if stop is not None and stop.exit_code and not losses else worst
        if failures or losses:
            return "failed" if failures else "unsaved", "; ".join(map(str, [*failures, *losses])), exit_code
        if self._is_stopped_now:
            return "stopped", "without saving", exit_code
        if stop is not None or self.must_halt:  # stopped by a hook, and over before that was seen here
            return "stopped", "everything is saved", exit_code
        return "finished", "", exit_code

    def enter(self, state: RunState, reason: str = "", exit_code: int | None = None) -> None:
        """Publish a new state of the run."""
        self.state = state
        if state == "training":
            SIGNS.enter("training")
            SIGNS.call_seconds = self.config.env_settings.timeout_wait
        elif state == "stopping":
            SIGNS.enter("saving")
        self.bus.publish(RunStateChanged(state, reason, exit_code))

    def _close(self) -> None:
        try:
            if self._is_open:
                self._close_logs()
            else:
                self.folder.discard()
        finally:
            self.folder.close()
            self.role.close()

    def _close_logs(self) -> None:
        self.logs.close(self._is_stopped_now)
        if self._writers is not None:
            self._writers.join(ENDING_SECONDS)
        else:
            if self.has_begun:  # else the folder stays as it was
                self.logs.write_pending()
            self.logs.close_files()
        if not self.has_begun:
            is_explained = self.state in ("failed", "stopped") or self._is_inline  # else its log has an internal error
            if is_explained and not self.has_traceback:
                self.folder.discard()
        elif self.is_training and not self._was_finished:
            self.logs.write_timers()

    @property
    def _was_finished(self) -> bool:
        """Whether every behavior had finished before this process, which has changed nothing of it."""
        learners = [behavior.learner for behavior in self.behaviors.values()] if self.has_begun else []
        return bool(learners) and all(learner.was_finished for learner in learners)


def own_part(config: RunConfig, role: Role) -> RunConfig:
    """With as many environments as this rank has."""
    if not role.has_others:
        return config
    settings = config.env_settings
    _, num_envs = role.own_part(settings.num_envs)
    return config.model_copy(update={"env_settings": settings.model_copy(update={"num_envs": max(1, num_envs)})})


def limit_threads(num_ranks: int = 1) -> None:
    """ML-Agents' rule for torch, and for numpy's BLAS too: half the usable cores, one to four, of the share of each of
    so many ranks on this machine.

    Small networks gain nothing from more, and BLAS threads that wait for each other cost a busy machine its speed
    (measured on two cores that are busy otherwise: 110k steps per second with one thread, 10k with two).
    """
    threads = min(max(usable_cpus() // num_ranks // 2, 1), 4)
    torch.set_num_threads(threads)
    threadpoolctl.threadpool_limits(threads, user_api="blas")
