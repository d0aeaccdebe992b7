"""The numbers of the agents of one message, before they are divided into decisions and final steps.

Shapes: N agents.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rl_tui.engine.sampling.environments.unity.wire.sensors import Rows, Sensor
from rl_tui.engine.specs import (
    ActionSpec,
    Bool,
    DecisionSteps,
    Float32,
    Int64,
    Observation,
    Steps,
    TerminalSteps,
)


class Columns:
    """Everything that N AgentInfos say; observations are uninitialized, everything else is zero.

    forbidden: bool[N, sum of branches].
    """

    def __init__(self, count: int, sensors: Sequence[Sensor], actions: ActionSpec) -> None:
        self.ids: Int64 = np.zeros(count, np.int64)
        self.rewards: Float32 = np.zeros(count, np.float32)
        self.group_ids: Int64 = np.zeros(count, np.int64)
        self.group_rewards: Float32 = np.zeros(count, np.float32)
        self.is_done: Bool = np.zeros(count, np.bool_)
        self.is_interrupted: Bool = np.zeros(count, np.bool_)
        self.forbidden: Bool = np.zeros((count, actions.mask_size), np.bool_)
        self.observations: tuple[Observation, ...] = tuple(
            np.empty((count, *sensor.spec.shape), sensor.spec.dtype) for sensor in sensors
        )

    def forbid(self, rows: Rows, mask: Bool) -> None:
        """Write masks [n, ...] of the wire; those of another length allow everything, as in ML-Agents."""
        if mask.shape[-1] == self.forbidden.shape[1]:
            self.forbidden[rows] = mask

    def to_steps(self) -> Steps:
        """The agents that are not done, and those that are, in their order."""
        has_group = bool((self.group_ids != 0).any())
        has_group_reward = bool((self.group_rewards != 0).any())
        self.group_ids[self.group_ids == 0] = -1
        if not self.is_done.any():
            return Steps(self._decisions(slice(None), has_group, has_group_reward))
        waiting, done = np.flatnonzero(~self.is_done), np.flatnonzero(self.is_done)
        terminals = TerminalSteps(
            self.ids[done],
            tuple(column[done] for column in self.observations),
            self.rewards[done],
            self.is_interrupted[done],
            self.group_ids[done] if has_group else None,
            self.group_rewards[done] if has_group_reward else None,
        )
        return Steps(self._decisions(waiting, has_group, has_group_reward), terminals)

    def _decisions(self, rows: Rows, has_group: bool, has_group_reward: bool) -> DecisionSteps:
        forbidden = self.forbidden[rows]
        return DecisionSteps(
            self.ids[rows],
            tuple(column[rows] for column in self.observations),
            self.rewards[rows],
            ~forbidden if forbidden.any() else None,
            self.group_ids[rows] if has_group else None,
            self.group_rewards[rows] if has_group_reward else None,
        )
