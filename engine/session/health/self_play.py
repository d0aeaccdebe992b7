"""Rules about games between teams: a rating that rises in a circle, and one policy for all teams."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rl_tui.engine.session.health.behavior_history import BehaviorHistory
from rl_tui.engine.session.health.rules import Finding, Verdict, short_count
from rl_tui.engine.session.messages import Event, LeagueReported, LeagueSnapshot, MetricsReported

FEWEST_GAMES = 30  # of which a win rate is known
POINTS_KEPT = 24  # of the games against one snapshot
CLEAR_FALL, RECOVERED = 0.2, 0.1  # of the score, from 0 to 1
CERTAIN_FALL, CERTAIN_RISE = 4.0, 2.0  # standard errors; the fall is the largest of many


class SharedPolicy:
    """All teams of a zero-sum game share one policy, so that the mean return is 0 whatever it learns."""

    def __init__(self) -> None:
        self._was_said = False

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge summaries by the returns of all teams; said once, for it stays as it is."""
        started, returns = history.started, history.zero_sum
        if started is None or started.plays_itself or not isinstance(event, MetricsReported):
            return None
        if returns.is_excluded:
            return "fine"
        if self._was_said or not returns.is_certain:
            return None
        self._was_said = True
        return Finding(
            f"mean return {returns.mean + 0.0:.3f} of {returns.episodes} episodes, as many won as lost: one policy"
            f" plays all {len(started.teams)} teams, and the mean of a zero-sum game is 0 whatever it learns",
            "give the behavior self_play: it then plays against its earlier policies, and its rating shows progress",
        )


@dataclass(frozen=True, slots=True)
class Point:
    """Games against one snapshot so far. score: of the policy that learns, a draw counting half. variation: the sum of
    the squares of all changes of its rating by then."""

    games: int
    score: float
    rating: float
    variation: float


class Fall(NamedTuple):
    """early, late: the share of the score in two parts of the games against one snapshot, one after the other."""

    early: float
    late: float
    errors: float  # their difference in standard errors
    is_rating_up: bool  # clearly, since the early part

    @property
    def is_cycle(self) -> bool:
        """Whether it wins clearly less than before against that snapshot, though its rating has risen."""
        return self.is_rating_up and self.errors >= CERTAIN_FALL and self.early - self.late >= CLEAR_FALL


class RatingCycle:
    """The rating rises while the policy loses more and more against the oldest snapshot of the window.

    It then beats what it was a while ago, and not what it was before (Balduzzi et al. 2019). The games against each
    snapshot are followed from its first one on, so that a win rate is compared with that against the same opponent.
    """

    def __init__(self) -> None:
        self._courses: dict[int, list[Point]] = {}  # by the step of the snapshot
        self._rating = math.nan
        self._variation = 0.0

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge reports of a league whose snapshots the policy that learns plays against: those of its own."""
        if not isinstance(event, LeagueReported) or len(event.teams) < 2 or not math.isfinite(event.rating):
            return None
        self._follow(event)
        if not event.snapshots:
            return None
        oldest = event.snapshots[0]
        course = self._courses[oldest.step]
        fall, recent = _largest_fall(course), _recent(course)
        if fall is None or recent is None:
            return None
        if fall.is_cycle and fall.early - recent >= CLEAR_FALL:
            return Finding(
                f"rating up to {event.rating:.0f}, but the score against the oldest snapshot,"
                f" of step {short_count(oldest.step)}, fell from {_percent(fall.early)} to {_percent(recent)}:"
                " it may go in circles",
                "raise window, or lower play_against_latest_model_ratio, so that it meets older policies more often",
            )
        return "fine" if fall.early - recent <= RECOVERED else None

    def _follow(self, event: LeagueReported) -> None:
        change = event.rating - self._rating
        self._rating = event.rating
        self._variation += change * change if math.isfinite(change) else 0.0
        courses = self._courses
        self._courses = {each.step: courses.get(each.step, []) for each in event.snapshots}
        for each in event.snapshots:
            self._add(self._courses[each.step], each)

    def _add(self, course: list[Point], snapshot: LeagueSnapshot) -> None:
        games = snapshot.won + snapshot.drawn + snapshot.lost
        point = Point(games, snapshot.lost + 0.5 * snapshot.drawn, self._rating, self._variation)
        if course and games < course[-1].games:
            course.clear()  # counted from 0 again, as after a roll back
        if not course or games - course[-1].games >= FEWEST_GAMES // 2:
            course.append(point)
        if len(course) > POINTS_KEPT:
            del course[1:-1:2]


def _largest_fall(course: Sequence[Point]) -> Fall | None:
    """The clearest one up to now; None before there are enough games."""
    newest, falls = course[-1], []
    for at, middle in enumerate(course):
        if newest.games - middle.games < FEWEST_GAMES:
            break
        falls += [_fall(start, middle, newest) for start in course[:at] if middle.games - start.games >= FEWEST_GAMES]
    return max(falls, key=lambda fall: fall.errors, default=None)


def _fall(start: Point, middle: Point, newest: Point) -> Fall:
    early, late = _share(start, middle), _share(middle, newest)
    num_early, num_late = middle.games - start.games, newest.games - middle.games
    mean = _share(start, newest)
    spread = mean * (1 - mean)  # of single games, at most; with draws less
    error = math.sqrt(max(spread, 1e-9) * (1 / num_early + 1 / num_late))
    rise, noise = newest.rating - middle.rating, math.sqrt(max(0.0, newest.variation - middle.variation))
    return Fall(early, late, (early - late) / error, rise > CERTAIN_RISE * noise)


def _recent(course: Sequence[Point]) -> float | None:
    """The score in the newest games; None before there are enough."""
    newest = course[-1]
    before = next((point for point in reversed(course) if newest.games - point.games >= FEWEST_GAMES), None)
    return None if before is None else _share(before, newest)


def _share(start: Point, end: Point) -> float:
    return (end.score - start.score) / (end.games - start.games)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"
