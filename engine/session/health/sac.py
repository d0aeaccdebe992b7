"""Rules about soft actor-critic. docs/warnings.md explains the limits."""

from __future__ import annotations

from typing import ClassVar

from rl_tui.engine.session.health.behavior_history import BehaviorHistory
from rl_tui.engine.session.health.learning import WARM_UP, metric
from rl_tui.engine.session.health.rules import Explosion, Finding, Streak, Verdict, short_count
from rl_tui.engine.session.messages import BehaviorStarted, Event, ProgressReported

COEFFICIENTS = ("Policy/Continuous Entropy Coeff", "Policy/Discrete Entropy Coeff")
Q_LOSSES = ("Losses/Q1 Loss", "Losses/Q2 Loss")


def _metrics(event: Event, tags: tuple[str, ...]) -> list[float]:
    """The finite values of these metrics in a summary."""
    values = (metric(event, tag) for tag in tags)
    return [value for value in values if value is not None]


class QDivergence:
    """The larger Q loss is far above all its earlier values, and the returns are not near their best."""

    kind: ClassVar[str] = "q_divergence"

    def __init__(self) -> None:
        self._loss = Explosion()

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge summaries."""
        loss = max(_metrics(event, Q_LOSSES), default=None)
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
    """The learned entropy coefficient vanishes, or grows without bound.

    It settles where the entropy reaches its target, at a value that depends on the rewards: it is wrong only far from
    1, or from its initial value, and without good returns.
    """

    kind: ClassVar[str] = "entropy_coefficient"

    def __init__(self) -> None:
        self._first: float | None = None
        self._before = 0.0
        self._is_low, self._is_rising = Streak(3), Streak(5)

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge summaries: the smaller of two coefficients for vanishing, the larger for growing."""
        values = _metrics(event, COEFFICIENTS)
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
                f"entropy coefficient {smallest:.2g}, near zero: the policy no longer explores",
                "raise target_entropy, or scale the rewards up where they are small",
            )
        return Finding(
            f"entropy coefficient {largest:.3g} and rising: the policy cannot reach its target entropy",
            "lower target_entropy",
        )


class NoUpdates:
    """Experience is stored, but there are no updates."""

    kind: ClassVar[str] = "no_updates"

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge the settings first, then progress."""
        started = history.started
        if started is None or not started.replay_steps or started.step >= started.max_steps > 0:
            return None
        first = started.first_update_step
        if isinstance(event, BehaviorStarted) and first >= started.max_steps > 0:
            return Finding(
                f"updates start at step {short_count(first)}, training ends at step {short_count(started.max_steps)}",
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
            "check that buffer_size is at least batch_size, and lower steps_per_update",
        )
