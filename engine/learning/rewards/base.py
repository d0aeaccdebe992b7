"""The interface of a reward signal."""

from __future__ import annotations

from typing import Protocol

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.reward_signals import RewardSignalSettings
from rl_tui.engine.specs import Float32, State, Trajectories


class RewardSignal(Protocol):
    """One stream of rewards with its own discount, evaluated once for every block."""

    name: str
    gamma: float
    strength: float
    ignores_dones: bool  # the next value after an end is not zero for this stream

    def evaluate(self, block: Trajectories) -> Float32:
        """f32[N], not yet multiplied by `strength`."""

    def state(self) -> State:
        """The state for `load`."""

    def load(self, state: State) -> None:
        """Restore `state`."""


class RewardSignalKind(Protocol):
    """A class registered under "reward_signals"."""

    @staticmethod
    def make(settings: RewardSignalSettings, config: BehaviorConfig) -> RewardSignal:
        """The signal with these settings of a behavior."""
