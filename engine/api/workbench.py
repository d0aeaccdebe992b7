"""What a learner in the caller's hands owns: a runtime, driven by the caller's calls."""

from __future__ import annotations

import logging
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from rl_tui.engine.api.plan import LearnerPlan
from rl_tui.engine.errors import EnvironmentFailure, HookError, NotSupportedError, RlTuiError
from rl_tui.engine.process.tracebacks import name_and_text
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.environment_runner import EnvironmentRunner
from rl_tui.engine.running.hooks import HookStop
from rl_tui.engine.running.runtime import Runtime
from rl_tui.engine.running.threads import UiPriority
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import (
    BehaviorStateChanged,
    EnvironmentFailed,
    ExportPolicy,
    RunStateChanged,
    SaveCheckpoint,
    Stop,
)
from rl_tui.engine.session.sentences import sentence_of
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.specs import Trajectories

WRITE_SECONDS = 0.5  # between two times that events are written
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
RAISED = (EnvironmentFailed, BehaviorStateChanged, RunStateChanged)  # their errors are the caller's already

logger = logging.getLogger("rl_tui")


class Workbench:
    """Used by one thread, the caller's; only writers of the configuration that need a thread start one.

    Drives the runtime, until `close`. What the run logs is also passed to Python's logging.
    """

    def __init__(self, plan: LearnerPlan):
        """Everything is open, and what the folder holds is restored. Raises RlTuiError; a new folder is removed."""
        bus = EventBus()
        self._mail = bus.subscribe()
        self._written_at = time.monotonic()
        self._outcomes: dict[str, tuple[bool, str]] = {}  # by command
        self._waiting: dict[str, deque[Trajectories]] = defaultdict(deque)  # blocks that others waited for, by behavior
        self.runtime = Runtime(plan.config, bus, self._note_outcome, UiPriority(), source=plan.source, is_inline=True)
        with ExitStack() as leaving:
            leaving.callback(self._pass_on)
            runtime = leaving.enter_context(self.runtime)
            runtime.open(self._note_crash)
            runtime.assemble()
            for runner in runtime.runners:
                leaving.callback(runner.close)
                runner.build()
            runtime.begin(self._note_crash)
            for name in runtime.behaviors:
                bus.publish(BehaviorStateChanged(name, "training"))
            self.restart(renews=False)
            self.write_events()
            leaving.callback(self._end)
            self._leaving = leaving.pop_all()

    @property
    def behaviors(self) -> Mapping[str, Behavior]:
        """Those that have appeared, by name."""
        return self.runtime.behaviors

    def restart(self, renews: bool = True) -> None:
        """Environments begin new episodes, and experience that was not passed on is dropped.

        renews: after an interruption at any moment, which worker processes do not survive.
        """
        self._waiting.clear()
        for runner in self.runtime.runners:
            if renews and runner.pool is not None and runner.pool.worker_pids:
                runner.renew()
            runner.begin()

    def add_waiting(self, seconds: float) -> None:
        """For so long, the caller did something else."""
        for runner in self.runtime.runners:
            runner.waiting_seconds += seconds

    def collect(self, behavior: str | None = None) -> tuple[str, Trajectories]:
        """The next block of experience of that behavior, or of any, and whose it is. Raises RlTuiError."""
        for name, blocks in self._waiting.items():
            if blocks and behavior in (None, name):
                return name, blocks.popleft()
        while True:
            for runner in self.runtime.runners:
                while (due := runner.next_block()) is not None:
                    if behavior in (None, due[0]):
                        return due
                    self._waiting[due[0]].append(due[1])
            for runner in self.runtime.runners:
                self._step(runner)

    def learn(self, name: str, block: Trajectories) -> None:
        """Pass a block to its learner. Raises RlTuiError."""
        behavior, runner = self.behaviors[name], self._runner(name)
        if behavior.learner.is_offline:
            raise NotSupportedError(f"{name} learns without experience: use run()")
        runner.count(name, block)
        if behavior.learner.is_over:  # it still acts, while others train
            behavior.learner.steps_left.skip(block.num_learned)
            return
        self._learn(behavior, runner, lambda: behavior.learner.learn_from(block, behavior.policy.state()))

    def _learn(self, behavior: Behavior, runner: EnvironmentRunner, learn: Callable[[], None]) -> None:
        try:
            learn()
        except HookError:
            raise
        except RlTuiError as error:
            self._fail([behavior], error)
            raise
        runner.reporter.publish_due()
        if behavior.learner.is_finished:
            self.finish(behavior)
        elif time.monotonic() - self._written_at > WRITE_SECONDS:
            self.write_events()

    def advance(self) -> None:
        """Collect the next block, and learn from it; before that, behaviors that need none make an update. Raises
        RlTuiError."""
        needs_experience = False
        for runner in self.runtime.runners:
            needs_experience |= not runner.is_offline
            for behavior in runner.behaviors.values() if runner.is_offline else ():
                if not behavior.learner.is_over:
                    self._learn(behavior, runner, behavior.learner.learn_offline)
        if needs_experience:
            self.learn(*self.collect())

    def _step(self, runner: EnvironmentRunner) -> None:
        try:
            runner.step()
        except RlTuiError as error:
            if isinstance(error, EnvironmentFailure):
                names = tuple(runner.behaviors)
                self.runtime.bus.publish(EnvironmentFailed(runner.environment, names, str(error), error.detail))
            self._fail(list(runner.behaviors.values()), error)
            raise

    def carry_out(self, name: str, command: SaveCheckpoint | ExportPolicy) -> tuple[bool, str]:
        """Whether that was done, and the path of what was written, or why not."""
        learner = self.behaviors[name].learner
        learner.commands.append(command)
        learner.serve(may_wait=True)
        self.write_events()
        return self._outcomes.pop(command.id)

    def _fail(self, behaviors: Sequence[Behavior], error: RlTuiError) -> None:
        """Their training ends because of this; what was learned is saved."""
        for behavior in behaviors:
            behavior.learner.fail(error)
            self.finish(behavior)

    def failed_hook(self, error: HookError) -> BaseException:
        """What the hook raised, with everything saved. Training may continue."""
        raised = error.__cause__ or error
        for name, behavior in self.behaviors.items():
            if isinstance(error, HookStop):
                self.runtime.bus.log("info", name, str(error))
            else:
                behavior.save_traceback(error)
            is_ok, message = self.carry_out(name, SaveCheckpoint())
            raised.add_note(safe_text(f"{error}; {f'saved in {message}' if is_ok else f'not saved: {message}'}"))
        return raised

    def finish(self, behavior: Behavior) -> None:
        """Its training has ended, and everything is saved. Harmless when called twice."""
        behavior.learner.finish("final" if behavior.learner.is_finished else "interrupted")
        self.write_events()

    def write_events(self) -> None:
        """Write what has happened to the run's files, and pass on what it logs."""
        self._written_at = time.monotonic()
        self.runtime.logs.write_pending()
        self._pass_on()

    def close(self) -> None:
        """Save everything and give everything back. Harmless when called twice. Raises CheckpointError."""
        leaving, self._leaving = self._leaving, ExitStack()
        leaving.close()
        if losses := self.runtime.saver.losses:
            raise losses[0]

    def _end(self) -> None:
        """The last checkpoints, and the last state."""
        for behavior in self.behaviors.values():
            self.finish(behavior)
        runtime = self.runtime
        is_finished = all(behavior.learner.is_finished for behavior in self.behaviors.values())
        runtime.end(None if is_finished else Stop("checkpoint"), runtime.saver.losses)

    def _runner(self, behavior: str) -> EnvironmentRunner:
        return next(runner for runner in self.runtime.runners if behavior in runner.behaviors)

    def _note_crash(self, error: BaseException) -> None:
        """In the thread of a writer."""
        self.runtime.bus.log("error", "writers", name_and_text(error))

    def _pass_on(self) -> None:
        for envelope in self._mail.drain():
            event = envelope.event
            if (said := sentence_of(event)) is not None:
                is_raised = isinstance(event, RAISED)
                logger.log(logging.INFO if is_raised else LEVELS[said.level], "%s", said.line)

    def _note_outcome(self, command: str, _: str, is_ok: bool, message: str) -> None:
        self._outcomes[command] = is_ok, message
