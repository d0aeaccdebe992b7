"""What a learner in the caller's hands owns: the machinery of a run, without its threads."""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from rl_tui.engine.api.environments import GivenSource
from rl_tui.engine.api.plan import LearnerPlan
from rl_tui.engine.config.diagnostics import one_of, suggest, visible
from rl_tui.engine.errors import (
    CheckpointError,
    ConfigError,
    EnvironmentFailure,
    HookError,
    NotSupportedError,
    RlTuiError,
)
from rl_tui.engine.learning.policies import make_policy
from rl_tui.engine.process.tracebacks import name_and_text, show_stacks_of_crash
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.building import Builder, Place, device_of, run_seed
from rl_tui.engine.running.collection import Collection
from rl_tui.engine.running.environment_reports import publish_reports
from rl_tui.engine.running.environments import make_pool
from rl_tui.engine.running.hooks import HookStop
from rl_tui.engine.running.lessons.follower import LessonFollower
from rl_tui.engine.running.lessons.restoring import make_lessons
from rl_tui.engine.running.logs import RunLogs
from rl_tui.engine.running.machine.memory import keep_freed_memory
from rl_tui.engine.running.preflight import require_writers
from rl_tui.engine.running.record import RunRecord
from rl_tui.engine.running.restoring import resumed_step
from rl_tui.engine.running.run import limit_threads
from rl_tui.engine.running.saver import Saver
from rl_tui.engine.running.threads import Control, UiPriority
from rl_tui.engine.running.writers.event_lines import line_of, run_state_line
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import (
    BehaviorStateChanged,
    EnvironmentFailed,
    ExportPolicy,
    RunStateChanged,
    SaveCheckpoint,
)
from rl_tui.engine.session.states import RunState
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.specs import BehaviorSpec, Policy, Trajectories
from rl_tui.engine.storage.checkpoints import trained_behaviors
from rl_tui.engine.storage.run_folder import RunFolder

RECEIVE_SECONDS = 0.1  # how long one call may wait for worker processes
WRITE_SECONDS = 0.5  # between two times that events are written
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
RAISED = (EnvironmentFailed, BehaviorStateChanged, RunStateChanged)  # their errors are the caller's already
ONE_BEHAVIOR = "a Learner trains one behavior. A run trains several: rl_tui.start, rl_tui.train, or the command line."

logger = logging.getLogger("rl_tui")


class Workbench:
    """Used by one thread, the caller's; only writers of the configuration that need a thread start one.

    Owns the run's folder and its lock, environments, trainer, saver and log files, until `close`. What the run logs is
    also passed to Python's logging. waiting_seconds: between the caller's calls.
    """

    def __init__(self, plan: LearnerPlan):
        """Everything is open, and what the folder holds is restored. Raises RlTuiError; a new folder is removed."""
        limit_threads()
        keep_freed_memory()
        show_stacks_of_crash()
        require_writers(plan.config)
        self.bus = EventBus()
        self.folder = RunFolder.of(plan.config)
        self.waiting_seconds = 0.0
        self._mail = self.bus.subscribe()
        self._written_at = time.monotonic()
        self._outcomes: dict[str, tuple[bool, str]] = {}  # by command
        with ExitStack() as leaving:
            leaving.callback(self.folder.close)
            notes = self.folder.open(or_start=True)
            leaving.push(self._discard_if_failed)
            self._source = plan.source
            for note in notes:
                self.bus.log("info", "run", note)
            step = resumed_step(self.folder, plan.config.checkpoint_settings)
            self._seed = run_seed(plan.config)
            resumed = self.folder if self.folder.is_resumed else None
            self._lessons = make_lessons(plan.config, self._seed, self.bus, resumed)
            self._follower = LessonFollower(self._lessons)
            self._pool = self._make_pool(plan, step)
            leaving.callback(self._close_pool)
            self._pool.start()
            self.spec = only_spec(plan, self._pool)
            require_continued(self.folder.path, self.spec.name)
            self.plan = plan.renamed(self.spec.name)
            self._open(leaving)
            self._leaving = leaving.pop_all()

    def _open(self, leaving: ExitStack) -> None:
        """Everything besides folder and environments."""
        config, plan = self.plan.config, self.plan
        self.logs = RunLogs(self.folder, config, self.bus, time.time())
        leaving.push(self._close_logs)
        device = device_of(config)
        self._record = RunRecord(config, self.folder, self.bus)
        self._record.lesson_numbers = lambda: self._lessons.numbers
        self._record.announce(self._seed, device)
        builder = Builder(
            config, self.folder, self._seed, device, self.bus, self._note_outcome, UiPriority(), lessons=self._lessons
        )
        saver = Saver(
            builder.files,
            self.bus,
            self._note_outcome,
            partial(self._record.write_status, builder.files),
            is_inline=True,
        )
        target, self._control = builder.watch_target(plan.source), Control(UiPriority())
        self.behavior: Behavior = builder.behavior(
            self.spec, Place(0, plan.source, self._pool, self._control, saver, target)
        )
        self.files = builder.files[self.spec.name]
        self.resumed_from = builder.resumed_from.get(self.spec.name)
        self._builder, self._saver = builder, saver
        self._record.write_configuration()
        self._record.update_status(builder.files)
        self.logs.start_writers(self._report_crash)
        self._enter("training")
        self.bus.publish(BehaviorStateChanged(self.spec.name, "training"))
        self.begin()
        self.write_events()
        leaving.callback(self._end)

    def _make_pool(self, plan: LearnerPlan, step: int) -> EnvironmentPool:
        pool = make_pool(plan.source, plan.config.env_settings, self.folder.run_logs, step)
        self._follower.prepare(pool, step)
        return pool

    def begin(self) -> None:
        """Environments begin new episodes; experience that was not passed on is dropped."""
        learner = self.behavior.learner
        learner.recount()
        self._collection = Collection(
            self._pool, {self.spec.name: self.behavior}, self._refuse, self.bus, lambda: self.waiting_seconds
        )
        self._pool.reset(self._seed + learner.step)  # a restored learner must not see the same episodes again
        self._has_begun = False

    def restart(self) -> None:
        """The same after an interruption at any moment, which worker processes do not survive."""
        if self._pool.worker_pids:
            self._close_pool()
            self._pool = self._make_pool(self.plan, self.behavior.learner.step)
            self._pool.start()
        self.begin()

    def _refuse(self, spec: BehaviorSpec) -> Behavior:
        raise NotSupportedError(f"behavior {spec.name} has appeared: {ONE_BEHAVIOR}")

    def collect(self) -> Trajectories:
        """The next block of experience, of the size that counters and the next update need. Raises RlTuiError."""
        collector, sizes = self._collection.collector, self._collection.block_sizes[self.spec.name]
        name = self.spec.name
        if not self._has_begun:
            self._receive(collector)
            self._has_begun = True
        while not collector.is_due(name, sizes.size):
            self._follower.follow(self._collection, self._seed)
            collector.act()
            sizes.look_ahead()
            self._receive(collector)
        block = collector.drain(name)
        self._follower.add_returns(name, block)
        return block

    def _receive(self, collector: Collector) -> None:
        """Wait for steps, and publish what happened to worker processes meanwhile."""
        has_arrived = False
        while not has_arrived:
            try:
                has_arrived = collector.receive(RECEIVE_SECONDS)
            finally:
                publish_reports(self._pool, self._source.env, (self.spec.name,), self.bus)

    def learn(self, block: Trajectories) -> None:
        """Pass a block to the learner, and act with the weights that result. Raises RlTuiError."""
        behavior, name = self.behavior, self.spec.name
        self._collection.block_sizes[name].count(block.num_rows)
        try:
            behavior.learner.learn_from(block, behavior.policy.state())
        finally:  # also after an update in which a hook raised
            self.act_with_newest()
        self._collection.reporter.publish_due()
        if behavior.learner.is_finished:
            self.finish()
        elif time.monotonic() - self._written_at > WRITE_SECONDS:
            self.write_events()

    def act_with_newest(self) -> None:
        """Weights that were published since."""
        weights = self.behavior.learner.weights.pop()
        if weights is not None:
            self._collection.collector.load(self.spec.name, weights)

    def make_policy(self, is_greedy: bool, seed: int) -> Policy:
        """A policy with the newest weights."""
        settings = self.plan.settings
        network = settings.network_settings.model_copy(update={"deterministic": is_greedy})
        policy = make_policy(self.spec, network, settings.hyperparameters.squashes_actions, seed)
        policy.load(self.behavior.learner.weights.latest.snapshot.weights)
        return policy

    def carry_out(self, command: SaveCheckpoint | ExportPolicy) -> tuple[bool, str]:
        """Whether that was done, and the path of what was written, or why not."""
        self.behavior.learner.commands.append(command)
        self.behavior.learner.serve(may_wait=True)
        self.write_events()
        return self._outcomes.pop(command.id)

    def fail(self, error: RlTuiError) -> None:
        """Training ends because of this; what was learned is saved."""
        if isinstance(error, EnvironmentFailure):
            self.bus.publish(EnvironmentFailed(self.plan.source.env, (self.spec.name,), str(error), error.detail))
        self.behavior.learner.fail(error)
        self.finish()

    def failed_hook(self, error: HookError) -> BaseException:
        """What the hook raised, with everything saved. Training may continue."""
        if isinstance(error, HookStop):
            self.bus.log("info", self.spec.name, str(error))
        else:
            self.behavior.save_traceback(error)
        is_ok, message = self.carry_out(SaveCheckpoint())
        raised = error.__cause__ or error
        raised.add_note(safe_text(f"{error}; {f'saved in {message}' if is_ok else f'not saved: {message}'}"))
        return raised

    def finish(self) -> None:
        """Training has ended, and everything is saved. Harmless when called twice."""
        self.behavior.learner.finish("final" if self.behavior.learner.is_finished else "interrupted")
        self.write_events()

    def write_events(self) -> None:
        """Write what has happened to the run's files, and pass on what it logs."""
        self._written_at = time.monotonic()
        self.logs.write_pending()
        self._pass_on()

    def close(self) -> None:
        """Save everything and give everything back. Harmless when called twice. Raises CheckpointError."""
        leaving, self._leaving = self._leaving, ExitStack()
        leaving.close()
        if leaving_losses := self._saver.losses:
            raise leaving_losses[0]

    def _end(self) -> None:
        """The last checkpoint, and the last state."""
        self.finish()
        self._record.update_status(self._builder.files, has_ended=True)
        learner, losses = self.behavior.learner, self._saver.losses
        if learner.failure is not None:
            self._enter("failed", str(learner.failure), learner.failure.exit_code)
        elif losses:
            self._enter("unsaved", "; ".join(map(str, losses)), CheckpointError.exit_code)
        elif learner.is_finished:
            self._enter("finished", exit_code=0)
        else:
            self._enter("stopped", "everything is saved", 0)

    def _close_logs(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, RlTuiError):
            self._enter("failed", str(error), error.exit_code)
        self.logs.close(is_now=False)
        self.write_events()
        self.logs.close_files()

    def _close_pool(self) -> None:
        """Unless it is the caller's environment."""
        source = self._source
        if not (isinstance(source, GivenSource) and source.is_object):
            self._pool.close()

    def _discard_if_failed(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.folder.discard()

    def _enter(self, state: RunState, reason: str = "", exit_code: int | None = None) -> None:
        self.bus.publish(RunStateChanged(state, reason, exit_code))

    def _report_crash(self, error: BaseException) -> None:
        """In the thread of a writer."""
        self.bus.log("error", "writers", name_and_text(error))

    def _pass_on(self) -> None:
        for envelope in self._mail.drain():
            event = envelope.event
            line = run_state_line(event) if isinstance(event, RunStateChanged) else line_of(event)
            if line is not None:
                is_raised = isinstance(event, RAISED)
                logger.log(logging.INFO if is_raised else LEVELS[line.level], "%s", line.text)

    def _note_outcome(self, command: str, _: str, is_ok: bool, message: str) -> None:
        self._outcomes[command] = is_ok, message


def require_continued(folder: Path, behavior: str) -> None:
    """The folder is new, or holds that behavior. Raises ConfigError: another one would take the run over."""
    held = trained_behaviors(folder)
    if held and behavior not in held:
        must = f"must be {one_of(map(visible, held))}, which {folder} holds, got {visible(behavior)}"
        raise ConfigError(f"behavior: {must}. Choose another folder for another behavior")


def only_spec(plan: LearnerPlan, pool: EnvironmentPool) -> BehaviorSpec:
    """The environment's behavior. Raises NotSupportedError for several, ConfigError for one of another name."""
    env, names = plan.source.env, list(pool.specs)
    if len(names) != 1:
        found = f"has the behaviors {', '.join(names)}" if names else "has no behavior yet"
        raise NotSupportedError(f"env: {env} {found}, and {ONE_BEHAVIOR}")
    if plan.is_named and names[0] != plan.behavior:
        found = f"{env} has no behavior {plan.behavior}, it has {names[0]}."
        raise ConfigError(f"behavior: {found}{suggest(plan.behavior, names)}")
    return pool.specs[names[0]]
