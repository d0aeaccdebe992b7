"""Tic-tac-toe and connect four by rules of our own: fast, and with what PettingZoo's environments let players see.

Shapes: H rows and W columns of the board.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from rl_tui.engine.specs import Bool, Float32

Board: TypeAlias = tuple[int, ...]  # of every cell, row by row from the top: EMPTY, or the player whose it is
EMPTY, FIRST, SECOND = 0, 1, 2  # players in the order in which they move


@dataclass(frozen=True)
class RowGame:
    """Two players mark cells in turns; the first one with `length` cells in a row has won.

    falls: a move names a column, whose lowest free cell is marked; else it names a cell.
    """

    height: int
    width: int
    length: int
    falls: bool = False

    @property
    def start(self) -> Board:
        """The empty board."""
        return (EMPTY,) * (self.height * self.width)

    @property
    def num_moves(self) -> int:
        """Moves that an action chooses from, allowed or not."""
        return self.width if self.falls else self.height * self.width

    @cached_property
    def lines(self) -> tuple[tuple[int, ...], ...]:
        """The cells of everything that wins."""
        found = []
        for row, column in np.ndindex(self.height, self.width):
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                rows, columns = row + down * np.arange(self.length), column + right * np.arange(self.length)
                if rows[-1] < self.height and 0 <= columns[-1] < self.width:
                    found.append(tuple((rows * self.width + columns).tolist()))
        return tuple(found)

    @cached_property
    def lines_through(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Those that every cell is in."""
        return tuple(tuple(line for line in self.lines if cell in line) for cell in range(self.height * self.width))

    def allowed(self, board: Board) -> list[int]:
        """The moves that are possible."""
        return [move for move in range(self.num_moves) if board[move] == EMPTY]

    def after(self, board: Board, move: int, player: int) -> tuple[Board, bool]:
        """The board after a move, and whether it has won."""
        cell = move
        while self.falls and cell + self.width < len(board) and board[cell + self.width] == EMPTY:
            cell += self.width
        marked = (*board[:cell], player, *board[cell + 1 :])
        return marked, any(all(marked[each] == player for each in line) for line in self.lines_through[cell])

    def seen(self, board: Board, player: int) -> Float32:
        """f32[H, W, 2]: 1 for the player's own cells, and for the other's."""
        cells = np.array(board).reshape(self.height, self.width)
        return np.stack([cells == player, cells == other(player)], axis=2).astype(np.float32)

    def mask(self, board: Board) -> Bool:
        """bool[num_moves]."""
        return np.array(board[: self.num_moves]) == EMPTY


def other(player: int) -> int:
    """The opponent."""
    return FIRST + SECOND - player


TIC_TAC_TOE = RowGame(3, 3, 3)
CONNECT_FOUR = RowGame(6, 7, 4, falls=True)
