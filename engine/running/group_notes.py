"""What a log says once of the groups of a behavior: what its trainer makes of their rewards, or that there are none."""

from __future__ import annotations

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.diagnostics import one_of
from rl_tui.engine.config.hyperparameters import trainers_that_value_groups
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.specs import Trajectories


class GroupNotes:
    """Used in the learner's thread."""

    def __init__(self, behavior: str, config: BehaviorConfig, bus: EventBus):
        self._behavior, self._trainer, self._bus = behavior, config.trainer_type, bus
        self._values_groups = config.hyperparameters.values_groups
        self._is_first = True  # of the blocks
        self._has_rewards = self._has_lone_ones = False  # in some block; of agents without a group

    def see(self, block: Trajectories) -> None:
        """The next block of experience."""
        if self._is_first and self._values_groups and block.group_ids is None:
            self._log(f"none of its agents has a group: to {self._trainer} each is alone, as to ppo, which is faster")
        if block.group_rewards is not None and not self._has_rewards:
            others = one_of(trainers_that_value_groups())
            added = f"the rewards of its groups are added to those of their agents; trainer_type {others} credits each"
            learned = "its groups earn rewards, and each agent is credited with what it contributes"
            self._log(learned if self._values_groups else f"{added} with what it contributes")
            self._has_rewards = True
        if block.group_rewards is not None and not self._has_lone_ones:
            groups = block.group_ids
            if (block.group_rewards if groups is None else block.group_rewards[groups < 0]).any():
                self._has_lone_ones = True
                text = "agents without a group earned rewards of a group; these count as their own"
                self._bus.log("warning", self._behavior, text)
        self._is_first = False

    def _log(self, text: str) -> None:
        self._bus.log("info", self._behavior, text)
