"""The steps of demonstrations but for their observations.

Shapes: S steps, E episodes, A continuous dimensions, K branches, M choices of all branches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.specs import CUT, ActionSpec, Bool, Float32, Int64, Observations


@dataclass(frozen=True, slots=True)
class StepColumns:
    """episodes: i64[E, 2], the first step of each and the one after its last; together they are all steps.

    rewards: f32[S], which followed the action. endings: i8[S] of Ending. continuous: f32[S, A]. discrete: i64[S, K].
    agent_ids: i64[S], as they were recorded. forbidden: bool[S, M]; None where nothing is.
    """

    episodes: Int64
    rewards: Float32
    endings: NDArray[np.int8]
    continuous: Float32
    discrete: Int64
    agent_ids: Int64
    forbidden: Bool | None

    @property
    def num_steps(self) -> int:
        """S."""
        return len(self.rewards)

    @property
    def episode_returns(self) -> NDArray[np.float64]:
        """f64[E], undiscounted."""
        return np.add.reduceat(self.rewards, self.episodes[:, 0], dtype=np.float64)

    @property
    def episode_lengths(self) -> Int64:
        """i64[E], in steps."""
        lengths: Int64 = self.episodes[:, 1] - self.episodes[:, 0]
        return lengths

    @property
    def num_unfinished(self) -> int:
        """How many episodes are not recorded to their end."""
        return int((self.endings[self.episodes[:, 1] - 1] == CUT).sum())

    def transitions(self, rows: Int64, before: Observations, after: Observations, actions: ActionSpec) -> Transitions:
        """These steps, i64[B], with their observations. A choice that was taken is never masked."""
        discrete = self.discrete[rows]
        return Transitions(
            observations=before,
            next_observations=after,
            endings=self.endings[rows],
            continuous_actions=self.continuous[rows],
            discrete_actions=discrete,
            action_mask=self._allowed(rows, discrete, actions),
        )

    def _allowed(self, rows: Int64, discrete: Int64, actions: ActionSpec) -> Bool | None:
        """bool[B, M], True = allowed; None where nothing is forbidden."""
        if self.forbidden is None:
            return None
        allowed = ~self.forbidden[rows]
        offsets = np.cumsum((0, *actions.branches[:-1]))
        np.put_along_axis(allowed, discrete + offsets, True, axis=1)
        return allowed
