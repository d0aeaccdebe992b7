"""Rules about returns that do not change: nothing is learned, although episodes end."""

from __future__ import annotations

import math

from rl_tui.engine.session.health.behavior_history import FIRST_EPISODES, BehaviorHistory
from rl_tui.engine.session.health.rules import Finding, Verdict, short_count
from rl_tui.engine.session.messages import EpisodesFinished, Event, LessonChanged, ProgressReported

LONG_WAIT = 30_000  # steps of all agents in which no return differs from the first
LONG_TRIAL = 50_000  # steps of all agents after which returns should have improved,
SHARE_OF_TRAINING = 0.2  # or this share of max_steps, if that is more
STEPS_OF_AGENT = 3_000  # at least, of each


class SameReturns:
    """Every episode so far had the same return: there is nothing to learn from."""

    def __init__(self) -> None:
        self._began_at: int | None = None
        self._count, self._lowest, self._highest = 0, math.inf, -math.inf

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge all episodes of this lesson, once there are enough of them and of steps."""
        if self._began_at is None or isinstance(event, LessonChanged):
            self._began_at = history.sampled
            self._count, self._lowest, self._highest = 0, math.inf, -math.inf
        if isinstance(event, EpisodesFinished):
            self._count += event.count
            self._lowest = min(self._lowest, event.min_return)
            self._highest = max(self._highest, event.max_return)
        if self._highest - self._lowest > 1e-6 * max(1.0, abs(self._highest)):
            return "fine"
        if not isinstance(event, ProgressReported) or not history.is_training or self._count < FIRST_EPISODES:
            return None
        if history.sampled - self._began_at < max(LONG_WAIT, STEPS_OF_AGENT * history.num_agents):
            return None
        return Finding(
            f"no episode so far had another return than {self._highest:.4g}",
            "actions never earned more or less: reward steps toward the goal, make the task easier, or explore more",
        )


class NoImprovement:
    """After a good part of the training, returns are not better than those of the first episodes."""

    def __init__(self) -> None:
        self._began_at: int | None = None
        self._is_in_first_lesson = True

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge the newest hundred episodes, of a policy that this run has not restored.

        In a later lesson neither: one that has learned to pass a lesson may be good from its first episodes on.
        """
        if self._began_at is None:
            self._began_at = history.sampled
        if isinstance(event, LessonChanged):
            self._is_in_first_lesson = False
            return "fine"
        returns, started = history.returns, history.started
        may_be_good_at_once = self._began_at > 0 or not self._is_in_first_lesson
        if started is None or may_be_good_at_once or not history.is_training or not isinstance(event, ProgressReported):
            return None
        if returns.recent is None or returns.first is None or returns.deviation == 0:
            return None
        improved, steps = returns.recent - returns.first, history.sampled - self._began_at
        if improved > 0.7 * returns.deviation or returns.gain > 0:
            return "fine"
        patience = max(LONG_TRIAL, STEPS_OF_AGENT * history.num_agents, SHARE_OF_TRAINING * started.max_steps)
        if steps < patience or improved > 0.5 * returns.deviation:  # the mean of the first ones is off by 0.22
            return None
        return Finding(
            f"mean return {returns.recent:.4g} after {short_count(steps)} steps, hardly better than at first"
            f" ({returns.first:.4g})",
            "reward steps toward the goal, explore more, or update more often",
        )
