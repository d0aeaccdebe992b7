"""A walk through rooms to a reward at the very end, which is hardly ever found by chance.  Shapes: N agents, C columns
of the grid."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.sampling.environments.rendering import Frame, enlarged
from rl_tui.engine.specs import (
    Actions,
    ActionSpec,
    BehaviorSpec,
    Bool,
    DecisionSteps,
    Float32,
    Int64,
    ObservationSpec,
    Steps,
    TerminalSteps,
)

SIZE = 5  # rows and columns of a room
STEPS_PER_ROOM = 20
MOVES = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}  # of rows and columns
STEPS = np.array(list(MOVES.values()))
WALL, AGENT, GOAL = (60, 60, 60), (255, 255, 255), (0, 200, 0)


class Rooms:
    """Rooms of 5 x 5 cells side by side, with a door in each wall between two: at the bottom, at the top, and so on.

    Agents start in the middle of the first room, observe their row and their column, each as a 1 among zeros, and move
    up, down, left or right; a wall stops them. The corner of the last room that is farthest from its door terminates
    the episode with reward 1. There is no other reward, and after 20 steps for each room the episode is truncated.
    """

    def __init__(self, behavior: str, num_agents: int, rooms: int = 8) -> None:
        self._num_columns = rooms * (SIZE + 1) - 1  # C
        self._is_wall: Bool = np.zeros((SIZE, self._num_columns), np.bool_)
        for wall in range(rooms - 1):
            self._is_wall[:, (wall + 1) * (SIZE + 1) - 1] = True
            self._is_wall[_door(wall), (wall + 1) * (SIZE + 1) - 1] = False
        self._goal = np.array([SIZE - 1 - _door(rooms - 2), self._num_columns - 1])
        self._limit = STEPS_PER_ROOM * rooms
        observations = (ObservationSpec("cell", (SIZE + self._num_columns,)),)
        self.specs: Mapping[str, BehaviorSpec] = {
            behavior: BehaviorSpec(behavior, observations, ActionSpec(0, (len(MOVES),)), choice_names=tuple(MOVES))
        }
        self.num_agents: Mapping[str, int] = {behavior: num_agents}
        self._behavior = behavior
        self._ids: Int64 = np.arange(num_agents, dtype=np.int64)
        self._cells: Int64 = np.zeros((num_agents, 2), np.int64)  # rows and columns
        self._num_steps: Int64 = np.zeros(num_agents, np.int64)

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """Put every agent into the first room. Nothing is drawn at random."""
        self._begin(np.ones(len(self._ids), np.bool_))
        return {self._behavior: Steps(self._decisions(np.zeros(len(self._ids), np.float32)))}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Move every agent; those that arrive or run out of steps start a new episode."""
        self._move(actions[self._behavior].discrete[:, 0])
        self._num_steps += 1
        arrived = (self._cells == self._goal).all(1)
        rewards = arrived.astype(np.float32)
        ended = arrived | (self._num_steps >= self._limit)
        if not ended.any():
            return {self._behavior: Steps(self._decisions(rewards))}
        terminals = TerminalSteps(self._ids[ended], (self._seen()[ended],), rewards[ended], ~arrived[ended])
        self._begin(ended)
        return {self._behavior: Steps(self._decisions(np.where(ended, np.float32(0), rewards)), terminals)}

    def render(self) -> Frame | None:
        """The rooms, with agent 0 in white and the goal in green."""
        image = np.zeros((*self._is_wall.shape, 3), np.uint8)
        image[self._is_wall] = WALL
        image[tuple(self._goal)] = GOAL
        image[tuple(self._cells[0])] = AGENT
        return enlarged(image)

    def close(self) -> None:
        """Nothing is held."""

    def _move(self, choices: Int64) -> None:
        moved = np.clip(self._cells + STEPS[choices], 0, (SIZE - 1, self._num_columns - 1))
        is_free = ~self._is_wall[moved[:, 0], moved[:, 1]]
        self._cells[is_free] = moved[is_free]

    def _begin(self, agents: Bool) -> None:
        self._cells[agents] = SIZE // 2
        self._num_steps[agents] = 0

    def _decisions(self, rewards: Float32) -> DecisionSteps:
        return DecisionSteps(self._ids, (self._seen(),), rewards)

    def _seen(self) -> NDArray[np.float32]:
        seen = np.zeros((len(self._ids), SIZE + self._num_columns), np.float32)
        seen[self._ids, self._cells[:, 0]] = 1.0
        seen[self._ids, SIZE + self._cells[:, 1]] = 1.0
        return seen


def _door(wall: int) -> int:
    """The row of the door in this wall, from 0."""
    return 0 if wall % 2 else SIZE - 1
