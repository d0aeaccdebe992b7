"""Many games of tic-tac-toe or connect four at once, to learn them faster than in PettingZoo's environments.

Shapes: G games. Named in settings as `tests.learning.games.boards:Boards`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from rl_tui.engine.specs import (
    Actions,
    ActionSpec,
    BehaviorSpec,
    DecisionSteps,
    Float32,
    Int64,
    ObservationSpec,
    Steps,
    TerminalSteps,
)
from tests.learning.games.rows import CONNECT_FOUR, TIC_TAC_TOE

SIGNS = (1, -1)  # on the board, of the teams in the order in which they move


class Boards:
    """Two teams move in turns; who moves sees its own cells and the other's, as in PettingZoo's games. A win earns 1, a
    loss -1, and a game that is over begins again."""

    def __init__(self, game: Literal["tictactoe", "connect_four"] = "tictactoe", games: int = 64) -> None:
        self._game = TIC_TAC_TOE if game == "tictactoe" else CONNECT_FOUR
        self._lines = np.array(self._game.lines)
        actions = ActionSpec(0, (self._game.num_moves,))
        seen = (ObservationSpec("observation", (self._game.height, self._game.width, 2)),)
        names = [f"Player?team={team}" for team in range(2)]
        self.specs: Mapping[str, BehaviorSpec] = {name: BehaviorSpec(name, seen, actions) for name in names}
        self.num_agents: Mapping[str, int] = dict.fromkeys(names, games)
        self._boards = np.zeros((games, len(self._game.start)), np.int8)
        self._turns = np.zeros(games, np.int64)  # the team that moves

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """Every game begins; nothing in it is random."""
        self._boards[:] = self._turns[:] = 0
        return {name: Steps(self._decisions(team)) for team, name in enumerate(self.specs)}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Make the move of every game."""
        for team, name in enumerate(self.specs):
            moving = np.flatnonzero(self._turns == team)
            if len(moving):
                self._boards[moving, self._cells(moving, actions[name].discrete[:, 0])] = SIGNS[team]
        self._turns = 1 - self._turns
        sums, length = self._boards[:, self._lines].sum(axis=2), self._game.length
        won = np.where((sums == length).any(axis=1), 1, np.where((sums == -length).any(axis=1), -1, 0))
        over = np.flatnonzero((won != 0) | (self._boards != 0).all(axis=1))
        terminals = [self._terminals(team, over, won[over]) for team in range(2)]
        self._boards[over] = self._turns[over] = 0
        return {name: Steps(self._decisions(team), terminals[team]) for team, name in enumerate(self.specs)}

    def close(self) -> None:
        """Nothing is held."""

    def _cells(self, games: Int64, moves: Int64) -> Int64:
        """Which cells these moves mark."""
        if not self._game.falls:
            return moves
        columns = self._boards[games].reshape(-1, self._game.height, self._game.width)[np.arange(len(games)), :, moves]
        return ((columns == 0).sum(axis=1) - 1) * self._game.width + moves

    def _seen(self, team: int, games: Int64) -> Float32:
        own = SIGNS[team]
        boards = np.stack([self._boards[games] == own, self._boards[games] == -own], axis=2)
        return boards.astype(np.float32).reshape(-1, self._game.height, self._game.width, 2)

    def _decisions(self, team: int) -> DecisionSteps:
        games = np.flatnonzero(self._turns == team)
        ids, zeros = games + team * len(self._turns), np.zeros(len(games), np.float32)
        return DecisionSteps(ids, (self._seen(team, games),), zeros, self._boards[games, : self._game.num_moves] == 0)

    def _terminals(self, team: int, games: Int64, won: Int64) -> TerminalSteps | None:
        if not len(games):
            return None
        earned = (won * SIGNS[team]).astype(np.float32)
        ids, truncated = games + team * len(self._turns), np.zeros(len(games), np.bool_)
        return TerminalSteps(ids, (self._seen(team, games),), earned, truncated)
