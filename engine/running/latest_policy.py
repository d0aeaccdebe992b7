"""The newest policy of a behavior, for other threads that act with it."""

from __future__ import annotations

from dataclasses import dataclass

from rl_tui.engine.specs import Weights


@dataclass(frozen=True, slots=True)
class PolicySnapshot:
    """Weights, and how many steps they were learned from; None for a policy that only plays."""

    weights: Weights
    step: int | None


class LatestPolicy:
    """Written by its learner, read by any thread at any time. Outlives both the learner and the run."""

    def __init__(self, snapshot: PolicySnapshot) -> None:
        self.snapshot = snapshot
