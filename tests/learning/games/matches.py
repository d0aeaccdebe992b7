"""Games between two players of tic-tac-toe or connect four, and their results."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tests.learning.games.players import Player
from tests.learning.games.rows import FIRST, SECOND, Board, RowGame, other

_SHOWN_LINES = 10


@dataclass
class Results:
    """Of the player that was asked about. lost: the moves of each game that it has lost, of both sides in turns."""

    won: int = 0
    drawn: int = 0
    lost: list[tuple[int, ...]] = field(default_factory=list)

    @property
    def num_games(self) -> int:
        """All of them."""
        return self.won + self.drawn + len(self.lost)

    @property
    def score(self) -> float:
        """From 0 to 1: a win counts as 1, a draw as a half."""
        return (self.won + self.drawn / 2) / self.num_games

    def __add__(self, more: Results) -> Results:
        return Results(self.won + more.won, self.drawn + more.drawn, self.lost + more.lost)

    def __str__(self) -> str:
        """The numbers, and a line for each different game that was lost, the most frequent ones first."""
        lines = sorted({line: self.lost.count(line) for line in self.lost}.items(), key=lambda item: -item[1])
        shown = [f"{count} x {' '.join(map(str, line))}" for line, count in lines[:_SHOWN_LINES]]
        more = [f"and {len(lines) - _SHOWN_LINES} other lines"] if len(lines) > _SHOWN_LINES else []
        head = f"{self.num_games} games: {self.won} won, {self.drawn} drawn, {len(self.lost)} lost"
        return "\n  ".join([head, *shown, *more])


def play(
    game: RowGame, player: Player, opponent: Player, num_games: int, *, seat: int, opening: int = 0, seed: int = 0
) -> Results:
    """The results of `player` in so many games, which are played at once. seat: FIRST or SECOND.

    opening: moves at the beginning that are random instead of the players', the same for both seats with the same seed,
    so that two players that never vary play different games.
    """
    results, random = Results(), np.random.default_rng(seed)
    boards: dict[int, Board] = dict.fromkeys(range(num_games), game.start)
    lines: dict[int, list[int]] = {number: [] for number in boards}
    for each in (player, opponent):
        each.begin(num_games)
    turn, num_moves = FIRST, 0
    while boards:
        if num_moves < opening:
            moves = [int(random.choice(game.allowed(board))) for board in boards.values()]
        else:
            moves = (player if turn == seat else opponent).move(list(boards), list(boards.values()), turn)
        for number, move in zip(list(boards), moves, strict=True):
            boards[number], has_won = game.after(boards[number], move, turn)
            lines[number].append(move)
            if has_won or not game.allowed(boards[number]):
                del boards[number]
                _count(results, lines[number], turn == seat if has_won else None)
        turn, num_moves = other(turn), num_moves + 1
    return results


def play_both_seats(
    game: RowGame, player: Player, opponent: Player, num_games: int, *, opening: int = 0, seed: int = 0
) -> Results:
    """The same, half of the games from each seat."""
    first, second = (
        play(game, player, opponent, num_games // 2, seat=seat, opening=opening, seed=seed) for seat in (FIRST, SECOND)
    )
    return first + second


def _count(results: Results, line: list[int], has_won: bool | None) -> None:
    """A game; None: it was drawn."""
    if has_won is None:
        results.drawn += 1
    elif has_won:
        results.won += 1
    else:
        results.lost.append(tuple(line))
