"""From the games of each pair to a table in the order of ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rl_tui.engine.running.arena.ratings import Ratings, Results, rate
from rl_tui.engine.running.games.entrants import RANDOM
from rl_tui.engine.running.games.rules import Record

Pair = tuple[int, int]  # positions of two entrants, the smaller one first


@dataclass(frozen=True, slots=True)
class Lead:
    """How far one is ahead of the next one: points of Elo, with the 95 % interval."""

    points: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Standing:
    """An entrant, with its rating in points of Elo, the 95 % interval of that, and all of its games. place: where it
    was named. lead: None for the last one."""

    entrant: str
    place: int
    rating: float
    low: float
    high: float
    record: Record
    lead: Lead | None = None


@dataclass(frozen=True, slots=True)
class Standings:
    """Best first. anchor: whose rating is 0; None where the mean is fixed. draw_odds: how often equals draw, as odds
    against either of them winning. has_prior: half a game won and lost by each in each pair was added, since results
    alone do not determine all ratings."""

    table: tuple[Standing, ...]
    anchor: str | None
    draw_odds: float
    has_prior: bool


def standings(entrants: Sequence[str], records: Mapping[Pair, Record]) -> Standings:
    """The table of all entrants. records: of each pair, as the first one has played."""
    anchor = entrants.index(RANDOM) if RANDOM in entrants else None
    ratings = rate(_results(len(entrants), records), anchor)
    order = sorted(range(len(entrants)), key=lambda place: -ratings.points[place])
    totals = [Record() for _ in entrants]
    for (first, second), record in records.items():
        totals[first] += record
        totals[second] += record.reversed
    table = []
    for rank, place in enumerate(order):
        points, margin = float(ratings.points[place]), ratings.margin(place)
        lead = _lead(ratings, place, order[rank + 1]) if rank + 1 < len(order) else None
        table.append(Standing(entrants[place], place, points, points - margin, points + margin, totals[place], lead))
    return Standings(tuple(table), None if anchor is None else RANDOM, ratings.draw_odds, ratings.has_prior)


def _lead(ratings: Ratings, place: int, other: int) -> Lead:
    points, margin = ratings.difference(place, other)
    return Lead(points, points - margin, points + margin)


def _results(count: int, records: Mapping[Pair, Record]) -> Results:
    wins, draws = np.zeros((count, count)), np.zeros((count, count))
    for (first, second), record in records.items():
        wins[first, second], wins[second, first] = record.won, record.lost
        draws[first, second] = draws[second, first] = record.drawn
    return Results(wins, draws)
