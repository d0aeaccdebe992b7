"""The interface of a reward signal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.reward_signals import RewardSignalSettings
from rl_tui.engine.learning.demonstrations import Demonstrations
from rl_tui.engine.learning.sync import ONE_RANK, Sync
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.specs import BehaviorSpec, Float32, State, Trajectories

Numbers: TypeAlias = Mapping[str, float | torch.Tensor]  # by tag; a tensor has one element, on any device


@dataclass(frozen=True, slots=True)
class RewardContext:
    """What a reward signal is made for: a behavior, and the device of its networks.

    seed: for the signal's own generator; no two signals of a behavior have the same. sync: what a signal that learns on
    several ranks averages its gradients with.
    """

    spec: BehaviorSpec
    config: BehaviorConfig
    seed: int
    device: torch.device
    sync: Sync = ONE_RANK


class RewardSignal:
    """One stream of rewards. A signal derives from it and defines `evaluate` or `evaluate_transitions`, or both.

    It is made by its class, with its settings and a context. What is the same for every signal is done elsewhere: the
    trainer multiplies by `strength`, discounts by `gamma`, and reports "Policy/<Title> Reward" and the value estimates.
    Used by one thread.
    """

    def __init__(self, settings: RewardSignalSettings, context: RewardContext):
        """Raises ConfigError for settings that do not fit the behavior."""

    @property
    def num_parameters(self) -> int:
        """How many numbers it trains. Read once."""
        return 0

    def evaluate(self, block: Trajectories) -> Float32:
        """f32[N], not yet multiplied by `strength`. Called once for each new block; may update statistics.

        `block.rewards` are each agent's own, `block.group_rewards` those of its group, or None where there are none.
        """
        return self.evaluate_transitions(Transitions.of(block))

    def evaluate_mates(self, rewards: Float32) -> Float32:
        """f32[N]: what this stream pays for the rewards f32[N] that an agent's mates earned themselves, where a trainer
        credits agents with those. By default nothing. Changes nothing."""
        return np.zeros_like(rewards)

    def evaluate_transitions(self, transitions: Transitions) -> Float32:
        """f32[B]: the rewards of these steps as of now. Changes nothing."""
        raise NotImplementedError

    def use_demonstrations(self, demonstrations: Demonstrations) -> None:
        """Learn from these, too. Called once, before the first update, if the settings have a `demonstration_path`."""
        raise NotImplementedError

    def update(self, transitions: Transitions) -> Numbers:
        """Learn from a mini-batch of the trainer's; returns finite metrics, which are averaged over mini-batches.

        Called only if `learns` of the settings is True.
        """
        raise NotImplementedError

    def change_settings(self, settings: RewardSignalSettings) -> None:
        """Use these from the next update on; one of those that are `changeable` differs.

        Called only if the settings name any.
        """
        raise NotImplementedError

    @property
    def is_finite(self) -> bool:
        """Whether all that it has learned is, asked once after each update; if not, the update fails."""
        return True

    def snapshot(self) -> Any:
        """A copy for `restore` of all that changes while it learns, taken before each update; by default `state`."""
        return self.state()

    def restore(self, snapshot: Any) -> None:
        """Undo everything since `snapshot`; by default `load`."""
        self.load(snapshot)

    def state(self) -> State:
        """A copy of everything that `load` needs to continue as if training had never stopped.

        Its arrays have the same names and shapes from the beginning.
        """
        return State()

    def load(self, state: State) -> None:
        """Restore `state`. What is kept of unfinished episodes is dropped: environments restart."""
