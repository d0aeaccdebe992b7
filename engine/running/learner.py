"""One behavior's trainer: when what it learned is told and saved, and what is changed or undone while it trains."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.run import metric_tag
from rl_tui.engine.errors import CheckpointError, ConfigError, NonFiniteError, RlTuiError
from rl_tui.engine.learning.trainer import Trainer, always
from rl_tui.engine.running.checkpoint_scheduler import HYPERPARAMETERS, CheckpointScheduler, SaveContext
from rl_tui.engine.running.commands import Report
from rl_tui.engine.running.evaluation.evaluator import Evaluator
from rl_tui.engine.running.hyperparameters import LiveHyperparameters, ranges
from rl_tui.engine.running.latest_policy import LatestPolicy, PolicySnapshot
from rl_tui.engine.running.saver import Saver
from rl_tui.engine.running.statistics import SummaryStatistics, histogram
from rl_tui.engine.running.triggers import IntervalTrigger
from rl_tui.engine.running.workers import Mailbox
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import (
    BehaviorRolledBack,
    BehaviorStateChanged,
    CheckpointReason,
    ExportPolicy,
    HyperparameterChanged,
    HyperparametersReported,
    LogEmitted,
    MetricsReported,
    RollBack,
    SaveCheckpoint,
    SetHyperparameter,
    WaitsFor,
)
from rl_tui.engine.session.returns import RECENT_EPISODES
from rl_tui.engine.specs import Measured, State, Trajectories, Weights

ENDLESS = 1 << 62  # steps of a policy that only plays
LearnerCommand: TypeAlias = SaveCheckpoint | ExportPolicy | SetHyperparameter | RollBack


@dataclass(frozen=True, slots=True)
class LearnerSettings:
    """What the run decides for a learner."""

    behavior: str
    config: BehaviorConfig
    is_training: bool
    started_at: float  # monotonic seconds at the start of the run
    metrics: tuple[str, ...] = ()  # keys of info that become statistics


@dataclass(slots=True)
class _Since:
    """What counts from where training began, was resumed or was rolled back to."""

    summaries: IntervalTrigger
    statistics: SummaryStatistics = field(default_factory=SummaryStatistics)
    returns: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT_EPISODES))
    has_told_departed: bool = False


class Learner:
    """Lives in its own thread when `threaded`, else in its collector's. Owns the trainer, the counters, the triggers.

    `learn_from` is called with every block. Commands may be left in `commands` from any thread; `serve` answers them.
    first_version: the oldest policy whose experience is learned from; it grows with every roll back, after `step` has
    changed. evaluator: None where the policy is not measured apart from its training.
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
        self.behavior = settings.behavior
        self.step = step
        self.failure: RlTuiError | None = None
        self.commands: deque[LearnerCommand] = deque()
        self.weights: Mailbox[Weights] = Mailbox()
        self.latest_policy = LatestPolicy(PolicySnapshot(trainer.weights(), step if settings.is_training else None))
        self.first_version = 0
        self.hyperparameters = LiveHyperparameters(trainer)
        self.evaluator = evaluator
        if evaluator is not None:
            evaluator.restart(step)
        self.update_seconds = 0.0
        self.busy_with: WaitsFor | None = None  # in its thread, which may be that of its environment
        self._settings = settings
        self._trainer = trainer
        self._saver = saver
        self._bus = bus
        self._report = report
        self._scheduler = CheckpointScheduler(
            self.behavior, settings.config, trainer, self.hyperparameters, saver, step
        )
        self._since = _Since(IntervalTrigger(settings.config.summary_freq, step))
        self._version_ahead = 0  # of the trainer's own count, which a roll back lets begin again
        self._origin = step  # `step` less the rows of all blocks that came
        self._policy_state = policy_state
        self._has_told_end = False
        self._unmeasured = set(settings.metrics)  # keys that no info had so far

    @property
    def is_finished(self) -> bool:
        """Whether max_steps is reached. A policy that only plays is never finished."""
        return self._settings.is_training and self.step >= self._settings.config.max_steps

    @property
    def is_over(self) -> bool:
        """Whether it learns no more: max_steps is reached, or something failed."""
        return self.is_finished or self.failure is not None

    @property
    def can_roll_back(self) -> bool:
        """Whether it diverged, and has learned something before that it may go on from."""
        is_divergence = self._settings.is_training and isinstance(self.failure, NonFiniteError)
        return is_divergence and self._saver.has_good(self.behavior)

    def skip(self, num_rows: int) -> None:
        """So many rows came while it was over: they are no steps of it."""
        self._origin -= num_rows

    def recount(self) -> None:
        """The rows that it is given are counted anew from here."""
        self._origin = self.step

    def steps_left(self, num_rows: int) -> int:
        """How many steps are left of max_steps after the first so many rows that it is given. Any thread."""
        return self._settings.config.max_steps - self._origin - num_rows if self._settings.is_training else ENDLESS

    @property
    def rows_per_update(self) -> int:
        """An update comes when at least so many rows are there."""
        return self._trainer.rows_per_update

    @property
    def num_updates(self) -> int:
        """Updates since the beginning of training."""
        return self._trainer.num_updates

    def learn_from(
        self,
        block: Trajectories,
        policy_state: State,
        may_go_on: Callable[[], bool] = always,
        may_continue: Callable[[], bool] = always,
    ) -> None:
        """Learn from a block, unless a given-up policy has acted in it; weights that come of it are left in `weights`.

        policy_state: the acting policy's generator, saved with the next checkpoint. may_go_on: a safe point, come to at
        every step of an evaluation, which ends when it says no. may_continue: the same between mini-batches, see
        Trainer.update. Raises NonFiniteError.
        """
        self._policy_state = policy_state
        if block.policy_version < self.first_version:
            self._origin -= block.num_rows
            return
        self._tell_departed(len(block.departed))
        has_updated, statistics = False, self._since.statistics
        start = time.perf_counter()
        if self._settings.is_training:
            statistics.add_samples(self._trainer.add(block))
            if self._settings.config.threaded:
                statistics.add({"Policy/Version Lag": float(self._version - block.policy_version)})
        self.step += block.num_rows
        statistics.add_episodes(block.episode_returns, block.episode_lengths)
        self._measure(block.measured)
        self._since.returns.extend(block.episode_returns.tolist())
        if self._settings.is_training and self._trainer.is_ready():
            with self._busy("update"):
                statistics.add(self._trainer.update(self.step, may_continue))
            self._put_weights()
            has_updated = True
        self.update_seconds += time.perf_counter() - start
        if has_updated or self.is_finished:
            self._evaluate_if_due(may_go_on)
        if self.failure is not None:  # given up meanwhile: an environment hung
            return
        mark = self._since.summaries.fires(self.step)
        if mark is not None:
            self._summarize(mark)
        if has_updated and not self.is_finished:
            self._scheduler.offer_due(self._save_context)

    @contextmanager
    def _busy(self, doing: WaitsFor) -> Iterator[None]:
        self.busy_with = doing
        try:
            yield
        finally:
            self.busy_with = None

    def _measure(self, measured: Measured) -> None:
        """Count the statistics that are wanted of what the environment reports."""
        wanted = {key: measured[key] for key in self._settings.metrics if key in measured}
        self._since.statistics.add_measured({metric_tag(key): number for key, number in wanted.items()})
        self._unmeasured -= wanted.keys()

    def _tell_unmeasured(self) -> None:
        """Once: a key that no info had so far is probably misspelled."""
        for key in sorted(self._unmeasured):
            message = f"env_settings.metrics: no info had a number under {key!r} so far"
            self._bus.publish(LogEmitted("warning", self.behavior, message))
        self._unmeasured.clear()

    def _tell_departed(self, num_agents: int) -> None:
        """Once: in a world in which agents leave like that, they do so all the time."""
        if not num_agents or self._since.has_told_departed:
            return
        self._since.has_told_departed = True
        what = "1 agent has" if num_agents == 1 else f"{num_agents} agents have"
        message = f"{what} left without the end of an episode; their unfinished steps were dropped"
        self._bus.publish(LogEmitted("warning", self.behavior, message))

    @property
    def _version(self) -> int:
        """Of the newest weights; no two that were ever put have the same."""
        return self._trainer.num_updates + self._version_ahead

    def _put_weights(self) -> None:
        weights = self._newest_weights()
        self.weights.put(weights)
        self.latest_policy.snapshot = PolicySnapshot(weights, self.step)

    def _newest_weights(self) -> Weights:
        return replace(self._trainer.weights(), version=self._version)

    @property
    def _save_context(self) -> SaveContext:
        """The newest evaluation ranks checkpoints, or else the newest episodes of training."""
        mean_return = float(np.mean(self._since.returns)) if self._since.returns else None
        if self.evaluator is not None and self.evaluator.is_on:
            mean_return = self.evaluator.mean_return
        return SaveContext(self.step, self._policy_state, mean_return)

    def _evaluate_if_due(self, may_go_on: Callable[[], bool]) -> None:
        """Measure the policy apart from its training, after every interval and at the end."""
        version = self._version
        if self.evaluator is None or not self.evaluator.is_due(self.step, version, self.is_finished):
            return
        with self._busy("evaluation"):
            metrics = self.evaluator.evaluate(
                self.step, self._newest_weights(), lambda: may_go_on() and self._version == version
            )
        self._since.statistics.add(metrics)

    def _summarize(self, mark: int) -> None:
        self._tell_unmeasured()
        summary = self._since.statistics.flush()
        returns = summary.returns
        self._bus.publish(
            MetricsReported(
                behavior=self.behavior,
                step=mark,
                elapsed_seconds=time.monotonic() - self._settings.started_at,
                metrics=summary.metrics,
                mean_return=float(returns.mean()) if len(returns) else None,
                std_return=float(returns.std()) if len(returns) else None,
                returns=histogram(returns),
                is_training=self._settings.is_training and not self.is_finished,
                counts=summary.counts,
            )
        )

    def serve(self, may_wait: bool = False) -> None:
        """Answer the commands that have been left so far, in their order.

        While the saver has no room, those for it and what follows stay where they are, unless `may_wait`: training does
        not wait for a disk, but to roll back.
        """
        if not self.commands:
            return
        left = deque(self.commands.popleft() for _ in range(len(self.commands)))
        while left:
            match left[0]:
                case SetHyperparameter() as command:
                    left.popleft()
                    self._set(command)
                case RollBack() as command:
                    left.popleft()
                    self._roll_back(command)
                case SaveCheckpoint() | ExportPolicy() as command if not self._settings.is_training:
                    left.popleft()
                    self._report(command.id, self.behavior, False, self._unchangeable)
                case _ if may_wait or self._saver.has_room:
                    self._serve_saves(left)
                case _:
                    self.commands.extendleft(reversed(left))
                    return

    def _serve_saves(self, left: deque[LearnerCommand]) -> None:
        """One copy of the state answers all commands of a kind, up to the first that is for no file."""
        asked: dict[type, list[str]] = {SaveCheckpoint: [], ExportPolicy: []}
        while left and type(left[0]) in asked:
            command = left.popleft()
            asked[type(command)].append(command.id)
        for kind, ids in asked.items():
            if ids:
                self._scheduler.put_requested(
                    self._save_context, partial(self._report_all, ids), with_state=kind is SaveCheckpoint
                )

    def _report_all(self, commands: list[str], is_ok: bool, message: str) -> None:
        for command in commands:
            self._report(command, self.behavior, is_ok, message)

    @property
    def _unchangeable(self) -> str:
        """Why nothing of this behavior's training can be changed; "" when it can."""
        if not self._settings.is_training:
            return f"{self.behavior} only plays"
        if self._has_told_end or self.is_over:
            return f"{self.behavior} has ended; --resume goes on from a checkpoint"
        return ""

    def _set(self, command: SetHyperparameter) -> None:
        before = self.hyperparameters.values
        try:
            if self._unchangeable:
                raise ConfigError(self._unchangeable)
            self.hyperparameters.set(command.name, command.value)
        except ConfigError as error:
            self._report(command.id, self.behavior, False, str(error))
            return
        self._tell_changes(before)
        change = f"{before[command.name]:.6g} -> {self.hyperparameters.values[command.name]:.6g}"
        self._report(command.id, self.behavior, True, f"{command.name} {change} from step {self.step}")

    def _tell_changes(self, before: Mapping[str, float]) -> None:
        for name, value in self.hyperparameters.values.items():
            if value != before[name]:
                self._bus.publish(HyperparameterChanged(self.behavior, self.step, name, before[name], value))
        self.tell_hyperparameters()

    def tell_hyperparameters(self) -> None:
        """Tell what may be changed, unless the policy only plays."""
        if self._settings.is_training:
            values = dict(self.hyperparameters.values)
            allowed = ranges(self._settings.config.hyperparameters, values)
            self._bus.publish(HyperparametersReported(self.behavior, values, allowed))

    def restore_hyperparameters(self, state: State) -> None:
        """Use what was set while training, as a checkpoint's whole state tells it, and say so."""
        for line in self.hyperparameters.restore(state.part(HYPERPARAMETERS)):
            self.log(line)

    def _roll_back(self, command: RollBack) -> None:
        """Go on from a checkpoint; when that cannot be, as if nothing had been asked."""
        try:
            if self._unchangeable and not self.can_roll_back:
                raise CheckpointError(self._unchangeable)
            path = Path(command.path)
            state, checkpoint = self._saver.roll_back(self.behavior, path, self._trainer.state())
        except CheckpointError as error:
            self._report(command.id, self.behavior, False, str(error))
            return
        has_failed, self.failure, self._has_told_end = self.failure is not None, None, False
        newest, from_step, before = self._version, self.step, self.hyperparameters.values
        self._trainer.load(state.part("trainer"))
        self._since = _Since(IntervalTrigger(self._settings.config.summary_freq, checkpoint.step))
        self._scheduler.restart(checkpoint.step)
        if self.evaluator is not None:
            self.evaluator.restart(checkpoint.step)
        self._version_ahead = newest + 1 - self._trainer.num_updates
        self._origin += checkpoint.step - self.step
        self.step = checkpoint.step
        self.first_version = self._version
        self._put_weights()
        self._bus.publish(BehaviorRolledBack(self.behavior, self.step, from_step, command.path))
        self.restore_hyperparameters(state)
        self._tell_changes(before)
        if has_failed:
            self._bus.publish(BehaviorStateChanged(self.behavior, "training"))
        self._report(command.id, self.behavior, True, f"goes on from step {self.step}, {command.path}")

    def fail(self, error: RlTuiError) -> None:
        """Stop learning because of `error`; `finish` will save what is there."""
        self.failure = self.failure or error

    def finish(self, reason: CheckpointReason | None) -> None:
        """Answer what was asked, save for the last time (unless reason is None) and tell how the behavior ended.

        Does so once; further calls change nothing.
        """
        if self._has_told_end:
            return
        self._has_told_end = True
        self.serve(may_wait=True)
        if self.failure is not None:
            reason = "error"
        if reason is not None and self._settings.is_training:
            self._scheduler.put_final(self._save_context, reason)
        if self.evaluator is not None:
            self.evaluator.close()
        if self.failure is not None:
            failed = BehaviorStateChanged(self.behavior, "failed", str(self.failure), self.can_roll_back)
            self._bus.publish(failed)
        else:
            self._bus.publish(BehaviorStateChanged(self.behavior, "finished" if self.is_finished else "stopped"))

    def log(self, message: str) -> None:
        """One line in the run's log."""
        self._bus.publish(LogEmitted("info", self.behavior, message))
