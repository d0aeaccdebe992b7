"""One behavior's trainer, and when what it learned is told and saved."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass

import numpy as np

from engine.errors import RlTuiError
from engine.learning.trainers.base import Trainer
from engine.running.saver import SaveJob, Saver
from engine.running.statistics import SummaryStatistics, histogram
from engine.running.triggers import IntervalTrigger
from engine.running.workers import Mailbox
from engine.session.bus import EventBus
from engine.session.messages import (
    BehaviorStateChanged,
    CheckpointReason,
    ExportPolicy,
    LogEmitted,
    MetricsReported,
    SaveCheckpoint,
)
from engine.settings import BehaviorConfig
from engine.specs import State, Trajectories, Weights

RECENT_EPISODES = 100  # over which the field reports a policy's return; ranks checkpoints


@dataclass(frozen=True, slots=True)
class LearnerSettings:
    """What the run decides for a learner."""

    behavior: str
    config: BehaviorConfig
    is_training: bool
    started_at: float  # monotonic seconds at the start of the run


class Learner:
    """Lives in its own thread when `threaded`, else in its collector's. Owns the trainer, the counters, the triggers.

    `take` is called with every block. Commands may be left in `commands` from any thread; `serve` answers them.
    """

    def __init__(
        self, settings: LearnerSettings, trainer: Trainer, saver: Saver, bus: EventBus, step: int, policy_state: State
    ):
        config = settings.config
        self.behavior = settings.behavior
        self.step = step
        self.failure: RlTuiError | None = None
        self.commands: deque[SaveCheckpoint | ExportPolicy] = deque()
        self.weights: Mailbox[Weights] = Mailbox()
        self.update_seconds = 0.0
        self._settings = settings
        self._trainer = trainer
        self._saver = saver
        self._bus = bus
        self._summaries = IntervalTrigger(config.summary_freq, step)
        self._checkpoints = IntervalTrigger(config.checkpoint_interval, step)
        self._checkpoint_is_due = False
        self._statistics = SummaryStatistics()
        self._recent: deque[float] = deque(maxlen=RECENT_EPISODES)
        self._policy_state = policy_state
        self._has_told_end = False

    @property
    def is_finished(self) -> bool:
        """Whether max_steps is reached. A policy that only plays is never finished."""
        return self._settings.is_training and self.step >= self._settings.config.max_steps

    @property
    def is_over(self) -> bool:
        """Whether it learns no more: max_steps is reached, or something failed."""
        return self.is_finished or self.failure is not None

    @property
    def rows_per_update(self) -> int:
        """An update comes when at least so many rows are there."""
        return self._trainer.rows_per_update

    @property
    def num_updates(self) -> int:
        """Updates since the beginning of training."""
        return self._trainer.num_updates

    def take(self, block: Trajectories, policy_state: State) -> None:
        """Learn from a block; weights that come of it are left in `weights`.

        policy_state: the acting policy's generator, saved with the next checkpoint. Raises NonFiniteError.
        """
        self._policy_state = policy_state
        has_updated = False
        start = time.perf_counter()
        if self._settings.is_training:
            self._statistics.add(self._trainer.add(block))
            if self._settings.config.threaded:
                lag = self._trainer.num_updates - block.policy_version
                self._statistics.add({"Policy/Version Lag": float(lag)})
        self.step += block.num_rows
        self._statistics.add_episodes(block.episode_returns, block.episode_lengths)
        self._recent.extend(block.episode_returns.tolist())
        if self._settings.is_training and self._trainer.is_ready():
            self._statistics.add(self._trainer.update(self.step))
            self.weights.put(self._trainer.weights())
            has_updated = True
        self.update_seconds += time.perf_counter() - start
        mark = self._summaries.fires(self.step)
        if mark is not None:
            self._summarize(mark)
        if has_updated:
            self._save_if_due()

    def _save_if_due(self) -> None:
        """Offer a checkpoint when an update has crossed its mark; while another waits, at the next update again."""
        self._checkpoint_is_due |= self._checkpoints.fires(self.step) is not None
        if self._checkpoint_is_due and not self.is_finished:
            self._checkpoint_is_due = not self._saver.offer(self._job("interval"))

    def _summarize(self, mark: int) -> None:
        metrics, returns = self._statistics.take()
        self._bus.publish(
            MetricsReported(
                behavior=self.behavior,
                step=mark,
                elapsed_seconds=time.monotonic() - self._settings.started_at,
                metrics=metrics,
                mean_return=float(returns.mean()) if len(returns) else None,
                std_return=float(returns.std()) if len(returns) else None,
                returns=histogram(returns),
                is_training=self._settings.is_training and not self.is_finished,
            )
        )

    def serve(self, may_wait: bool = False) -> None:
        """Answer the commands that were left with a copy of the state for all of one kind.

        While the saver has no room they stay where they are, unless `may_wait`: training does not wait for a disk.
        """
        if not self.commands or not (may_wait or self._saver.has_room):
            return
        commands = [self.commands.popleft() for _ in range(len(self.commands))]
        for kind in (SaveCheckpoint, ExportPolicy):
            asked = tuple(command.id for command in commands if isinstance(command, kind))
            if asked:
                self._saver.put(self._job("asked", asked, with_state=kind is SaveCheckpoint))

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
            self._saver.put(self._job(reason))
        if self.failure is not None:
            self._bus.publish(BehaviorStateChanged(self.behavior, "failed", str(self.failure)))
        else:
            self._bus.publish(BehaviorStateChanged(self.behavior, "finished", "" if self.is_finished else "stopped"))

    def _job(self, reason: CheckpointReason, commands: tuple[str, ...] = (), with_state: bool = True) -> SaveJob:
        parts = {"trainer": self._trainer.state(), "policy": self._policy_state}
        return SaveJob(
            behavior=self.behavior,
            step=self.step,
            weights=self._trainer.weights(),
            state=State.merge(parts) if with_state else None,
            reason=reason,
            mean_return=float(np.mean(self._recent)) if self._recent else None,
            commands=commands,
        )

    def log(self, message: str) -> None:
        """One line in the run's log."""
        self._bus.publish(LogEmitted("info", self.behavior, message))
