"""The environment's own reward."""

from __future__ import annotations

from rl_tui.engine.config.behavior import BehaviorConfig, RewardSignalSettings
from rl_tui.engine.learning.rewards.scaling import RewardScaler
from rl_tui.engine.specs import Float32, State, Trajectories


class ExtrinsicReward:
    """What the environment paid, scaled by its running return if the behavior says so (`normalize_reward`)."""

    name = "extrinsic"
    ignores_dones = False

    def __init__(self, gamma: float, strength: float, normalize: bool):
        self.gamma = gamma
        self.strength = strength
        self._scaler = RewardScaler(gamma) if normalize else None

    @staticmethod
    def make(settings: RewardSignalSettings, config: BehaviorConfig) -> ExtrinsicReward:
        """The signal that these settings of a behavior ask for."""
        return ExtrinsicReward(settings.gamma, settings.strength, config.normalize_reward)

    def evaluate(self, block: Trajectories) -> Float32:
        """f32[N]."""
        return block.rewards if self._scaler is None else self._scaler(block)

    def state(self) -> State:
        """The scaler's statistics, if there is one."""
        return State() if self._scaler is None else self._scaler.state()

    def load(self, state: State) -> None:
        """Go on from `state`."""
        if self._scaler is not None:
            self._scaler.load(state)
