"""Rules about what a behavior learns, judged at its summaries. docs/warnings.md explains the limits."""

from __future__ import annotations

import math
import statistics
from collections import deque
from typing import ClassVar

from rl_tui.engine.session.health.behavior_history import BehaviorHistory
from rl_tui.engine.session.health.rules import Explosion, Finding, Streak, Verdict, short_count
from rl_tui.engine.session.messages import Event, MetricsReported

WARM_UP = 3  # summaries before a policy has usual values
TARGET_ENTROPY = "target_entropy"  # a hyperparameter of soft actor-critic
UNIT_GAUSSIAN_ENTROPY = 0.5 * math.log(2 * math.pi * math.e)  # of one action with deviation 1, as at the start


def metric(event: Event, tag: str) -> float | None:
    """That metric of a summary; None for any other event, and if it is missing or not finite."""
    value = event.metrics.get(tag) if isinstance(event, MetricsReported) and event.is_training else None
    return value if value is not None and math.isfinite(value) else None


class EntropyCollapse:
    """The policy is nearly deterministic without being good.

    With discrete actions it has lost all but 2 % of its initial entropy (0.01 or less counts as none). Continuous
    actions have a differential entropy, which may be negative: -3 means a deviation of about 0.01. The sign shows which
    kind it is. Soft actor-critic reports the sum over its actions and holds it at a target, by default -1 for each:
    there it is too low at three times a negative target, or at 3 below the target.
    """

    kind: ClassVar[str] = "entropy_collapse"

    def __init__(self) -> None:
        self._first = self._lowest = 0.0
        self._is_low = Streak(3)
        self._low_since: int | None = None

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge summaries."""
        entropy = metric(event, "Policy/Entropy")
        if entropy is None:
            return None
        self._lowest = min(self._lowest, entropy)
        if history.num_summaries <= WARM_UP:
            self._first = max(self._first, entropy)
        low = self._limit(history)
        if entropy > low:
            self._low_since = None
        elif self._low_since is None:
            self._low_since = history.summary_step
        has_lasted = self._is_low.add(entropy <= low) and history.num_summaries > WARM_UP
        if history.returns.are_good or entropy > (low + 0.5 if self._is_continuous else 2 * low):
            return "fine"
        return self._finding(entropy, history) if has_lasted else None

    @property
    def _is_continuous(self) -> bool:
        return self._lowest < -0.01  # rounding cannot make the entropy of discrete actions that negative

    def _limit(self, history: BehaviorHistory) -> float:
        """The entropy that is too low; minus infinity where it has an unknown target."""
        if not self._is_continuous:
            return max(0.01, 0.02 * self._first)
        if history.algorithm != "sac":
            return -3.0
        target = history.hyperparameters.get(TARGET_ENTROPY, -math.inf)
        return target - max(3.0, 2 * abs(target))

    def _finding(self, entropy: float, history: BehaviorHistory) -> Finding:
        is_soft = history.algorithm == "sac"
        since = f"since step {short_count(self._low_since or 0)}"
        seen = f"entropy {entropy:.3g}, near zero {since}"
        if self._is_continuous and is_soft:
            seen = f"entropy {entropy:.3g} {since}, far below its target {history.hyperparameters[TARGET_ENTROPY]:.3g}"
        elif self._is_continuous:
            deviation = math.exp(max(entropy - UNIT_GAUSSIAN_ENTROPY, -100.0))
            seen = f"entropy {entropy:.3g} {since}, actions deviate by {deviation:.1g}"
        return Finding(
            f"{seen}: the policy may have collapsed",
            f"raise {'target_entropy or init_entcoef' if is_soft else 'beta'}, or roll back to an earlier checkpoint",
        )


class DivergenceSpike:
    """Updates move the policy several times as far as they usually do."""

    kind: ClassVar[str] = "kl_spike"

    def __init__(self) -> None:
        self._usual: deque[float] = deque(maxlen=20)
        self._is_high = Streak(2)  # good runs with few updates per summary have single spikes

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge summaries. Only values that are fine count as usual."""
        divergence = metric(event, "Policy/KL Divergence")
        if divergence is None:
            return None
        if len(self._usual) <= WARM_UP:
            self._usual.append(divergence)
            return None
        usual = max(statistics.median(self._usual), 1e-6)
        is_fine = divergence < max(2.5 * usual, 0.03)  # below 0.03 an update is small, even if the others were smaller
        if is_fine:
            self._usual.append(divergence)
        if self._is_high.add(not is_fine and divergence >= 5 * usual):
            return Finding(
                f"KL {divergence:.3g}, {divergence / usual:.0f}x its usual {usual:.2g}",
                "lower learning_rate or epsilon",
            )
        return "fine" if is_fine else None


class ClippedUpdates:
    """Most of each batch is clipped and does not contribute to the gradient."""

    kind: ClassVar[str] = "clip_fraction"

    def __init__(self) -> None:
        self._is_high = Streak(3)

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge summaries."""
        fraction = metric(event, "Policy/Clip Fraction")
        if fraction is None:
            return None
        if self._is_high.add(fraction > 0.4) and history.num_summaries > WARM_UP:
            return Finding(
                f"clip fraction {fraction:.3g}, above 0.4 for 3 summaries", "lower learning_rate or num_epoch"
            )
        return "fine" if fraction < 0.3 else None


class LossNotFinite:
    """A loss is NaN or infinite."""

    kind: ClassVar[str] = "loss_not_finite"

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge summaries, the first ones too."""
        if not isinstance(event, MetricsReported):
            return None
        losses = {tag: value for tag, value in event.metrics.items() if tag.startswith("Losses/")}
        for tag, value in losses.items():
            if not math.isfinite(value):
                return Finding(
                    f"{tag.removeprefix('Losses/').lower()} is not finite ({value}) at step {short_count(event.step)}",
                    "look for huge rewards or observations, lower learning_rate;"
                    " if training has ended, --resume continues from the last checkpoint",
                )
        return "fine" if losses else None


class ValueLossExplosion:
    """The value loss is far above all its earlier values, and the returns are not near their best.

    It grows with the square of the returns and jumps at a first success, which is fine.
    """

    kind: ClassVar[str] = "value_loss_explosion"

    def __init__(self) -> None:
        self._loss = Explosion()

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge summaries, except of soft actor-critic, whose Q losses are judged instead."""
        loss = metric(event, "Losses/Value Loss")
        if loss is None or history.algorithm == "sac":
            return None
        has_exploded, highest = self._loss.add(loss, history.returns.are_good), self._loss.highest
        if has_exploded:
            return Finding(
                f"value loss {loss:.4g}, {loss / highest:.0f}x the highest it was before ({highest:.3g})",
                "lower learning_rate, or set normalize_reward: true",
            )
        return None if has_exploded is None else "fine"


class ReturnDrop:
    """More than half of what was learned is lost, or far more than chance if the run started with a good policy."""

    kind: ClassVar[str] = "return_drop"

    def __init__(self) -> None:
        self._limit = math.inf
        self._was_low = False
        self._is_low = Streak(3)

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge at summaries by the mean of the last hundred episodes; the limit is set before the loss begins."""
        returns = history.returns
        if not isinstance(event, MetricsReported) or not event.is_training:
            return None
        if returns.recent is None or returns.best is None or returns.first is None:
            return None
        if not self._was_low:
            by_chance = max(3 * returns.deviation, 0.1 * abs(returns.best))
            self._limit = max(returns.gain / 2, returns.deviation) if returns.gain > 0 else by_chance
        self._was_low = returns.loss > self._limit
        if self._is_low.add(self._was_low) and history.num_summaries > WARM_UP:
            began = f" (it began at {returns.first:.4g})" if returns.gain > 0 else ""
            return Finding(
                f"mean return {returns.recent:.4g}, down from its best {returns.best:.4g}{began}",
                "roll back to the best checkpoint, and lower learning_rate",
            )
        return "fine" if returns.loss < 0.6 * self._limit else None
