"""When a learner saves by itself, and what it gives to the saver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rl_tui.engine.config.types import OFF
from rl_tui.engine.errors import PluginError
from rl_tui.engine.running.checkpoint_parts import CheckpointParts
from rl_tui.engine.running.saver import SaveJob, Saver
from rl_tui.engine.running.summaries import LearnerSettings
from rl_tui.engine.running.triggers import SaveDeadline, Trigger
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import CheckpointReason
from rl_tui.engine.specs import State

GatherReplay: TypeAlias = Callable[[str, State], State | None]


def own_alone(_: str, own: State) -> State:
    """There is no other rank."""
    return own


@dataclass(frozen=True, slots=True)
class SaveContext:
    """What a save needs from the learner. mean_return, held_out_loss: for ranking checkpoints."""

    step: int
    mean_return: float | None
    held_out_loss: float | None


class CheckpointScheduler:
    """Used in its learner's thread. Copies what the trainer has learned for the saver, when due or requested.

    triggers: for checkpoints and for exports; both fire `offer_due`. deadline: of the checkpoints by the clock.
    gather_replay: from a copy of this rank's replay buffer, what is saved.
    """

    def __init__(self, settings: LearnerSettings, parts: CheckpointParts, saver: Saver, bus: EventBus):
        config = settings.config
        self._behavior = settings.behavior
        self._config = config
        self._trainer = parts.trainer
        self._parts = parts
        self._saver = saver
        self._bus = bus
        self.triggers = Trigger(config.checkpoint_interval), Trigger(config.export_interval or OFF)
        self.gather_replay: GatherReplay = own_alone
        self.deadline = SaveDeadline(config.checkpoint_seconds, settings.clock)

    def offer_due(self, at: SaveContext) -> bool:
        """Offer one job for what is due to the saver; False while another waits."""
        if not self._saver.has_room:
            return False
        saves, exports = (trigger.is_due(at.step) for trigger in self.triggers)
        job = self._job(at, "interval", with_state=saves, with_export=exports or self._exports_with_checkpoints)
        if not self._saver.offer(job):
            return False
        for trigger in self.triggers:
            trigger.restart(at.step)
        if saves:
            self.deadline.restart()
        return True

    def offer_by_clock(self, at: SaveContext) -> None:
        """Offer a checkpoint that replaces the last one by the clock; while another job waits, none."""
        if not self._saver.has_room:
            return
        if self._saver.offer(self._job(at, "clock", with_export=self._exports_with_checkpoints)):
            self.deadline.restart()

    def put_requested(self, at: SaveContext, commands: Sequence[str], with_state: bool) -> None:
        """Submit what these commands request: a checkpoint, or else an export."""
        with_export = not with_state or self._exports_with_checkpoints
        self._saver.put(self._job(at, "asked", commands, with_state=with_state, with_export=with_export))

    def put_final(self, at: SaveContext, reason: CheckpointReason) -> None:
        """Save everything for the last time, once an earlier copy of the replay buffer is written.

        Before the first step there is nothing to keep: a run that fails there is restarted, not resumed.
        """
        if at.step == 0:
            return
        self._saver.has_written_replay(self._behavior, may_wait=True)
        self._saver.put(self._job(at, reason, with_export=self._config.export_interval != OFF))

    def put_rest(self, at: SaveContext) -> None:
        """Submit what the trainer still gives: all but the replay buffer; else the policy alone, and report that."""
        try:
            self._saver.put(self._job(at, "error", with_replay=False))
        except PluginError:
            self._put_policy(at)

    def _put_policy(self, at: SaveContext) -> None:
        try:
            self._saver.put(self._job(at, "error", with_state=False))
        except PluginError:  # as before it, which was reported
            self._saver.report_unsaved(self._behavior, at.step)

    @property
    def _exports_with_checkpoints(self) -> bool:
        return self._config.export_interval is None

    def _job(
        self,
        at: SaveContext,
        reason: CheckpointReason,
        commands: Sequence[str] = (),
        with_state: bool = True,
        with_export: bool = True,
        with_replay: bool = True,
    ) -> SaveJob:
        return SaveJob(
            behavior=self._behavior,
            step=at.step,
            weights=self._trainer.weights(),
            state=self._parts.state() if with_state else None,
            reason=reason,
            mean_return=at.mean_return,
            held_out_loss=at.held_out_loss,
            commands=tuple(commands),
            with_export=with_export,
            replay=self._replay() if with_state and with_replay else None,
        )

    def _replay(self) -> State | None:
        """A copy, unless one is being written: there is never more than one."""
        if not self._config.hyperparameters.saves_replay or not self._saver.has_written_replay(self._behavior):
            return None
        own = self._trainer.replay()
        return None if own is None else self.gather_replay(self._behavior, own)
