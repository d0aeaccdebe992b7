"""How large continuous actions are, and how much of the rewards is their cost.  Shapes: N rows, A dimensions."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.learning.acting.distributions import ACTION_LIMIT
from rl_tui.engine.specs import Trajectories

MAGNITUDE, COST_SHARE = "Policy/Action Magnitude", "Environment/Action Cost Share"


class ActionCost:
    """Moments of the actions and the rewards of every row that was added."""

    def __init__(self) -> None:
        self._count, self._num_dimensions = 0, 1
        self._mean: NDArray[np.float64] = np.zeros(2)  # of a row's sum of squares and of its reward
        self._spread: NDArray[np.float64] = np.zeros((2, 2))  # sums of products of their differences from these

    def add(self, block: Trajectories) -> None:
        """Count the rows of a block; what has no continuous actions counts nothing."""
        if not block.continuous_actions.size:
            return
        actions = np.clip(block.continuous_actions, -ACTION_LIMIT, ACTION_LIMIT)  # as they reach the environment
        pairs = np.stack([np.square(actions, dtype=np.float64).sum(axis=1), block.total_rewards])
        count, mean = pairs.shape[1], pairs.mean(axis=1)
        centered, step, total = pairs - mean[:, None], mean - self._mean, self._count + pairs.shape[1]
        self._spread += centered @ centered.T + np.outer(step, step) * (self._count * count / total)  # Chan et al. 1979
        self._mean += step * (count / total)
        self._count, self._num_dimensions = total, actions.shape[1]

    @property
    def metrics(self) -> dict[str, float]:
        """By tag: the root mean square of the actions, and the share of the rewards' variance that their squares
        explain as a cost, 0 where larger ones are rewarded. Absent where nothing was counted, or nothing varies."""
        count, (square, _), spread = self._count, self._mean.tolist(), self._spread
        variances = float(spread[0, 0] * spread[1, 1])
        found = {MAGNITUDE: math.sqrt(square / self._num_dimensions)} if count else {}
        if math.isfinite(variances) and variances > 0:
            found[COST_SHARE] = max(0.0, -float(spread[0, 1])) ** 2 / variances
        return found
