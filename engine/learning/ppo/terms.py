"""The terms of PPO's loss as metrics, averaged over mini-batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

from rl_tui.engine.learning.ppo.loss import Loss

Array: TypeAlias = Any  # numpy array on the CPU, torch tensor elsewhere
METRICS = {  # of the terms of a loss
    "Losses/Policy Loss": "policy",
    "Losses/Value Loss": "value",
    "Policy/Entropy": "entropy",
    "Policy/KL Divergence": "divergence",
    "Policy/Clip Fraction": "clipped",
}
CUSTOM = "Losses/Custom Loss"  # a term that follows the others where there is a custom loss
TERMS = ("total", *METRICS.values())
NO_TERMS = (0.0,) * len(TERMS)
POLICY, DIVERGENCE = TERMS.index("policy"), TERMS.index("divergence")
Terms: TypeAlias = Sequence[Array]  # f32[] each, in the order of TERMS

terms_of: Callable[[Loss], Terms] = attrgetter(*TERMS)  # those of a loss


def unsigned(terms: Terms) -> Terms:
    """As in ML-Agents: signs of mini-batches do not cancel."""
    return [*terms[:POLICY], abs(terms[POLICY]), *terms[POLICY + 1 :]]


def means(terms: Sequence[Terms], weights: Sequence[int]) -> list[float]:
    """Over mini-batches, moved to the host."""
    by_name, total = zip(*terms, strict=False), sum(weights)  # a custom loss may have come or gone meanwhile
    return [float(sum(term * weight for term, weight in zip(of, weights, strict=True))) / total for of in by_name]


def metrics(terms: Terms) -> dict[str, Any]:
    """By ML-Agents' tag."""
    return dict(zip((*METRICS, CUSTOM), terms[1:], strict=False))
