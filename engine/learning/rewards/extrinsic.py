"""The rewards of the environment: each agent's own and its group's, added up as ML-Agents does."""

from __future__ import annotations

from rl_tui.engine.config.reward_signals import RewardSignalSettings
from rl_tui.engine.learning.rewards.base import RewardContext, RewardSignal
from rl_tui.engine.learning.rewards.scaling import RewardScaler
from rl_tui.engine.specs import Float32, State, Trajectories


class ExtrinsicReward(RewardSignal):
    """The environment's rewards, scaled by the running return with `normalize_reward`."""

    def __init__(self, settings: RewardSignalSettings, context: RewardContext):
        self._scaler = RewardScaler(settings.gamma, context.sync) if context.config.normalize_reward else None

    def evaluate(self, block: Trajectories) -> Float32:
        """f32[N]."""
        rewards = block.total_rewards
        return rewards if self._scaler is None else self._scaler(block, rewards)

    def evaluate_mates(self, rewards: Float32) -> Float32:
        """The same rewards, scaled as those of the agent itself."""
        return rewards if self._scaler is None else self._scaler.scaled(rewards)

    def state(self) -> State:
        """The scaler's statistics, if there is one."""
        return State() if self._scaler is None else self._scaler.state()

    def load(self, state: State) -> None:
        """Restore `state`."""
        if self._scaler is not None:
            self._scaler.load(state)
