"""Points and lengths of the games of a pong.  Shapes: G games."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rl_tui.engine.specs import Bool, Float32, Int64


class Called(NamedTuple):
    """What a step has led to, bool[G] each: the ball must be served, the game is over, and one side has won it."""

    served: Bool
    over: Bool
    won: Bool


class Score:
    """A game is won by the first side with `points`, and given up after `most_steps`."""

    def __init__(self, num_games: int, points: int, most_steps: int) -> None:
        self.points: Int64 = np.zeros((num_games, 2), np.int64)
        self._num_steps: Int64 = np.zeros(num_games, np.int64)
        self._needed, self._most_steps = points, most_steps

    def begin(self, games: Bool) -> None:
        """Nothing to nothing."""
        self.points[games] = 0
        self._num_steps[games] = 0

    def count(self, scored: Float32) -> Called:
        """A step, in which the left side has scored where it is 1, and the right one where it is -1, f32[G]."""
        self._num_steps += 1
        self.points[:, 0] += scored > 0
        self.points[:, 1] += scored < 0
        won: Bool = self.points.max(axis=1) >= self._needed
        over = won | (self._num_steps >= self._most_steps)
        return Called(over | (scored != 0), over, won)
