"""Rewards divided by the running standard deviation of the discounted return.

The scheme of OpenAI Baselines' VecNormalize (and of Engstrom et al. 2020, section 3), over packed segments.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.learning.agent_state import AgentState
from rl_tui.engine.learning.discounted_sums import discounted_sums
from rl_tui.engine.learning.sync import ONE_RANK, Sync
from rl_tui.engine.specs import Float32, State, Trajectories

LIMIT = 10.0  # scaled rewards are clipped to +-10
EPSILON = 1e-8


class RewardScaler:
    """Follows every agent's discounted return through its segments and keeps the variance over all of them."""

    def __init__(self, gamma: float, sync: Sync = ONE_RANK):
        self._gamma = gamma
        self._sync = sync
        self._carried = AgentState.empty(1, np.float64)  # discounted returns
        self._count, self._mean, self._variance = 1e-4, 0.0, 1.0

    def __call__(self, block: Trajectories, rewards: Float32) -> Float32:
        """f32[N]: rewards of the block's rows, scaled by statistics that include them."""
        returns = self._returns(block, rewards)
        self._include(returns)
        return self.scaled(rewards)

    def scaled(self, rewards: Float32) -> Float32:
        """f32[N]: rewards, scaled by the statistics of now."""
        scaled: Float32 = np.clip(rewards / np.float32(math.sqrt(self._variance + EPSILON)), -LIMIT, LIMIT)
        return scaled

    def _returns(self, block: Trajectories, rewards: Float32) -> NDArray[np.float64]:
        """G[i] = gamma * G[i - 1] + r[i] along each agent's episode, which may continue in the next block."""
        last = np.cumsum(block.lengths) - 1
        first = last - block.lengths + 1
        is_new = np.ones(block.num_segments, np.bool_)
        is_new[1:] = block.agent_ids[1:] != block.agent_ids[:-1]
        continues = ~is_new & ~block.begins
        factors = np.full(block.num_rows, self._gamma)
        factors[first[~continues]] = 0.0
        terms = rewards.astype(np.float64)
        terms[first[is_new]] += self._gamma * self._carried.lookup(block.agent_ids[is_new], block.begins[is_new])[:, 0]
        returns: NDArray[np.float64] = self._forward(terms, factors)
        self._carried = self._carried.updated(block.agent_ids, block.endings, returns[last][:, None], block.departed)
        return returns

    @staticmethod
    def _forward(terms: NDArray[np.float64], factors: NDArray[np.float64]) -> NDArray[np.float64]:
        """`discounted_sums` from the past to the future."""
        reverse = slice(None, None, -1)
        return discounted_sums(terms[reverse], factors[reverse], len(terms))[reverse]

    def _include(self, returns: NDArray[np.float64]) -> None:
        """Fold a batch, and those of all other ranks, into mean and variance (Chan et al. 1979)."""
        count, mean = self._sync.sum(len(returns)), self._sync.mean(returns)
        centered = returns - mean
        total, variance = self._count + count, self._sync.mean(centered * centered)
        distance = mean - self._mean
        squares = self._variance * self._count + variance * count + distance**2 * self._count * count / total
        self._mean, self._variance, self._count = (
            float(self._mean + distance * count / total),
            float(squares / total),
            total,
        )

    def state(self) -> State:
        """The statistics, without unfinished episodes: environments restart after a resume."""
        return State({}, {"count": self._count, "mean": self._mean, "variance": self._variance})

    def load(self, state: State) -> None:
        """Restore `state` and drop unfinished episodes."""
        self._carried = AgentState.empty(1, np.float64)
        self._count, self._mean, self._variance = map(state.number, ("count", "mean", "variance"))
