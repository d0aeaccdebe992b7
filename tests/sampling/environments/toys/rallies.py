"""Scripted players of pong, and games between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.toys.pong_court import PADDLE, PADDLE_SPEED
from rl_tui.engine.sampling.environments.toys.pong_players import DOWN, STAY, UP
from rl_tui.engine.sampling.environments.toys.pong_views import BALL_X, BALL_Y, OWN_Y, VELOCITY_X, VELOCITY_Y
from rl_tui.engine.specs import Actions, Float32, Int64

Player: TypeAlias = Callable[[Float32], Int64]
TEAMS = ("B?team=0", "B?team=1")


def chosen(choices: Int64) -> Actions:
    """A choice for every agent."""
    return Actions(np.zeros((len(choices), 0), np.float32), np.reshape(choices, (-1, 1)).astype(np.int64))


def staying(seen: Float32) -> Int64:
    """Never moves."""
    return np.full(len(seen), STAY)


def at_random(seed: int) -> Player:
    """Moves at random."""
    random = np.random.default_rng(seed)
    return lambda seen: random.integers(0, 3, len(seen))


def far_sighted(seen: Float32) -> Int64:
    """Goes where the ball will arrive, and hits it with the end of the paddle that sends it away from the opponent.

    Only for games of one against one, whose last number is the opponent's height.
    """
    comes = seen[:, VELOCITY_X] < 0
    steps = (seen[:, BALL_X] + 1.0) / np.where(comes, -seen[:, VELOCITY_X], 1.0)
    unfolded = np.mod(seen[:, BALL_Y] + steps * seen[:, VELOCITY_Y] + 1.0, 4.0)
    landing = np.where(unfolded <= 2.0, unfolded - 1.0, 3.0 - unfolded)
    away = np.where(seen[:, -1] > 0, 0.9 * PADDLE, -0.9 * PADDLE)  # above the ball: it flies down
    gaps = np.where(comes, landing + away, 0.0) - seen[:, OWN_Y]
    choices: Int64 = np.where(np.abs(gaps) <= PADDLE_SPEED / 2, STAY, np.where(gaps > 0, UP, DOWN))
    return choices


@dataclass
class Results:
    """Of the left side. lengths: steps of each game."""

    won: int = 0
    lost: int = 0
    truncated: int = 0
    lengths: list[int] = field(default_factory=list)

    @property
    def num_games(self) -> int:
        """All that have ended."""
        return self.won + self.lost + self.truncated


def played(game: Environment, players: Mapping[str, Player], num_games: int, seed: int = 1) -> Results:
    """Play until so many games of one point have ended; all start together, so that long ones count as short ones do.

    players: by behavior, or team.
    """
    steps, results = game.reset(seed), Results()
    left = next(iter(players))
    since = np.zeros(game.num_agents[left], np.int64)
    while results.num_games < num_games:
        seen = {name: steps[name].decisions.observations[0] for name in players}
        steps = game.step({name: chosen(player(seen[name])) for name, player in players.items()})
        since += 1
        if (over := steps[left].terminals) is not None:
            results.truncated += int(over.truncated.sum())
            results.won += int((over.total_rewards[~over.truncated] > 0).sum())
            results.lost += int((over.total_rewards[~over.truncated] < 0).sum())
            results.lengths += since[over.agent_ids].tolist()
            since[over.agent_ids] = 0
    return results
