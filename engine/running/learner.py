"""One behavior's learner: trains on blocks of experience, and applies what the user changes or undoes meanwhile."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

from rl_tui.engine.config.types import OFF
from rl_tui.engine.errors import (
    CheckpointError,
    ConfigError,
    NonFiniteError,
    PluginError,
    RlTuiError,
)
from rl_tui.engine.learning.full_memory import needing_memory
from rl_tui.engine.learning.given_weights import GivenWeights
from rl_tui.engine.learning.loss_inputs import CustomLoss, require_scalar
from rl_tui.engine.learning.train_step import TrainStep, TrainStepHook
from rl_tui.engine.learning.trainer import Metrics, Trainer, always
from rl_tui.engine.running.checkpoint_scheduler import CheckpointScheduler, SaveContext
from rl_tui.engine.running.command_ledger import Report
from rl_tui.engine.running.evaluation.evaluator import Evaluator
from rl_tui.engine.running.hooks import Hooks, Milestone, MilestoneHook, call_hook, hook_name
from rl_tui.engine.running.hyperparameters import LiveHyperparameters
from rl_tui.engine.running.published_weights import PublishedWeights
from rl_tui.engine.running.saver import Saver
from rl_tui.engine.running.summaries import LearnerSettings, SummaryReporter
from rl_tui.engine.running.triggers import Action, Trigger
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import (
    BehaviorRolledBack,
    BehaviorStateChanged,
    CheckpointReason,
    ExportPolicy,
    RollBack,
    SaveCheckpoint,
    SetHyperparameter,
    WaitsFor,
)
from rl_tui.engine.specs import Policy, State, Trajectories
from rl_tui.engine.storage.checkpoint_format import LESSONS

ENDLESS = 1 << 62  # steps of a policy that only plays
LearnerCommand: TypeAlias = SaveCheckpoint | ExportPolicy | SetHyperparameter | RollBack


class Learner:
    """Runs in its own thread when `threaded`, else in its collector's. Owns the trainer, the counters, the triggers.

    `learn_from` is called with every block. Any thread may append to `commands`; `serve` answers them through
    `report`. A roll back changes `step` first, then the first version of `weights`. evaluator: None where the policy
    is not evaluated.
    """

    def __init__(
        self,
        settings: LearnerSettings,
        trainer: Trainer,
        saver: Saver,
        bus: EventBus,
        report: Report,
        step: int,
        policy_state: State,
        evaluator: Evaluator | None = None,
    ):
        self.behavior, config = settings.behavior, settings.config
        self.step = step
        self.failure: RlTuiError | None = None
        self.is_stopped = False  # by a hook, which ends the run
        self.commands: deque[LearnerCommand] = deque()
        self.evaluator = evaluator
        self.metrics: Metrics = {}  # of the newest update of this process
        self.update_seconds = 0.0
        self.busy_with: WaitsFor | None = None  # in its thread, which may be that of its environment
        self._settings = settings
        self._trainer = trainer
        self.hyperparameters = LiveHyperparameters(self.behavior, self._trainer, config.hyperparameters, bus)
        self.weights = PublishedWeights(self._trainer, step if settings.is_training else None)
        self._saver = saver
        self._bus = bus
        self._report = report
        self._summaries = SummaryReporter(settings, bus)
        self._scheduler = CheckpointScheduler(
            self.behavior, config, self._trainer, self.hyperparameters, saver, bus, settings.clock, settings.lessons
        )
        self._evaluations = Trigger(OFF if evaluator is None else evaluator.interval, at_end=True)
        self._summary = Trigger(config.summary_freq)
        self._throughput = Trigger(config.throughput_interval)
        self._own: list[tuple[Trigger[int], MilestoneHook]] = []
        self._after_train_steps: list[TrainStepHook] = []
        self._losses: list[tuple[CustomLoss, CustomLoss]] = []  # with how the trainer calls them
        self._has_registered = False  # these with the trainer
        self._has_updated = False  # with the newest block
        self._has_learned = not self.is_finished  # what its last checkpoint may lack
        self._origin = step  # `step` less the rows of all blocks that came
        self._policy_state = policy_state
        self._has_ended = False
        self._is_half_loaded = False  # its trainer has loaded half a state, which must not be saved
        self._restart(step)
        self.add_hooks(settings.hooks)

    def add_hooks(self, hooks: Hooks) -> None:
        """Call these from now on, too. Raises NotSupportedError where the trainer calls none."""
        for interval, hook in hooks.every:
            trigger = Trigger(interval)
            trigger.restart(self.step)
            self._own.append((trigger, hook))
        self._look_ahead()
        for each in hooks.on_train_step if self._settings.is_training else ():
            if not self._has_registered:
                self._trainer.on_train_step(partial(_call_each, self._after_train_steps))
                self._has_registered = True
            self._after_train_steps.append(each)

    def add_loss(self, loss: CustomLoss) -> None:
        """Add this loss to every mini-batch's. Raises ConfigError, NotSupportedError."""
        name = hook_name(loss, "on_loss")
        called = partial(call_hook, require_scalar(loss))
        self._trainer.on_loss(called)
        self._losses.append((loss, called))
        self._bus.log("info", self.behavior, f"{name} is added to the loss of every mini-batch: updates take longer")

    def remove_hook(self, hook: object) -> None:
        """Call it no more, whatever it was added for. Raises ConfigError where it was not added."""
        kept = [own for own in self._own if own[1] != hook]
        after = [own for own in self._after_train_steps if own != hook]
        gone = [own for own in self._losses if own[0] == hook]
        for own in gone:
            self._losses.remove(own)
            self._trainer.remove_loss(own[1])
        if not gone and len(kept) + len(after) == len(self._own) + len(self._after_train_steps):
            raise ConfigError(f"hook: must be one that was added, got {hook!r}")
        self._own[:], self._after_train_steps[:] = kept, after

    def _restart(self, step: int) -> None:
        """Everything counts on from here."""
        self._summaries.restart()
        if self.evaluator is not None:
            self.evaluator.restart()
        for trigger, _ in self._periodic():
            trigger.restart(step)
        self._scheduler.deadline.restart()
        self._look_ahead()

    @property
    def is_finished(self) -> bool:
        """Whether max_steps is reached. A policy that only plays is never finished."""
        return self._settings.is_training and self.step >= self._settings.config.max_steps

    @property
    def max_steps(self) -> int:
        """Where it ends."""
        return self._settings.config.max_steps

    @property
    def _is_learning(self) -> bool:
        return self._settings.is_training and not self.is_finished

    @property
    def was_finished(self) -> bool:
        """Whether it had finished before this process, which has changed nothing of it."""
        return self._settings.is_training and not (self._has_learned or self.hyperparameters.has_changed)

    @property
    def is_over(self) -> bool:
        """Whether it learns no more: max_steps is reached, a hook has ended the run, or something failed."""
        return self.is_finished or self.is_stopped or self.failure is not None

    @property
    def can_roll_back(self) -> bool:
        """Whether it diverged, and there is a checkpoint from before that it can resume from."""
        is_divergence = self._settings.is_training and isinstance(self.failure, NonFiniteError)
        return is_divergence and self._saver.has_good(self.behavior)

    @property
    def rows_per_update(self) -> int:
        """How many rows an update needs."""
        return self._trainer.rows_per_update

    @property
    def num_updates(self) -> int:
        """Updates since the beginning of training."""
        return self._trainer.num_updates

    @property
    def mean_return(self) -> float | None:
        """Over the newest episodes; None before the first has ended."""
        return self._summaries.mean_return

    @needing_memory("training")
    def loss(self, block: Trajectories) -> Metrics:
        """The losses of the current networks on this experience. Changes nothing. Raises OutOfMemory, PluginError."""
        return self._trainer.loss(block)

    @property
    def trainer(self) -> Trainer:
        """What it trains with."""
        return self._trainer

    def make_policy(self, is_greedy: bool, seed: int) -> Policy:
        """A policy with the newest weights that were published. Raises NotSupportedError, PluginError."""
        policy = self._trainer.policy_maker(seed)(is_greedy)
        policy.load(self.weights.latest.snapshot.weights)
        return policy

    def load_weights(self, arrays: GivenWeights) -> None:
        """Act and learn on with these. Raises ConfigError, NotSupportedError."""
        self._trainer.load_weights(arrays)
        self._has_learned = True
        self.weights.replace(self.step)

    def steps_left(self, num_rows: int) -> int:
        """How many steps of max_steps are left after the first `num_rows` rows that it is given. Any thread."""
        return self._settings.config.max_steps - self._origin - num_rows if self._settings.is_training else ENDLESS

    def skip(self, num_rows: int) -> None:
        """These rows came while it was over and are no steps of it."""
        self._origin -= num_rows

    def recount(self) -> None:
        """The rows that it is given are counted from zero again."""
        self._origin = self.step

    @needing_memory("training")
    def learn_from(
        self,
        block: Trajectories,
        policy_state: State,
        should_continue: Callable[[], bool] = always,
        may_continue: Callable[[], bool] = always,
    ) -> None:
        """Learn from a block, unless an abandoned policy has acted in it; new weights go to `weights`.

        policy_state: the acting policy's generator, saved with the next checkpoint. should_continue: a safe point,
        called at every step of an evaluation, which ends when it returns False. may_continue: the same between
        mini-batches, see Trainer.update. Raises HookError, NonFiniteError, OutOfMemory, PluginError.
        """
        self._policy_state = policy_state
        if block.policy_version < self.weights.first_version:
            self._origin -= block.num_rows
            return
        start = time.perf_counter()
        self._add(block)
        self._has_updated = self._settings.is_training and self._trainer.is_ready()
        if self._has_updated:
            with self._busy("update"):
                self.metrics = self._trainer.update(self.step, may_continue)
            self._summaries.statistics.add(self.metrics)
            self.weights.publish(self.step)
        self.update_seconds += time.perf_counter() - start
        if self.step >= self._due_at or self.is_finished:
            self._do_what_is_due(should_continue)
        may_save = self._has_updated and self._is_learning and self.failure is None
        if may_save and self._scheduler.deadline.falls_before_next_update():
            self._scheduler.offer_by_clock(self._save_context)

    def _do_what_is_due(self, should_continue: Callable[[], bool]) -> None:
        for trigger, action in self._periodic(should_continue):
            if self.failure is None:  # an environment may hang during the evaluation
                trigger.fire(self.step, action, self.is_finished)
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Nothing is due before a certain step: most blocks come long before it."""
        self._due_at = min(trigger.due_at for trigger, _ in self._periodic())

    def _periodic(self, should_continue: Callable[[], bool] = always) -> Iterator[tuple[Trigger[int], Action]]:
        """What is done at intervals, in this order: scores are in their summary, and rank their checkpoint."""
        yield self._throughput, lambda _: self._summaries.measure_throughput(self.step)
        yield self._evaluations, lambda _: self._evaluate(should_continue)
        yield self._summary, lambda step: self._summaries.publish(step, self._is_learning)
        for trigger in self._scheduler.triggers:
            yield trigger, self._save
        for trigger, hook in tuple(self._own):
            if (trigger, hook) in self._own:  # an earlier one may have removed it
                yield trigger, partial(self._call, trigger, hook)

    def _add(self, block: Trajectories) -> None:
        if self._settings.is_training:
            self._summaries.statistics.add_samples(self._trainer.add(block))
            if self._settings.config.threaded:
                self._summaries.statistics.add(
                    {"Policy/Version Lag": float(self.weights.version - block.policy_version)}
                )
        self._summaries.add_block(block)
        self.step += block.num_rows
        self._has_learned = True

    @contextmanager
    def _busy(self, doing: WaitsFor) -> Iterator[None]:
        self.busy_with = doing
        try:
            yield
        finally:
            self.busy_with = None

    @property
    def _save_context(self) -> SaveContext:
        """Checkpoints are ranked by the newest evaluation, or else by the newest episodes of training."""
        ranking = self.evaluator if self.evaluator is not None and self.evaluator.is_on else self._summaries
        return SaveContext(self.step, self._policy_state, ranking.ranking_return)

    def _evaluate(self, should_continue: Callable[[], bool]) -> bool:
        """Evaluate the policy apart from its training, right after an update or at the end; whether that was done."""
        evaluator, version = self.evaluator, self.weights.version
        may_have_changed = self._has_updated or self.is_finished
        if evaluator is None or not may_have_changed or not evaluator.can_evaluate(version):
            return False
        with self._busy("evaluation"):
            metrics = evaluator.evaluate(
                self.step, self.weights.newest(), lambda: should_continue() and self.weights.version == version
            )
        self._summaries.statistics.add(metrics)
        return bool(metrics)

    def _save(self, _: int) -> bool:
        """Right after an update, so that no rows wait that would be lost; the end is saved by `finish`."""
        return self._has_updated and self._is_learning and self._scheduler.offer_due(self._save_context)

    def _call(self, trigger: Trigger[int], hook: MilestoneHook, multiple: int) -> None:
        trigger.restart(self.step)  # one that raises is not called again for the same multiple
        evaluated = None if self.evaluator is None else self.evaluator.mean_return
        call_hook(hook, Milestone(self.behavior, multiple, self.step, self.num_updates, self.mean_return, evaluated))

    def serve(self, may_wait: bool = False) -> None:
        """Answer the pending commands in their order.

        While the saver has no room, those for it and what follows stay pending, unless `may_wait`: training does not
        wait for a disk, except to roll back.
        """
        if not self.commands:
            return
        pending = deque(self.commands.popleft() for _ in range(len(self.commands)))
        while pending:
            match pending[0]:
                case SetHyperparameter() as command:
                    pending.popleft()
                    self._set(command)
                case RollBack() as command:
                    pending.popleft()
                    self._roll_back(command)
                case SaveCheckpoint() | ExportPolicy() as command if not self._settings.is_training:
                    pending.popleft()
                    self._answer([command.id], False, self._unchangeable)
                case _ if may_wait or self._saver.has_room:
                    self._serve_saves(pending)
                case _:
                    self.commands.extendleft(reversed(pending))
                    return

    def _serve_saves(self, pending: deque[LearnerCommand]) -> None:
        """One copy of the state serves all commands of a kind, up to the first that writes no file."""
        requested: dict[type, list[str]] = {SaveCheckpoint: [], ExportPolicy: []}
        while pending and type(pending[0]) in requested:
            command = pending.popleft()
            requested[type(command)].append(command.id)
        for kind, ids in requested.items():
            if ids:
                try:
                    self._scheduler.put_requested(self._save_context, ids, with_state=kind is SaveCheckpoint)
                except PluginError as error:
                    self.fail(error)
                    self._answer(ids, False, str(error))

    def _answer(self, commands: list[str], is_ok: bool, message: str) -> None:
        for command in commands:
            self._report(command, self.behavior, is_ok, message)

    @property
    def _unchangeable(self) -> str:
        """Why nothing of this behavior's training can be changed; "" when it can."""
        if not self._settings.is_training:
            return f"{self.behavior} only plays"
        if self._has_ended or self.is_over:
            return f"{self.behavior} has ended; --resume continues from a checkpoint"
        return ""

    def _set(self, command: SetHyperparameter) -> None:
        try:
            if self._unchangeable:
                raise ConfigError(self._unchangeable)
            change = self.hyperparameters.set(command.name, command.value, self.step)
        except (ConfigError, PluginError) as error:
            if isinstance(error, PluginError):
                self.fail(error)
            self._answer([command.id], False, str(error))
        else:
            self._answer([command.id], True, f"{change} from step {self.step}")

    def _roll_back(self, command: RollBack) -> None:
        """Resume from a checkpoint; where that fails, nothing has changed. A trainer that cannot load it fails."""
        try:
            if self._unchangeable and not self.can_roll_back:
                raise CheckpointError(self._unchangeable)
            path = Path(command.path)
            before = self.hyperparameters.values
            state, checkpoint = self._saver.roll_back(self.behavior, path, self._trainer.state())
        except (CheckpointError, PluginError) as error:
            self._answer([command.id], False, str(error))
            return
        newest, from_step = self.weights.version, self.step
        try:
            self._trainer.load(state.part("trainer"))
        except PluginError as error:
            self._is_half_loaded = True
            self.fail(error)
            self._answer([command.id], False, str(error))
            return
        if (lessons := self._settings.lessons) is not None:
            lessons.follow_roll_back(self.behavior, state.part(LESSONS), checkpoint.step, self.max_steps)
        has_failed, self.failure, self._has_ended = self.failure is not None, None, False
        self._restart(checkpoint.step)
        self._origin += checkpoint.step - self.step
        self.step = checkpoint.step
        self.weights.abandon(newest)
        self.weights.publish(self.step)
        self._bus.publish(BehaviorRolledBack(self.behavior, self.step, from_step, command.path))
        try:
            self.hyperparameters.restore(state)
            self.hyperparameters.publish_changes(before, self.step)
        except PluginError as error:
            self.fail(error)
            self._answer([command.id], False, str(error))
            return
        if has_failed:
            self._bus.publish(BehaviorStateChanged(self.behavior, "training"))
        self._answer([command.id], True, f"resumed from step {self.step}, {command.path}")

    @property
    def has_ended(self) -> bool:
        """Whether `finish` was called since the start, or since a roll back."""
        return self._has_ended

    def fail(self, error: RlTuiError) -> None:
        """Stop learning because of `error`; `finish` saves what has been learned."""
        self.failure = self.failure or error

    def stop(self, why: str) -> None:
        """Stop learning, and the whole run with it; `finish` saves what has been learned."""
        self.is_stopped = True
        self._bus.log("info", self.behavior, why)

    def finish(self, reason: CheckpointReason | None) -> None:
        """Answer the pending commands, save for the last time (unless reason is None) and publish how it ended.

        Does so once; further calls change nothing.
        """
        if self._has_ended:
            return
        self._has_ended = True
        self.serve(may_wait=True)
        if self.failure is not None:
            reason = "error"
        if self._is_half_loaded:
            self._saver.report_unsaved(self.behavior, self.step)
        elif reason is not None and self._settings.is_training and not self.was_finished:
            try:
                self._scheduler.put_final(self._save_context, reason)
            except PluginError as error:
                self.fail(error)
                self._scheduler.put_rest(self._save_context)
        if self.evaluator is not None:
            self.evaluator.close()
        if self.failure is not None:
            failed = BehaviorStateChanged(self.behavior, "failed", str(self.failure), self.can_roll_back)
            self._bus.publish(failed)
        else:
            self._bus.publish(BehaviorStateChanged(self.behavior, "finished" if self.is_finished else "stopped"))


def _call_each(hooks: list[TrainStepHook], step: TrainStep) -> None:
    """Call them. No method: a trainer that refers to its learner would keep it in memory after the end of a run."""
    for hook in tuple(hooks):
        if hook in hooks:  # an earlier one may have removed it
            call_hook(hook, step)
