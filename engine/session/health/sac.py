"""What can be wrong with how soft actor-critic learns. docs/warnings.md explains the limits."""

from __future__ import annotations

from typing import ClassVar

from rl_tui.engine.session.health.behavior_history import BehaviorHistory
from rl_tui.engine.session.health.learning import WARM_UP, metric
from rl_tui.engine.session.health.rules import Explosion, Finding, Streak, Verdict, short_count
from rl_tui.engine.session.messages import BehaviorStarted, Event, ProgressReported

COEFFICIENTS = ("Policy/Continuous Entropy Coeff", "Policy/Discrete Entropy Coeff")
Q_LOSSES = ("Losses/Q1 Loss", "Losses/Q2 Loss")


def _told(event: Event, tags: tuple[str, ...]) -> list[float]:
    """Those of the metrics that a summary tells, finite ones."""
    values = (metric(event, tag) for tag in tags)
    return [value for value in values if value is not None]


class QDivergence:
    """The larger Q loss is far above all that it was, though the returns are not better than ever."""

    kind: ClassVar[str] = "q_divergence"

    def __init__(self) -> None:
        self._loss = Explosion()

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge summaries."""
        loss = max(_told(event, Q_LOSSES), default=None)
        if loss is None:
            return None
        has_exploded, highest = self._loss.add(loss, history.returns.are_good), self._loss.highest
        if has_exploded:
            value = metric(event, "Policy/Extrinsic Value")
            values = "" if value is None else f", values of {value:.3g}"
            return Finding(
                f"Q loss {loss:.4g}, {loss / highest:.0f}x the highest it was before ({highest:.3g}){values}",
                "lower learning_rate or tau, set normalize_reward: true, or roll back to an earlier checkpoint",
            )
        return None if has_exploded is None else "fine"


class EntropyCoefficient:
    """The weight of entropy, which is learned, has run away: to nothing, or without end.

    It settles where the entropy is at its target, at a size that depends on the rewards: only far from 1, or from what
    it began with, and without returns that are good, is it out of order.
    """

    kind: ClassVar[str] = "entropy_coefficient"

    def __init__(self) -> None:
        self._first: float | None = None
        self._before = 0.0
        self._is_low, self._is_rising = Streak(3), Streak(5)

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge summaries: the smaller of two coefficients may vanish, the larger grow."""
        values = _told(event, COEFFICIENTS)
        if not values:
            return None
        smallest, largest = min(values), max(values)
        self._first = largest if self._first is None else self._first
        low, high = 1e-4 * self._first, 10 * max(self._first, 1.0)
        has_vanished = self._is_low.add(smallest < low)
        has_grown = self._is_rising.add(largest > self._before) and largest > high
        self._before = largest
        if history.returns.are_good or (smallest > 10 * low and largest < high / 2):
            return "fine"
        if history.num_summaries <= WARM_UP or not (has_vanished or has_grown):
            return None
        if has_vanished:
            return Finding(
                f"entropy coefficient {smallest:.2g}, next to nothing: the policy no longer explores",
                "raise target_entropy, or scale the rewards up where they are small",
            )
        return Finding(
            f"entropy coefficient {largest:.3g} and rising: the policy cannot be as random as its target asks",
            "lower target_entropy",
        )


class NoUpdates:
    """Experience is kept, and nothing is learned from it."""

    kind: ClassVar[str] = "no_updates"

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge the plan, then progress."""
        started = history.started
        if started is None or not started.replay_steps or started.step >= started.max_steps > 0:
            return None
        first = started.first_update_step
        if isinstance(event, BehaviorStarted) and first >= started.max_steps > 0:
            return Finding(
                f"learning begins at step {short_count(first)}, training ends at step {short_count(started.max_steps)}",
                "lower buffer_init_steps, or raise max_steps",
            )
        if not isinstance(event, ProgressReported):
            return None
        if event.num_updates > 0:
            return "fine"
        if event.step < max(first, started.step) + started.replay_steps:
            return None
        return Finding(
            f"no update at step {short_count(event.step)}, though the replay buffer is full",
            "look whether buffer_size holds a batch, and lower steps_per_update",
        )
