"""A small game in pixels.  Shapes: N agents."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.sampling.environments.rendering import Frame, enlarged
from rl_tui.engine.sampling.environments.toys.moves import ACTION_SPECS, ActionKind, choice_names_of, moves
from rl_tui.engine.specs import (
    Actions,
    BehaviorSpec,
    DecisionSteps,
    Float32,
    Int64,
    ObservationSpec,
    Steps,
    TerminalSteps,
)

BALL, PADDLE = 255, 128
CELLS = 12  # rows and columns of the board


class Catch:
    """A ball falls from a random column of the top row, one row a step; a paddle below moves left, right or not.

    An image shows the board of 12 x 12 cells, a cell as `cell_pixels` x `cell_pixels` pixels. At the bottom the episode
    terminates, with reward 1 if the ball is within a column of the paddle's middle and -1 if not: a paddle that never
    moves returns -0.5 on average. After the game in Mnih et al. 2014, Recurrent Models of Visual Attention.
    """

    def __init__(self, behavior: str, num_agents: int, actions: ActionKind = "discrete", cell_pixels: int = 2) -> None:
        size = CELLS * cell_pixels
        image = ObservationSpec("image", (size, size, 1), "uint8")
        spec = BehaviorSpec(behavior, (image,), ACTION_SPECS[actions], choice_names=choice_names_of(actions))
        self.specs: Mapping[str, BehaviorSpec] = {behavior: spec}
        self.num_agents: Mapping[str, int] = {behavior: num_agents}
        self._behavior = behavior
        self._cell_pixels = cell_pixels
        self._ids: Int64 = np.arange(num_agents, dtype=np.int64)
        self._random = np.random.default_rng()
        self._row = 0  # of all balls
        self._balls: Int64 = np.zeros(num_agents, np.int64)  # columns
        self._paddles: Int64 = np.zeros(num_agents, np.int64)

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """Put a ball at the top for every agent."""
        self._random = np.random.default_rng(seed)
        return {self._behavior: Steps(self._begin())}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Move every paddle by at most one column; the balls fall by a row."""
        steps = np.rint(moves(actions[self._behavior])).astype(np.int64)
        self._paddles = np.clip(self._paddles + steps, 1, CELLS - 2)
        self._row += 1
        if self._row < CELLS - 1:
            return {self._behavior: Steps(self._decisions(np.zeros(len(self._ids), np.float32)))}
        caught = np.abs(self._balls - self._paddles) <= 1
        rewards = np.where(caught, 1.0, -1.0).astype(np.float32)
        terminals = TerminalSteps(self._ids, (self._images(),), rewards, np.zeros(len(self._ids), np.bool_))
        return {self._behavior: Steps(self._begin(), terminals)}

    def render(self) -> Frame | None:
        """The image that agent 0 observes."""
        return enlarged(self._images()[0])

    def close(self) -> None:
        """Nothing is held."""

    def _begin(self) -> DecisionSteps:
        self._row = 0
        self._balls = self._random.integers(0, CELLS, len(self._ids))
        self._paddles = np.full(len(self._ids), CELLS // 2)
        return self._decisions(np.zeros(len(self._ids), np.float32))

    def _decisions(self, rewards: Float32) -> DecisionSteps:
        return DecisionSteps(self._ids, (self._images(),), rewards)

    def _images(self) -> NDArray[np.uint8]:
        board = np.zeros((len(self._ids), CELLS, CELLS, 1), np.uint8)
        for column in (-1, 0, 1):
            board[self._ids, -1, self._paddles + column] = PADDLE
        board[self._ids, self._row, self._balls] = BALL
        return board.repeat(self._cell_pixels, axis=1).repeat(self._cell_pixels, axis=2)
