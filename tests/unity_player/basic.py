"""A corridor, after ML-Agents' Basic: as the world of a player."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tests.unity_player.encoding import AgentTemplate
from tests.unity_player.messages import Acts, Brain, Said, Sensor

PLACES = 20
START, SMALL_GOAL, LARGE_GOAL = 10, 7, 17
EYE = np.eye(PLACES, dtype=np.float32)
MOVES = 0, -1, 1


class BasicWorld:
    """One agent per area stays, goes left or right; every step costs 0.01, and the goals pay 0.1 and 1."""

    def __init__(self, behavior: str, num: int, max_steps: int) -> None:
        sensor = Sensor("BasicSensor", (PLACES,))
        self.brains: Mapping[str, Brain] = {behavior: Brain(behavior, (sensor,), branches=(3,))}
        self._behavior, self._max_steps = behavior, max_steps
        self._template = AgentTemplate([sensor])
        self._places, self._steps = [START] * num, [0] * num

    def reset(self) -> Said:
        """All agents in the middle."""
        self._places, self._steps = [START] * len(self._places), [0] * len(self._places)
        return self._said([], [0.0] * len(self._places))

    def step(self, acts: Mapping[str, Acts]) -> Said:
        """discrete: 0 stay, 1 left, 2 right."""
        over, rewards = [], []
        for agent, move in enumerate(acts[self._behavior].discrete[:, 0].tolist()):
            place = min(max(self._places[agent] + MOVES[move], 0), PLACES - 1)
            self._places[agent], self._steps[agent] = place, self._steps[agent] + 1
            reward = -0.01 + {SMALL_GOAL: 0.1, LARGE_GOAL: 1.0}.get(place, 0.0)
            is_real_end = place in {SMALL_GOAL, LARGE_GOAL}
            if is_real_end or self._steps[agent] >= self._max_steps:
                over.append(self._template.info(agent, reward, EYE[place].tobytes(), not is_real_end))
                self._places[agent], self._steps[agent], reward = START, 0, 0.0
            rewards.append(reward)
        return self._said(over, rewards)

    def _said(self, over: list[bytes], rewards: list[float]) -> Said:
        waiting = [
            self._template.info(agent, reward, EYE[place].tobytes())
            for agent, (reward, place) in enumerate(zip(rewards, self._places, strict=True))
        ]
        return Said({self._behavior: b"".join(over + waiting)}, {self._behavior: len(waiting)})
