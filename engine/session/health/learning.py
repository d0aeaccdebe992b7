"""What can be wrong with what a behavior learns, judged at its summaries. docs/warnings.md explains the limits."""

from __future__ import annotations

import math
import statistics
from collections import deque
from typing import ClassVar

from engine.session.health.course import Course
from engine.session.health.rules import Finding, Streak, Verdict, short_count
from engine.session.messages import Event, MetricsReported

WARM_UP = 3  # summaries in which a policy has no usual values yet
UNIT_GAUSSIAN_ENTROPY = 0.5 * math.log(2 * math.pi * math.e)  # of one action with deviation 1, as training begins


def metric(event: Event, tag: str) -> float | None:
    """That number of a summary; None for any other event and where it is missing or not finite."""
    value = event.metrics.get(tag) if isinstance(event, MetricsReported) and event.is_training else None
    return value if value is not None and math.isfinite(value) else None


class EntropyCollapse:
    """The policy is certain of its actions without having become good.

    A policy of choices has lost all but 2 % of its first entropy (0.01 at most counts as none). One of continuous
    actions has a differential entropy, which may be negative: there -3 means a deviation of about 0.01. Which of the
    two it is shows in the sign.
    """

    kind: ClassVar[str] = "entropy_collapse"

    def __init__(self) -> None:
        self._first = self._lowest = 0.0
        self._is_low = Streak(3)
        self._low_since: int | None = None

    def judge(self, event: Event, course: Course) -> Verdict:
        """Judge summaries."""
        entropy = metric(event, "Policy/Entropy")
        if entropy is None:
            return None
        self._lowest = min(self._lowest, entropy)
        if course.num_summaries <= WARM_UP:
            self._first = max(self._first, entropy)
        is_continuous = self._lowest < -0.01  # rounding alone makes no choice that negative
        low = -3.0 if is_continuous else max(0.01, 0.02 * self._first)
        if entropy > low:
            self._low_since = None
        elif self._low_since is None:
            self._low_since = course.summary_step
        has_lasted = self._is_low.add(entropy <= low) and course.num_summaries > WARM_UP
        if course.returns.are_good or entropy > (low + 0.5 if is_continuous else 2 * low):
            return "fine"
        return self._finding(entropy, is_continuous, course) if has_lasted else None

    def _finding(self, entropy: float, is_continuous: bool, course: Course) -> Finding:
        weight = "init_entcoef" if course.algorithm == "sac" else "beta"
        since = f"since step {short_count(self._low_since or 0)}"
        seen = f"entropy {entropy:.3g}, near zero {since}"
        if is_continuous:
            deviation = math.exp(max(entropy - UNIT_GAUSSIAN_ENTROPY, -100.0))
            seen = f"entropy {entropy:.3g} {since}, actions deviate by {deviation:.1g}"
        return Finding(
            f"{seen}: the policy may have collapsed",
            f"raise {weight}, or roll back to an earlier checkpoint",
        )


class DivergenceSpike:
    """Updates move the policy several times as far as they usually do."""

    kind: ClassVar[str] = "kl_spike"

    def __init__(self) -> None:
        self._usual: deque[float] = deque(maxlen=20)
        self._is_high = Streak(2)  # a single one happens in good runs with few updates to a summary

    def judge(self, event: Event, course: Course) -> Verdict:
        """Judge summaries. Only what is fine counts as usual."""
        divergence = metric(event, "Policy/KL Divergence")
        if divergence is None:
            return None
        if len(self._usual) <= WARM_UP:
            self._usual.append(divergence)
            return None
        usual = max(statistics.median(self._usual), 1e-6)
        is_fine = divergence < max(2.5 * usual, 0.03)  # below 0.03, an update is small however small the others were
        if is_fine:
            self._usual.append(divergence)
        if self._is_high.add(not is_fine and divergence >= 5 * usual):
            return Finding(
                f"KL {divergence:.3g}, {divergence / usual:.0f}x its usual {usual:.2g}",
                "lower learning_rate or epsilon",
            )
        return "fine" if is_fine else None


class ClippedUpdates:
    """Most of what an update learns from lies beyond its bounds."""

    kind: ClassVar[str] = "clip_fraction"

    def __init__(self) -> None:
        self._is_high = Streak(3)

    def judge(self, event: Event, course: Course) -> Verdict:
        """Judge summaries."""
        fraction = metric(event, "Policy/Clip Fraction")
        if fraction is None:
            return None
        if self._is_high.add(fraction > 0.4) and course.num_summaries > WARM_UP:
            return Finding(
                f"clip fraction {fraction:.3g}, above 0.4 for 3 summaries", "lower learning_rate or num_epoch"
            )
        return "fine" if fraction < 0.3 else None


class LossNotFinite:
    """A loss is infinite or no number."""

    kind: ClassVar[str] = "loss_not_finite"

    def judge(self, event: Event, course: Course) -> Verdict:
        """Judge summaries, the first ones too."""
        if not isinstance(event, MetricsReported):
            return None
        losses = {tag: value for tag, value in event.metrics.items() if tag.startswith("Losses/")}
        for tag, value in losses.items():
            if not math.isfinite(value):
                return Finding(
                    f"{tag.removeprefix('Losses/').lower()} is not finite ({value}) at step {short_count(event.step)}",
                    "look for huge rewards or observations, lower learning_rate;"
                    " if it has ended, --resume goes on from the last checkpoint",
                )
        return "fine" if losses else None


class ValueLossExplosion:
    """The value loss is far above all that it was, though the returns are not better than ever.

    It grows with the square of the returns, and a first success makes it jump: then all is well.
    """

    kind: ClassVar[str] = "value_loss_explosion"

    def __init__(self) -> None:
        self._recent: deque[float] = deque(maxlen=5)  # an explosion may take a few summaries
        self._highest = 0.0  # of those before
        self._num_known = 0
        self._is_high = Streak(2)

    def judge(self, event: Event, course: Course) -> Verdict:
        """Judge summaries. What is high does not count as known."""
        loss = metric(event, "Losses/Value Loss")
        if loss is None:
            return None
        is_known = self._num_known >= 5 and self._highest > 0
        is_high = is_known and loss > 100 * self._highest and not course.returns.are_good
        if not is_high:
            self._learn(loss)
        if self._is_high.add(is_high):
            return Finding(
                f"value loss {loss:.4g}, {loss / self._highest:.0f}x the highest it was before ({self._highest:.3g})",
                "lower learning_rate, or set normalize_reward: true",
            )
        return "fine" if not is_known or loss < 30 * self._highest else None

    def _learn(self, loss: float) -> None:
        if len(self._recent) == self._recent.maxlen:
            self._highest = max(self._highest, self._recent[0])
            self._num_known += 1
        self._recent.append(loss)


class ReturnDrop:
    """More than half of what was learned is lost, or, where a run began with a good policy, far more than chance."""

    kind: ClassVar[str] = "return_drop"

    def __init__(self) -> None:
        self._limit = math.inf
        self._was_low = False
        self._is_low = Streak(3)

    def judge(self, event: Event, course: Course) -> Verdict:
        """Judge at summaries, by the mean of the last hundred episodes and what chance did before the loss."""
        returns = course.returns
        if not isinstance(event, MetricsReported) or not event.is_training:
            return None
        if returns.recent is None or returns.best is None or returns.first is None:
            return None
        if not self._was_low:
            by_chance = max(3 * returns.deviation, 0.1 * abs(returns.best))
            self._limit = max(returns.gain / 2, returns.deviation) if returns.gain > 0 else by_chance
        self._was_low = returns.loss > self._limit
        if self._is_low.add(self._was_low) and course.num_summaries > WARM_UP:
            began = f" (it began at {returns.first:.4g})" if returns.gain > 0 else ""
            return Finding(
                f"mean return {returns.recent:.4g}, down from its best {returns.best:.4g}{began}",
                "roll back to the best checkpoint, and lower learning_rate",
            )
        return "fine" if returns.loss < 0.6 * self._limit else None
