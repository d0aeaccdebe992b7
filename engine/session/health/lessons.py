"""The rule about lessons that are harder than the policy can cope with."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rl_tui.engine.session.health.behavior_history import FIRST_EPISODES, WARM_UP, BehaviorHistory, Returns
from rl_tui.engine.session.health.rules import Finding, Streak, Verdict
from rl_tui.engine.session.messages import Event, LessonChanged, MetricsReported

STANDARD_ERRORS = 3.0  # of the difference between two means, beyond chance


@dataclass(frozen=True, slots=True)
class _Episodes:
    """The newest episodes of a lesson. deviation: how far the return of one usually is from their mean."""

    mean: float
    deviation: float
    count: int

    def limit(self, later: _Episodes) -> float:
        """How much lower the mean of later episodes must be to be called a drop."""
        error = math.hypot(self.deviation / math.sqrt(self.count), later.deviation / math.sqrt(later.count))
        return max(self.deviation, later.deviation, STANDARD_ERRORS * error, 0.1 * abs(self.mean))


class LessonDrop:
    """The return in a lesson is far below that of the lesson before, and has not risen since the lesson began."""

    def __init__(self) -> None:
        self._newest: _Episodes | None = None
        self._before: _Episodes | None = None  # those of the lesson before
        self._lesson = ""
        self._is_low = Streak(3)

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge summaries by a hundred episodes of this lesson, against those of the one before.

        A harder task may earn less even where the policy is good, so that a rise within the lesson ends it.
        """
        if isinstance(event, LessonChanged):
            self._before, self._newest, self._is_low = self._newest, None, Streak(3)
            self._lesson = f"lesson {event.lesson} of {event.parameter}" + (f" ({event.name})" if event.name else "")
            return "fine"
        if not isinstance(event, MetricsReported) or not event.is_training:
            return None
        self._newest = now = _newest(history.returns)
        if now is None or self._before is None or not history.returns.episodes.is_full:
            return None
        has_risen = history.returns.gain > 0 or history.is_solved
        drop, limit = self._before.mean - now.mean, self._before.limit(now)
        if self._is_low.add(drop > limit and not has_risen) and history.num_summaries > WARM_UP:
            return Finding(
                f"mean return {now.mean:.4g} in {self._lesson}, {self._before.mean:.4g} in the lesson before",
                "if it does not rise, add a lesson between these two, or raise the threshold or min_lesson_length of"
                " the one before",
            )
        return "fine" if has_risen or drop < limit / 2 else None


def _newest(returns: Returns) -> _Episodes | None:
    """None before there are enough of them."""
    mean, count = returns.episodes.mean, returns.episodes.count
    return None if mean is None or count < FIRST_EPISODES else _Episodes(mean, returns.deviation, count)
