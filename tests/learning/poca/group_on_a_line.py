"""The group world of ML-Agents' own tests, as a BaseEnv: `mlagents:tests.learning.poca.group_on_a_line:GroupOnALine`.

Agents walk on lines from 0 to 1 or -1, where their episodes end; each sees which of them is its goal. One that is early
earns at most a step's penalty, or what it costs to be at the wrong end. What the last one achieves is the group's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.sampling.base_env.disguise import Acts, Ended, Property, Seen, Spec, Waiting

STEP, PENALTY = 0.2, 0.01
SUCCESS = 1 + 6 * PENALTY  # 5 steps lead to the end
BEHAVIOR = "Line"


class GroupOnALine:
    """final_rewards: of every agent, as good as its end was. pays_group: otherwise only own rewards are paid."""

    def __init__(self, is_discrete: bool = False, num_agents: int = 2, pays_group: bool = True) -> None:
        acts = Acts(0, (2,)) if is_discrete else Acts(1)
        self.behavior_specs = {BEHAVIOR: Spec([Seen((1,), (Property.NONE,))], acts)}
        self.final_rewards: list[float] = []
        self._is_discrete, self._num_agents, self._pays_group = is_discrete, num_agents, pays_group
        self._random = np.random.default_rng()
        GroupOnALine.newest = self

    newest: GroupOnALine | None = None

    def reset(self, seed: int | None = None) -> None:
        """Everyone begins."""
        self._random = np.random.default_rng(seed)
        self._begin()

    def _begin(self) -> None:
        self._goals = self._random.choice([-1.0, 1.0], self._num_agents)
        self._positions = np.zeros(self._num_agents)
        self._is_there = np.ones(self._num_agents, bool)
        self._rewards = np.zeros(self._num_agents)
        self._ended: list[tuple[int, float, float, float]] = []  # agent, what it saw, own and group reward

    def set_actions(self, behavior: str, actions: Any) -> None:
        """Of those who are there."""
        moves = 2.0 * actions.discrete[:, 0] - 1 if self._is_discrete else actions.continuous[:, 0]
        self._moves = np.zeros(self._num_agents)
        self._moves[self._is_there] = np.clip(moves, -STEP, STEP)

    def step(self) -> None:
        """One after the other: only the last one that ends is the last one."""
        ended = []
        self._rewards[:] = -PENALTY
        for agent in np.flatnonzero(self._is_there).tolist():
            self._positions[agent] = np.clip(self._positions[agent] + self._moves[agent], -1, 1)
            if abs(self._positions[agent]) < 1 - 1e-9:
                continue
            self._is_there[agent] = False
            earned = SUCCESS * self._positions[agent] * self._goals[agent]
            self.final_rewards.append(earned)
            own, shared = (min(-PENALTY, earned), 0.0) if self._is_there.any() else (0.0, earned)
            ended.append((agent, self._goals[agent], own, shared))
        if not self._is_there.any():
            self._begin()
        self._ended = ended

    def get_steps(self, behavior: str) -> tuple[Waiting, Ended]:
        """Who acts next, and whose episodes have ended."""
        there = np.flatnonzero(self._is_there)
        nothing = np.zeros(len(there), np.float32)
        waiting = Waiting(
            obs=[self._goals[there][:, None].astype(np.float32)],
            reward=self._rewards[there].astype(np.float32),
            agent_id=there,
            action_mask=None,
            group_id=np.ones(len(there), np.int64),
            group_reward=nothing,
        )
        agents, seen, own, shared = np.array(self._ended, np.float32).reshape(-1, 4).T
        over = Ended(
            obs=[seen[:, None]],
            reward=own,
            agent_id=agents.astype(np.int64),
            interrupted=np.zeros(len(agents), bool),
            group_id=np.ones(len(agents), np.int64),
            group_reward=shared * self._pays_group,
        )
        return waiting, over

    def close(self) -> None:
        """Nothing is held."""
