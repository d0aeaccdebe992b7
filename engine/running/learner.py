"""One behavior's learner: trains on blocks of experience, and applies what the user changes or undoes meanwhile."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np

from rl_tui.engine.config.naming import switched_on
from rl_tui.engine.config.types import OFF
from rl_tui.engine.errors import (
    CheckpointError,
    ConfigError,
    PluginError,
    RlTuiError,
    SyncError,
)
from rl_tui.engine.experience import learned_part
from rl_tui.engine.learning.full_memory import needing_memory
from rl_tui.engine.learning.given_weights import GivenWeights
from rl_tui.engine.learning.loss_inputs import CustomLoss
from rl_tui.engine.learning.trainer import Metrics, Trainer, always
from rl_tui.engine.running.checkpoint_parts import CheckpointParts
from rl_tui.engine.running.checkpoint_scheduler import CheckpointScheduler, GatherReplay, SaveContext
from rl_tui.engine.running.evaluation.evaluator import Evaluator
from rl_tui.engine.running.hooks import Hooks, Milestone
from rl_tui.engine.running.learner_hooks import LearnerHooks
from rl_tui.engine.running.life import Life
from rl_tui.engine.running.published_weights import PublishedWeights
from rl_tui.engine.running.ranks.messages import Change, RolledBack
from rl_tui.engine.running.saver import Saver
from rl_tui.engine.running.steps_left import StepsLeft
from rl_tui.engine.running.summaries import LearnerSettings, SummaryReporter
from rl_tui.engine.running.triggers import Action, Trigger
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.command_desk import Report
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
from rl_tui.engine.specs import Int64, Policy, State, Trajectories

N = TypeVar("N", int, Int64)
ENDLESS = 1 << 62  # steps of a policy that only plays
LearnerCommand: TypeAlias = SaveCheckpoint | ExportPolicy | SetHyperparameter | RollBack


def unnoticed(change: Change) -> None:
    """There is no other rank."""


class Learner:
    """Runs in its own thread when `threaded`, else in its collector's. Owns the trainer, the counters, the triggers.

    `learn_from` is called with every block; on several ranks `add` is, and `advance` when they have agreed. on_change:
    called after what other ranks must do, too. Any thread may append to `commands`; `serve` answers them through
    `report`. A roll back changes `step` first, then the first version of `weights`. evaluator: None where the policy
    is not evaluated. halts_run: a hook has ended the whole run. lost: why ranks have not ended an update together.
    """

    def __init__(
        self,
        settings: LearnerSettings,
        parts: CheckpointParts,
        saver: Saver,
        bus: EventBus,
        report: Report,
        step: int,
        evaluator: Evaluator | None = None,
    ):
        self.behavior, self.num_ranks, config = settings.behavior, settings.num_ranks, settings.config
        self.share = settings.share
        self.device = settings.device
        self.step = step
        self.life = Life(step, config.max_steps if settings.is_training else None)
        self.halts_run = False
        self.lost: SyncError | None = None
        self.commands: deque[LearnerCommand] = deque()
        self.evaluator = evaluator
        self.hyperparameters = parts.hyperparameters
        self.metrics: Metrics = {}  # of the newest update of this process
        self.update_seconds = 0.0
        self.num_offline_rows = 0  # that this process has learned from without experience
        self.version_lag = 0  # of the newest experience: how many versions of the weights have followed its own
        self.busy_with: WaitsFor | None = None  # in its thread, which may be that of its environment
        self.trainer: Trainer = parts.trainer
        self.weights = PublishedWeights(self.trainer, step if settings.is_training else None)
        self._settings = settings
        self._parts = parts
        self._saver = saver
        self._bus = bus
        self._report = report
        self._summaries = SummaryReporter(settings, bus)
        self._scheduler = CheckpointScheduler(settings, parts, saver, bus)
        self._evaluations = Trigger(OFF if evaluator is None else evaluator.interval, at_end=True)
        self._summary = Trigger(config.summary_freq)
        self._throughput = Trigger(config.throughput_interval)
        self._hooks = LearnerHooks(self.trainer)
        self.steps_left = StepsLeft(config.max_steps if settings.is_training else ENDLESS, settings.share)
        self.steps_left.restart(step)
        self.on_change: Callable[[Change], None] = unnoticed
        self._restart(step)
        self.add_hooks(settings.hooks)

    def add_hooks(self, hooks: Hooks) -> None:
        """Call these from now on, too. Raises NotSupportedError where the trainer calls none."""
        self._hooks.add(hooks, self.step, learns=self._settings.is_training)
        self._look_ahead()

    def add_loss(self, loss: CustomLoss) -> None:
        """Add this loss to every mini-batch's. Raises ConfigError, NotSupportedError."""
        name = self._hooks.add_loss(loss)
        self._bus.log("info", self.behavior, f"{name} is added to the loss of every mini-batch: updates take longer")

    def remove_hook(self, hook: object) -> None:
        """Call it no more, whatever it was added for. Raises ConfigError where it was not added."""
        self._hooks.remove(hook)

    def gather_replay_by(self, gather: GatherReplay) -> None:
        """On several ranks: every copy of the replay buffer that is to be saved goes through this."""
        self._scheduler.gather_replay = gather

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
        return self.life.stage == "finished"

    @property
    def is_over(self) -> bool:
        """Whether it learns no more: max_steps is reached, a hook has ended the run, or something failed."""
        return self.life.is_over

    @property
    def failure(self) -> RlTuiError | None:
        """What ended it early."""
        return self.life.failure

    @property
    def was_finished(self) -> bool:
        """Whether it had finished before this process, which has changed nothing of it."""
        return self._settings.is_training and not (self.life.has_learned or self.hyperparameters.has_changed)

    @property
    def can_roll_back(self) -> bool:
        """Whether it diverged, and there is a checkpoint from before that it can resume from."""
        return self._settings.is_training and self.life.has_diverged and self._saver.has_good(self.behavior)

    @property
    def is_offline(self) -> bool:
        """Whether `learn_offline` is called instead of `learn_from`."""
        return self._settings.is_training and self._settings.config.hyperparameters.learns_offline

    @property
    def max_steps(self) -> int:
        """Where it ends."""
        return self._settings.config.max_steps

    @property
    def rows_per_update(self) -> int:
        """How many rows an update needs."""
        return self.trainer.rows_per_update

    def rows_left(self, num_rows: int) -> int:
        """Rows until max_steps, after the first `num_rows` that it is given."""
        return self.steps_left.after(num_rows)

    @property
    def num_sampled(self) -> int:
        """Steps of all agents since the beginning of training, also those that are not learned from."""
        return self._parts.num_sampled

    @property
    def num_updates(self) -> int:
        """Updates since the beginning of training."""
        return self.trainer.num_updates

    @property
    def mean_return(self) -> float | None:
        """Over the newest episodes; None before the first has ended."""
        return self._summaries.mean_return

    @needing_memory("training")
    def loss(self, block: Trajectories) -> Metrics:
        """The losses of the current networks on this experience. Changes nothing. Raises OutOfMemory, PluginError."""
        return self.trainer.loss(block)

    def make_policy(self, is_greedy: bool, seed: int) -> Policy:
        """A policy with the newest weights that were published. Raises NotSupportedError, PluginError."""
        policy = self.trainer.policy_maker(seed)(is_greedy)
        policy.load(self.weights.latest.snapshot.weights)
        return policy

    def load_weights(self, arrays: GivenWeights) -> None:
        """Act and learn on with these. Raises ConfigError, NotSupportedError."""
        self.trainer.load_weights(arrays)
        self.life.has_learned = True
        self.weights.replace(self.step)

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
        if self.add(block, policy_state):
            has_all = self._settings.is_training and self.trainer.is_ready()
            self.advance(block.num_learned, block.num_rows, has_all, should_continue, may_continue)

    def learn_offline(
        self, should_continue: Callable[[], bool] = always, may_continue: Callable[[], bool] = always
    ) -> None:
        """One update of a trainer that needs no experience; its rows are steps. As `learn_from`."""
        num_rows = self.offline_rows
        self.num_offline_rows += num_rows
        self.steps_left.count(num_rows)
        self.advance(num_rows, 0, True, should_continue, may_continue)

    def of_all(self, steps: N) -> N:
        """About as many as all ranks have collected when this one has collected so many; of an array, of each."""
        return steps * self.share.denominator // self.share.numerator

    @property
    def offline_rows(self) -> int:
        """From how many rows `learn_offline` learns next."""
        return min(self.trainer.rows_per_update, self.max_steps - self.step)

    @needing_memory("training")
    def add(self, block: Trajectories, policy_state: State) -> bool:
        """Add a block to the trainer, without what is not learned from; False where an abandoned policy has acted in
        it. Raises PluginError."""
        self._parts.policy = policy_state
        if block.policy_version < self.weights.first_version:
            self.steps_left.skip(block.num_learned)
            return False
        start = time.perf_counter()
        self._add(block)
        self.steps_left.count(block.num_learned)
        self.update_seconds += time.perf_counter() - start
        return True

    @needing_memory("training")
    def advance(
        self,
        num_rows: int,
        num_sampled: int,
        updates: bool,
        should_continue: Callable[[], bool] = always,
        may_continue: Callable[[], bool] = always,
    ) -> None:
        """Count rows that were added, learn from them if `updates`, and do what is due. As `learn_from`.

        num_sampled: with those that are not learned from.
        """
        self.step += num_rows
        self._parts.num_sampled += num_sampled
        self.life.has_learned = True
        self.life.reach(self.step)
        start, has_updated = time.perf_counter(), updates
        if has_updated:
            with self._busy("update"):
                self.metrics = self.trainer.update(self.step, may_continue)
            self._summaries.statistics.add(self.metrics)
            self.weights.publish(self.step)
        self.update_seconds += time.perf_counter() - start
        if self.step >= self._due_at or self.is_finished:
            self._do_what_is_due(has_updated, should_continue)
        if has_updated and self.life.stage == "learning" and self._scheduler.deadline.falls_before_next_update():
            self._scheduler.offer_by_clock(self._save_context)

    def _do_what_is_due(self, has_updated: bool, should_continue: Callable[[], bool]) -> None:
        for trigger, action in self._periodic(has_updated, should_continue):
            if self.failure is None:  # an environment may hang during the evaluation
                trigger.fire(self.step, action, self.is_finished)
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Nothing is due before a certain step: most blocks come long before it."""
        self._due_at = min(trigger.due_at for trigger, _ in self._periodic())

    def _periodic(
        self, has_updated: bool = False, should_continue: Callable[[], bool] = always
    ) -> Iterator[tuple[Trigger[int], Action]]:
        """What is done at intervals, in this order: scores are in their summary, and rank their checkpoint.

        has_updated: with the newest block.
        """
        yield self._throughput, lambda _: self._summaries.measure_throughput(self.step)
        yield self._evaluations, lambda _: self._evaluate(has_updated, should_continue)
        yield self._summary, lambda step: self._summaries.publish(step, self.life.stage == "learning")
        for trigger in self._scheduler.triggers:
            yield trigger, lambda _: self._save(has_updated)
        yield from self._hooks.periodic(self._milestone)

    def _add(self, block: Trajectories) -> None:
        learned = learned_part(block)
        if self._settings.is_training and learned is not None:
            self._summaries.statistics.add_samples(self.trainer.add(learned))
            self.version_lag = self.weights.version - block.policy_version
            if self._settings.config.threaded:
                self._summaries.statistics.add({"Policy/Version Lag": float(self.version_lag)})
        self._summaries.add_block(block, learned)

    def add_episodes(self, returns: Sequence[float], lengths: Sequence[int]) -> None:
        """Episodes have ended on other ranks."""
        self._summaries.add_episodes(np.array(returns, np.float32), np.array(lengths, np.int64))

    @contextmanager
    def _busy(self, doing: WaitsFor) -> Iterator[None]:
        self.busy_with = doing
        try:
            yield
        finally:
            self.busy_with = None

    @property
    def _save_context(self) -> SaveContext:
        """Checkpoints are ranked by the newest evaluation, or else by the newest episodes of training; where there is
        neither, by the loss of what is held out. In self-play returns of training rank nothing: opponents change."""
        if self.evaluator is not None and self.evaluator.is_on:
            ranking_return = self.evaluator.ranking_return
        else:
            ranking_return = None if self._settings.league is not None else self._summaries.ranking_return
        return SaveContext(self.step, ranking_return, self.trainer.held_out_loss)

    def _evaluate(self, has_updated: bool, should_continue: Callable[[], bool]) -> bool:
        """Evaluate the policy apart from its training, right after an update or at the end; whether that was done."""
        evaluator, version = self.evaluator, self.weights.version
        may_have_changed = has_updated or self.is_finished
        if evaluator is None or not may_have_changed or not evaluator.can_evaluate(version):
            return False
        with self._busy("evaluation"):
            metrics = evaluator.evaluate(
                self.step, self.weights.newest(), lambda: should_continue() and self.weights.version == version
            )
        self._summaries.statistics.add(metrics)
        return bool(metrics)

    def _save(self, has_updated: bool) -> bool:
        """Right after an update, so that no rows wait that would be lost; the end is saved by `finish`."""
        return has_updated and self.life.stage == "learning" and self._scheduler.offer_due(self._save_context)

    def _milestone(self, multiple: int) -> Milestone:
        evaluated = None if self.evaluator is None else self.evaluator.mean_return
        return Milestone(self.behavior, multiple, self.step, self.num_updates, self.mean_return, evaluated)

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
        if self.life.is_closed or self.is_over:
            return f"{self.behavior} has ended; {switched_on('checkpoint_settings.resume')} continues from a checkpoint"
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
            self.on_change(command)
            self._answer([command.id], True, f"{change} from step {self.step}")

    def _roll_back(self, command: RollBack) -> None:
        """Resume from a checkpoint; where that fails, nothing has changed. A trainer that cannot load it fails."""
        try:
            if self._unchangeable and not self.can_roll_back:
                raise CheckpointError(self._unchangeable)
            path = Path(command.path)
            state, checkpoint = self._saver.roll_back(self.behavior, path, self.trainer.state())
        except (CheckpointError, PluginError) as error:
            self._answer([command.id], False, str(error))
            return
        self.on_change(RolledBack(self.behavior, checkpoint.step, command.path, state))
        try:
            self.roll_back_to(state, checkpoint.step, command.path)
        except PluginError as error:
            self._answer([command.id], False, str(error))
        else:
            self._answer([command.id], True, f"resumed from step {self.step}, {command.path}")

    def roll_back_to(self, state: State, step: int, path: str) -> None:
        """Continue from what the checkpoint of that step holds. Raises PluginError, and has then failed."""
        before, newest, from_step = self.hyperparameters.values, self.weights.version, self.step
        has_failed = self.failure is not None
        try:
            self._parts.restore(state, step)
        except PluginError as error:
            self.life.fail(error, is_half_loaded=True)
            raise
        self.life.begin_again()
        self._restart(step)
        self.steps_left.roll_back(step)
        self.step = step
        self.life.reach(self.step)
        self.weights.abandon(newest)
        self.weights.publish(self.step)
        self._bus.publish(BehaviorRolledBack(self.behavior, self.step, from_step, path))
        self.hyperparameters.publish_changes(before, self.step)
        if has_failed:
            self._bus.publish(BehaviorStateChanged(self.behavior, "training"))

    @property
    def has_ended(self) -> bool:
        """Whether `finish` was called since the start, or since a roll back."""
        return self.life.is_closed

    def fail(self, error: RlTuiError) -> None:
        """Stop learning because of `error`; `finish` saves what has been learned."""
        self.life.fail(error)

    def stop(self, why: str) -> None:
        """Stop learning, and the whole run with it; `finish` saves what has been learned."""
        self.halts_run = True
        self.life.stop()
        self._bus.log("info", self.behavior, why)

    def finish(self, reason: CheckpointReason | None) -> None:
        """Answer the pending commands, save for the last time (unless reason is None) and publish how it ended.

        Does so once; further calls change nothing.
        """
        if self.life.is_closed:
            return
        self.life.is_closed = True
        self.serve(may_wait=True)
        if self.failure is not None:
            reason = "error"
        if self.life.stage == "unsavable":
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
