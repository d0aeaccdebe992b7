"""The seam of a reward stream."""

from __future__ import annotations

from typing import Protocol

from rl_tui.engine.config.behavior import BehaviorConfig, RewardSignalSettings
from rl_tui.engine.specs import Float32, State, Trajectories


class RewardSignal(Protocol):
    """One stream of rewards with its own discount. Evaluated once, when a block arrives."""

    name: str
    gamma: float
    strength: float
    ignores_dones: bool  # the value of what follows an end is not zero for this stream

    def evaluate(self, block: Trajectories) -> Float32:
        """f32[N], not yet multiplied by `strength`."""

    def state(self) -> State:
        """Everything `load` needs."""

    def load(self, state: State) -> None:
        """Go on from `state`."""


class RewardSignalKind(Protocol):
    """What the registry holds under "reward_signals"."""

    @staticmethod
    def make(settings: RewardSignalSettings, config: BehaviorConfig) -> RewardSignal:
        """The signal that these settings of a behavior ask for."""
