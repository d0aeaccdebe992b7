"""A way through the rooms, and demonstrations of it."""

from __future__ import annotations

import numpy as np

from rl_tui.engine.sampling.assembly import Assembly
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.factory import make_environments
from rl_tui.engine.sampling.environments.toys.rooms import SIZE
from rl_tui.engine.specs import Actions, Choice, Float32, Int64, Trajectories

UP, DOWN, RIGHT = 0, 1, 3


def rooms(num_agents: int, num_rooms: int) -> list[Environment]:
    """The environment."""
    return make_environments("toy:rooms", "Rooms", range(num_agents), {"rooms": num_rooms})


def way(cells: Float32, num_rooms: int) -> Int64:
    """i64[N]: a shortest way to the goal. cells: f32[N, 5 + C], as observed."""
    rows, columns = cells[:, :SIZE].argmax(1), cells[:, SIZE:].argmax(1)
    room, within = columns // (SIZE + 1), columns % (SIZE + 1)
    wanted = np.where(room % 2 == 0, SIZE - 1, 0)  # the row of the door, or in the last room of the goal
    last_goal = 0 if (num_rooms - 2) % 2 == 0 else SIZE - 1
    wanted = np.where(room == num_rooms - 1, last_goal, wanted)
    is_there = (rows == wanted) | (within == SIZE)  # in a door, the only way is on
    return np.where(is_there, RIGHT, np.where(rows < wanted, DOWN, UP)).astype(np.int64)


def shown(num_rooms: int, num_episodes: int, *, is_random: bool = False, seed: int = 0) -> Trajectories:
    """Whole episodes, of the way or of chance."""
    (world,) = rooms(num_episodes, num_rooms)
    random = np.random.default_rng(seed)
    assembly = Assembly(world.specs["Rooms"], 1000, 0)
    decisions, has_ended = world.reset(0)["Rooms"].decisions, np.zeros(num_episodes, np.bool_)
    while not has_ended.all():
        assembly.observe(decisions)
        cells = decisions.observations[0]
        moves = random.integers(0, 4, num_episodes) if is_random else way(cells, num_rooms)
        chosen = Actions(np.empty((num_episodes, 0), np.float32), moves[:, None])
        assembly.act(decisions, Choice(chosen, chosen.continuous, np.zeros((num_episodes, 1), np.float32)))
        steps = world.step({"Rooms": chosen})["Rooms"]
        if steps.terminals is not None:
            assembly.end(steps.terminals)
            has_ended[steps.terminals.agent_ids] = True
        decisions = steps.decisions
    return assembly.drain()
