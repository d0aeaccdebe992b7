"""Who plays tic-tac-toe or connect four: at random, perfectly, or by a policy.  Shapes: N games, M memory columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from rl_tui.engine.specs import DecisionSteps, Policy
from tests.learning.games.rows import FIRST, Board, RowGame, other


class Player(Protocol):
    """Makes the moves of one side in N games at once."""

    def begin(self, num_games: int) -> None:
        """New games, numbered from 0."""

    def move(self, games: Sequence[int], boards: Sequence[Board], player: int) -> list[int]:
        """An allowed move in each of these games, which go on. player: FIRST or SECOND."""


class RandomPlayer:
    """Makes every allowed move with equal probability."""

    def __init__(self, game: RowGame, seed: int) -> None:
        self._game, self._random = game, np.random.default_rng(seed)

    def begin(self, num_games: int) -> None:
        """As `Player`."""

    def move(self, games: Sequence[int], boards: Sequence[Board], player: int) -> list[int]:
        """As `Player`."""
        return [int(self._random.choice(self._game.allowed(board))) for board in boards]


class PerfectPlayer:
    """Draws what can be drawn and wins what can be won: any of its best moves with equal probability, by minimax.

    For tic-tac-toe: all of its positions are kept, of which connect four has too many.
    """

    def __init__(self, game: RowGame, seed: int) -> None:
        self._game, self._random = game, np.random.default_rng(seed)
        self.values: dict[Board, int] = {}  # -1, 0 or 1, for who is to move; without positions that are won

    def begin(self, num_games: int) -> None:
        """As `Player`."""

    def move(self, games: Sequence[int], boards: Sequence[Board], player: int) -> list[int]:
        """As `Player`."""
        return [int(self._random.choice(self.best(board, player))) for board in boards]

    def best(self, board: Board, player: int) -> list[int]:
        """The moves from which no other is better."""
        worth = {move: self._worth(board, move, player) for move in self._game.allowed(board)}
        return [move for move, value in worth.items() if value == max(worth.values())]

    def _worth(self, board: Board, move: int, player: int) -> int:
        """What a move leads to for the player that makes it: 1 a win, 0 a draw, -1 a loss."""
        after, has_won = self._game.after(board, move, player)
        return 1 if has_won else -self._value(after, other(player))

    def _value(self, board: Board, player: int) -> int:
        if board not in self.values:
            moves = self._game.allowed(board)
            self.values[board] = max((self._worth(board, move, player) for move in moves), default=0)
        return self.values[board]


class PolicyPlayer:
    """Moves as a policy chooses: greedily, if that is how it was made. Games are of agents 0 to N - 1.

    The policy was made for a behavior with the observation and the masks of PettingZoo's environment.
    """

    def __init__(self, game: RowGame, policy: Policy) -> None:
        self._game, self._policy = game, policy
        self._memories = np.zeros((0, policy.memory_size), np.float32)

    def begin(self, num_games: int) -> None:
        """As `Player`."""
        self._memories = np.zeros((num_games, self._policy.memory_size), np.float32)

    def move(self, games: Sequence[int], boards: Sequence[Board], player: int) -> list[int]:
        """As `Player`. Raises AssertionError for a move that the mask forbids."""
        masks = np.stack([self._game.mask(board) for board in boards])
        decisions = DecisionSteps(
            np.array(games, np.int64),
            (np.stack([self._game.seen(board, player) for board in boards]),),
            np.zeros(len(games), np.float32),
            masks,
            team_ids=np.full(len(games), player - FIRST),
        )
        memories = self._memories[list(games)] if self._policy.memory_size else None
        choice = self._policy.act(decisions, memories)
        if choice.memories is not None:
            self._memories[list(games)] = choice.memories
        moves: list[int] = choice.actions.discrete[:, 0].tolist()
        assert masks[range(len(moves)), moves].all(), moves
        return moves
