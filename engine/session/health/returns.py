"""Rules about returns from which nothing is learned, or nothing that a user would want."""

from __future__ import annotations

import math

from rl_tui.engine.session.health.behavior_history import FIRST_EPISODES, WARM_UP, BehaviorHistory
from rl_tui.engine.session.health.rules import Finding, Streak, Verdict, metric, short_count
from rl_tui.engine.session.messages import (
    EpisodesFinished,
    EvaluationReported,
    Event,
    LessonChanged,
    ProgressReported,
)

LONG_WAIT = 30_000  # steps of all agents in which no return differs from the first
LONG_TRIAL = 50_000  # steps of all agents after which returns should have improved,
SHARE_OF_TRAINING = 0.2  # or this share of max_steps, if that is more
STEPS_OF_AGENT = 3_000  # at least, of each
BY_CHANCE, CLEAR = 2.0, 3.0  # standard errors of a difference between means
COST_SHARE, MAGNITUDE = "Environment/Action Cost Share", "Policy/Action Magnitude"


class SameReturns:
    """Every episode so far had the same return, and none that solves the task: there is nothing to learn from."""

    def __init__(self) -> None:
        self._began_at: int | None = None
        self._count = 0

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge all episodes of this lesson, once there are enough of them and of steps.

        Those before a resume or a roll back have shown, too, whether returns differ.
        """
        if self._began_at is None or isinstance(event, LessonChanged):
            self._began_at, self._count = history.learned, 0
        if isinstance(event, EpisodesFinished):
            self._count += event.count
        if history.has_differing_returns or history.is_solved:
            return "fine"
        if not isinstance(event, ProgressReported) or not history.is_training or self._count < FIRST_EPISODES:
            return None
        if history.learned - self._began_at < max(LONG_WAIT, STEPS_OF_AGENT * history.num_agents):
            return None
        return Finding(
            f"every episode so far returned {history.highest_return:.4g}",
            "actions never earned more or less: reward steps toward the goal, make the task easier, or explore more",
        )


class NoImprovement:
    """After a good part of the training, returns are not better than those of the first episodes, but by chance."""

    def __init__(self) -> None:
        self._began_at: int | None = None
        self._is_in_first_lesson = True

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge the latest episodes, of a policy that this run has not restored.

        In a later lesson neither: one that has learned to pass a lesson may be good from its first episodes on.
        """
        if self._began_at is None:
            self._began_at = history.learned
        if isinstance(event, LessonChanged):
            self._is_in_first_lesson = False
            return "fine"
        returns, started = history.returns, history.started
        may_be_good_at_once = self._began_at > 0 or not self._is_in_first_lesson
        may_be_good_at_once |= history.zero_sum.is_certain  # its mean stays 0, however much is learned
        if started is None or may_be_good_at_once or not history.is_training or not isinstance(event, ProgressReported):
            return None
        if returns.recent is None or returns.first is None or returns.deviation == 0:
            return None
        if returns.improvement > CLEAR or returns.gain > 0 or history.is_solved:
            return "fine"
        steps = history.learned - self._began_at
        if steps < _patience(history) or returns.improvement > BY_CHANCE:
            return None
        return Finding(
            f"mean return {returns.latest.mean:.4g} after {short_count(steps)} steps, hardly better than at first"
            f" ({returns.first:.4g})",
            "reward steps toward the goal, explore more, or update more often",
        )


def _patience(history: BehaviorHistory) -> float:
    """Steps of all agents after which something should have been learned."""
    share = 0.0 if history.started is None else SHARE_OF_TRAINING * history.started.max_steps
    return max(LONG_TRIAL, STEPS_OF_AGENT * history.num_agents, share)


class DoesNothing:
    """Only the cost of actions makes one reward differ from another, and they shrink, or it has been so for long.

    A reward for anything else, which some episode finds, has its share of the variance.
    """

    def __init__(self) -> None:
        self._first = 0.0
        self._is_cost = Streak(3)
        self._began_at: int | None = None

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge summaries by how much of the rewards the squares of actions explain."""
        share, magnitude = metric(event, COST_SHARE), metric(event, MAGNITUDE)
        if share is None or magnitude is None:
            return None
        if history.num_summaries <= WARM_UP:
            self._first = max(self._first, magnitude)
        is_cost = self._is_cost.add(share >= 0.95)
        if share < 0.8:
            self._began_at = None
            return "fine"
        self._began_at = history.summary_step if self._began_at is None else self._began_at
        has_lasted = history.summary_step - self._began_at >= _patience(history)
        if not is_cost or history.num_summaries <= WARM_UP or (magnitude > 0.75 * self._first and not has_lasted):
            return None
        mean, size = history.returns.episodes.mean, magnitude / self._first if self._first else 1.0
        return Finding(
            f"{'' if mean is None else f'mean return {mean:.4g}: '}only the cost of actions makes rewards differ"
            f" ({share:.0%}), and actions are {size:.0%} as large as at first: the policy learns to do nothing",
            "reward steps toward the goal, explore more (longer actions reach farther), or lower the cost of actions",
        )


class GreedyReturn:
    """The policy that acts greedily, which is what is exported, is far worse than the one that samples its actions."""

    def __init__(self) -> None:
        self._is_worse = Streak(2)  # the returns of training are a few updates older

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge evaluations by the newest episodes of training, how far these differ, and what may be chance."""
        returns = history.returns
        sampled, count = returns.episodes.mean, returns.episodes.count
        if not isinstance(event, EvaluationReported) or not event.deterministic or event.episodes < 1:
            return None
        if event.has_opponent:
            return None  # in training it plays others
        if sampled is None or count < FIRST_EPISODES or not returns.deviation:
            return None
        gap = sampled - event.mean_return
        error = math.hypot(event.std_return / math.sqrt(event.episodes), returns.deviation / math.sqrt(count))
        limit = max(returns.deviation, CLEAR * error)
        if self._is_worse.add(gap > limit) and history.num_summaries > WARM_UP:
            return Finding(
                f"mean return {event.mean_return:.4g} of greedy actions in evaluations,"
                f" {sampled:.4g} of sampled ones in training",
                "train on, so that the policy needs less chance, or let it sample where it is used",
            )
        return "fine" if gap < limit / 2 else None
