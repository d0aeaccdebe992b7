"""Self-play of one behavior as a screen shows it: its snapshots, their ratings, and which team learns since when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rl_tui.engine.session.messages import LeagueReported

RATING = "Self-play/ELO"  # ML-Agents' tag; the curve of ratings at summaries


@dataclass(frozen=True, slots=True)
class Games:
    """Games of a policy against others."""

    won: int = 0
    drawn: int = 0
    lost: int = 0

    @property
    def count(self) -> int:
        """All of them."""
        return self.won + self.drawn + self.lost

    @property
    def win_rate(self) -> float | None:
        """From 0 to 1; None before the first game."""
        return self.won / self.count if self.count else None

    @property
    def score(self) -> float | None:
        """As Elo counts them, from 0 to 1, a draw half a game won; None before the first game."""
        return (self.won + 0.5 * self.drawn) / self.count if self.count else None

    @property
    def of_opponent(self) -> Games:
        """The same games from the other side."""
        return Games(self.lost, self.drawn, self.won)


@dataclass(frozen=True, slots=True)
class LeagueView:
    """The newest report. since_step, since_time: from when on the team that learns now has done so, as far as that was
    seen; the step is this behavior's, the time Unix seconds."""

    report: LeagueReported
    since_step: int
    since_time: float

    def followed_by(self, report: LeagueReported, time: float) -> LeagueView:
        """The view after a later report."""
        if report.learning_team != self.report.learning_team:
            return LeagueView(report, report.step, time)
        return LeagueView(report, self.since_step, self.since_time)

    @property
    def is_symmetric(self) -> bool:
        """Whether the behavior plays against its own snapshots; else others do, as a goalie's strikers."""
        return len(self.report.teams) > 1

    @property
    def games(self) -> Games:
        """Of the policy that learns, against all snapshots in the window."""
        return total(Games(each.lost, each.drawn, each.won) for each in self.report.snapshots)


def total(games: Iterable[Games]) -> Games:
    """The sum of them."""
    each = list(games)
    return Games(sum(one.won for one in each), sum(one.drawn for one in each), sum(one.lost for one in each))
