"""Who plays whom, how often, and in which seats."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rl_tui.engine.running.games.seats import Seat


@dataclass(frozen=True, slots=True)
class Round:
    """Games of one entrant, in one seat, against another one in all others. own, other: their positions."""

    own: int
    other: int
    seat: Seat
    num_games: int


def rounds_of(num_entrants: int, seats: Sequence[Seat], num_games: int) -> Iterator[Round]:
    """Every pair plays so many games, shared among both of them and all seats: what a seat is worth cancels.

    With two seats, each has half of the games. What one side earned decides the results of its rounds, so that both
    sides decide as many, whatever a game pays them.
    """
    for own, other in itertools.combinations(range(num_entrants), 2):
        pairings = [(own, other, seat) for seat in seats] + [(other, own, seat) for seat in seats]
        share, more = divmod(num_games, len(pairings))
        for number, (one, another, seat) in enumerate(pairings):
            if count := share + (number < more):
                yield Round(one, another, seat, count)
