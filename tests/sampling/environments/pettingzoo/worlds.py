"""Small environments of PettingZoo, named by tests as `tests.sampling.environments.pettingzoo.worlds:NAME`."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

Dicts = tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]


class Relay(ParallelEnv[str, Any, Any]):
    """Runners observe the step; the reward is the runner's number times it, plus what it carries: its action.

    Runner i stays for `stays[i]` steps and is then terminated; the last of them is truncated. `late` joins after the
    first step, and is paid 100 at once. With `wide`, runner_0 observes more than the others.
    """

    metadata = {"render_modes": ["rgb_array", "ansi"], "render_fps": 7, "name": "relay"}

    def __init__(
        self,
        stays: tuple[int, ...] = (2, 3),
        late: str = "",
        wide: bool = False,
        vanishing: str = "",
        render_mode: str | None = None,
    ) -> None:
        self.stays = {f"runner_{i}": steps for i, steps in enumerate(stays)}
        self.possible_agents = [*self.stays, *([late] if late else [])]
        self.late, self.wide, self.vanishing, self.render_mode = late, wide, vanishing, render_mode
        self.seeds: list[int | None] = []
        self.options: list[Any] = []
        self.bonus = 0.0

    def observation_space(self, agent: str) -> Any:
        return spaces.Box(0, 100, (2 if self.wide and agent == "runner_0" else 1,))

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(3)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.seeds.append(seed)
        self.options.append(options)
        self.time, self.agents = 0, list(self.stays)
        return self._seen(self.agents), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, Any]) -> Dicts:
        assert set(actions) == set(self.agents)
        self.time += 1
        acted = self.agents
        rewards = {agent: 10.0 * i * self.time + int(actions[agent]) for i, agent in enumerate(acted)}
        ended = {agent: self.time >= self.stays.get(agent, 99) for agent in acted}
        last = all(ended[agent] for agent in acted if agent in self.stays)
        self.agents = [] if last else [agent for agent in acted if not ended[agent]]
        if self.time == 1 and self.late and not last:
            self.agents.append(self.late)
            rewards[self.late] = 100.0
        returned = [agent for agent in {*acted, *self.agents} if agent != self.vanishing or agent in self.agents]
        truncations = {agent: last and agent == max(self.stays) for agent in returned}
        terminations = {agent: (ended.get(agent, False) or last) and not truncations[agent] for agent in returned}
        infos = {agent: {"time": self.time} for agent in returned}
        return self._seen(returned), rewards, terminations, truncations, infos

    def render(self) -> Any:
        return np.zeros((4, 5, 3), np.uint8) if self.render_mode == "rgb_array" else f"time {self.time}"

    def _seen(self, agents: Any) -> dict[str, Any]:
        return {agent: np.full(self.observation_space(agent).shape, self.time, np.float32) for agent in agents}


class Nim(AECEnv[str, Any, Any]):
    """Two players take one to three of the stones in turns; the one that takes the last has won: 1, and -1.

    Every move also costs the other player 0.25. The mask says how many may be taken, in observations or in infos.
    """

    metadata = {"render_modes": [], "name": "nim", "is_parallelizable": False}

    def __init__(self, stones: int = 7, mask: str = "observed") -> None:
        self.stones, self.mask = stones, mask
        self.possible_agents = ["player_0", "player_1"]
        self.taken: list[tuple[str, int]] = []

    def observation_space(self, agent: str) -> Any:
        seen = spaces.Box(0, self.stones, (1,))
        if self.mask != "observed":
            return seen
        return spaces.Dict({"observation": seen, "action_mask": spaces.Box(0, 1, (3,), np.int8)})

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(3)

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.left, self.agents, self.agent_selection = self.stones, list(self.possible_agents), "player_0"
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: self._infos() for agent in self.agents}

    def observe(self, agent: str) -> Any:
        seen = np.array([self.left], np.float32)
        return {"observation": seen, "action_mask": self._allowed()} if self.mask == "observed" else seen

    def step(self, action: Any) -> None:
        player = self.agent_selection
        if self.terminations[player]:
            self._was_dead_step(action)
            return
        assert self._allowed()[action], "forbidden"
        self.taken.append((player, int(action) + 1))
        self.left -= int(action) + 1
        self._cumulative_rewards[player] = 0.0
        other = next(agent for agent in self.agents if agent != player)
        self.rewards = {player: 0.0, other: -0.25}
        if self.left == 0:
            self.rewards = {player: 1.0, other: -1.0}
            self.terminations = dict.fromkeys(self.agents, True)
        self.infos = {agent: self._infos() for agent in self.agents}
        self._accumulate_rewards()
        self.agent_selection = other

    def _allowed(self) -> Any:
        return (np.arange(1, 4) <= self.left).astype(np.int8)

    def _infos(self) -> dict[str, Any]:
        return {"action_mask": self._allowed()} if self.mask == "in infos" else {}


def relays(**kwargs: Any) -> Relay:
    return Relay(**kwargs)
