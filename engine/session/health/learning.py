"""Rules about what a behavior learns, judged at its summaries. docs/warnings.md explains the limits."""

from __future__ import annotations

import math
import statistics
from collections import deque

from rl_tui.engine.session.health.behavior_history import WARM_UP, BehaviorHistory
from rl_tui.engine.session.health.rules import Explosion, Finding, Streak, Verdict, metric, short_count
from rl_tui.engine.session.messages import Event, MetricsReported


class DivergenceSpike:
    """Updates move the policy several times as far as they usually do."""

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
                "lower learning_rate",
            )
        return "fine" if is_fine else None


class ClippedUpdates:
    """Most of each batch is clipped and does not contribute to the gradient."""

    def __init__(self) -> None:
        self._is_high = Streak(3)

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge summaries."""
        fraction = metric(event, "Policy/Clip Fraction")
        if fraction is None:
            return None
        if self._is_high.add(fraction > 0.4) and history.num_summaries > WARM_UP:
            return Finding(f"clip fraction {fraction:.3g}, above 0.4 for 3 summaries", "lower learning_rate")
        return "fine" if fraction < 0.3 else None


class LossNotFinite:
    """A loss is NaN or infinite."""

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
                    " if training has ended, a resumed run continues from the last checkpoint",
                )
        return "fine" if losses else None


class ValueLossExplosion:
    """The value loss is far above all its earlier values, and the returns are not near their best.

    It grows with the square of the returns and jumps at a first success, which is fine.
    """

    def __init__(self) -> None:
        self._loss = Explosion()

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge summaries."""
        loss = metric(event, "Losses/Value Loss")
        if loss is None:
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
