"""Self-play that is made up: a policy that learns against a window of its snapshots, with known odds."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rl_tui.engine.session.messages import LeagueReported, LeagueSnapshot

Odds = Callable[[float, float], float]  # (time of the newest, time of a snapshot) -> chance that the newest wins


def stronger(scale: float) -> Odds:
    """Skill rises with time, ever more slowly: who is newer wins more often."""
    return lambda now, then: 1 / (1 + math.exp(-(_skill(now) - _skill(then)) / scale))


def weaker() -> Odds:
    """It unlearns: who is newer loses more often."""
    return lambda now, then: 1 / (1 + math.exp((now - then) / 2))


def in_circles(per_round: float) -> Odds:
    """As rock, paper and scissors: the newest beats what it was a while ago, and loses to what it was before."""
    return lambda now, then: 0.5 + 0.45 * math.sin(2 * math.pi * (now - then) / per_round)


def _skill(time: float) -> float:
    return 3.0 * math.log1p(time / 5.0)


@dataclass(slots=True)
class _Snapshot:
    step: int
    time: float
    rating: float
    won: int = 0
    drawn: int = 0
    lost: int = 0


class League:
    """Games one after the other, a report after every few. draws: the share of games without a winner."""

    def __init__(self, odds: Odds, seed: int, *, window: int = 10, draws: float = 0.1, games_per_snapshot: int = 150):
        self.rating = 1200.0
        self.num_games = 0
        self._odds, self._chance, self._draws = odds, random.Random(seed), draws
        self._window, self._per_snapshot = window, games_per_snapshot
        self._snapshots = [_Snapshot(0, 0.0, 1200.0)]

    def reports(self, num_snapshots: int, name: str = "Walker", games_per_report: int = 15) -> Iterator[LeagueReported]:
        """Until so many were taken."""
        for number in range(num_snapshots):
            for game in range(self._per_snapshot):
                self._play(number + game / self._per_snapshot)
                if game % games_per_report == 0:
                    yield self._report(name, 1000 * number + 1000 * game // self._per_snapshot)
            taken = _Snapshot(1000 * (number + 1), number + 1, self.rating)
            self._snapshots = [*self._snapshots, taken][-self._window :]

    def _play(self, now: float) -> None:
        opponent = self._chance.choice(self._snapshots)
        is_drawn = self._chance.random() < self._draws
        result = 0.5 if is_drawn else float(self._chance.random() < self._odds(now, opponent.time))
        change = result - 1 / (1 + 10 ** ((opponent.rating - self.rating) / 400))
        self.rating, opponent.rating = self.rating + change, opponent.rating - change
        self.num_games += 1
        opponent.won, opponent.drawn = opponent.won + (result == 0.0), opponent.drawn + is_drawn
        opponent.lost += result == 1.0

    def _report(self, name: str, step: int) -> LeagueReported:
        listed = tuple(LeagueSnapshot(s.step, s.rating, s.won, s.drawn, s.lost) for s in self._snapshots)
        return LeagueReported(name, step, self.rating, 0, True, (0, 1), self.num_games, listed)
