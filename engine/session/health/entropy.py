"""Rules about how much a policy explores. docs/warnings.md explains the limits."""

from __future__ import annotations

import math

from rl_tui.engine.session.health.behavior_history import WARM_UP, BehaviorHistory
from rl_tui.engine.session.health.rules import Finding, Streak, Verdict, metric, metrics, short_count
from rl_tui.engine.session.messages import Event

COEFFICIENTS = ("Policy/Continuous Entropy Coeff", "Policy/Discrete Entropy Coeff")
UNIT_GAUSSIAN_ENTROPY = 0.5 * math.log(2 * math.pi * math.e)  # of one action with deviation 1, as at the start


class EntropyCollapse:
    """The policy is nearly deterministic without being good.

    With discrete actions it has lost all but 2 % of its initial entropy (0.01 or less counts as none). Continuous
    actions have a differential entropy, which may be negative: -3 means a deviation of about 0.01. The sign shows which
    kind it is. A trainer that holds the entropy at a target reports the sum over its actions, and targets about -1 for
    each: there it is too low at three times a negative target, or at 3 below the target.
    """

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
        if history.is_good or entropy > (low + 0.5 if self._is_continuous else 2 * low):
            return "fine"
        return self._finding(entropy, history) if has_lasted else None

    @property
    def _is_continuous(self) -> bool:
        return self._lowest < -0.01  # rounding cannot make the entropy of discrete actions that negative

    def _limit(self, history: BehaviorHistory) -> float:
        """The entropy that is too low; minus infinity where it has an unknown target."""
        if not self._is_continuous:
            return max(0.01, 0.02 * self._first)
        if not history.entropy_target:
            return -3.0
        target = history.hyperparameters.get(history.entropy_target, -math.inf)
        return target - max(3.0, 2 * abs(target))

    def _finding(self, entropy: float, history: BehaviorHistory) -> Finding:
        since = f"since step {short_count(self._low_since or 0)}"
        seen = f"entropy {entropy:.3g}, near zero {since}"
        if self._is_continuous and history.entropy_target:
            target = history.hyperparameters[history.entropy_target]
            seen = f"entropy {entropy:.3g} {since}, far below its target {target:.3g}"
        elif self._is_continuous:
            deviation = math.exp(max(entropy - UNIT_GAUSSIAN_ENTROPY, -100.0))
            seen = f"entropy {entropy:.3g} {since}, actions deviate by {deviation:.1g}"
        return Finding(
            f"{seen}: the policy may have collapsed",
            "reward its entropy more, or roll back to an earlier checkpoint",
        )


class EntropyCoefficient:
    """The learned entropy coefficient vanishes, or grows without bound.

    It settles where the entropy reaches its target, at a value that depends on the rewards: it is wrong only far from
    1, or from its initial value, and without good returns.
    """

    def __init__(self) -> None:
        self._first: float | None = None
        self._before = 0.0
        self._is_low, self._is_rising = Streak(3), Streak(5)

    def judge(self, event: Event, history: BehaviorHistory) -> Verdict:
        """Judge summaries: the smaller of two coefficients for vanishing, the larger for growing."""
        values = metrics(event, COEFFICIENTS)
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
