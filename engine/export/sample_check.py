"""Statistical checks that sampled actions follow a policy's distribution.

Shapes: B rows, A continuous dimensions, K branches, C choices of one branch, X counted events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from rl_tui.engine.errors import ExportError
from rl_tui.engine.export.exported_policy import ExportedPolicy

THRESHOLDS = (-1.0, 0.0, 1.0)  # in deviations from the mean: samples below each are counted
BOUND = 0.999  # of a threshold: beyond it clipping or tanh hides how many samples are below
RESOLUTION = 1e-5  # of an action: float32 tanh is exact to some units of its seventh digit


class Counts(NamedTuple):
    """Which events happened in each row, bool[B, X], and the bounds of their probabilities, f64[B, X]."""

    hits: Tensor
    low: Tensor
    high: Tensor


def continuous_counts(
    actions: Tensor, mean: Tensor, sigma: Tensor, blur: float, policy: ExportedPolicy
) -> list[Counts]:
    """Count the actions f32[B, A] below three thresholds around the means f32[B, A], which are known up to `blur`.

    sigma: f32[B, A] or f32[A]. Negative means are mirrored, so that too small actions of both signs add up. Raises
    ExportError when an action is outside [-1, 1].
    """
    if not bool((actions.abs() <= 1).all()):
        raise ExportError("the graph's sampled continuous actions must be in [-1, 1]")
    bounded, unbounded = policy.module.bounded, policy.module.unbounded
    counts, side_of_zero = [], torch.where(mean < 0, -1, 1)
    actions, mean = actions * side_of_zero, mean.abs()
    for threshold in THRESHOLDS:
        below = bounded(mean + threshold * sigma).clamp(-BOUND, BOUND).double()
        low, high = (
            torch.special.ndtr((unbounded(below + side * RESOLUTION) + side * blur - mean) / sigma.double())
            for side in (-1, 1)
        )
        counts.append(Counts(actions <= below, low, high))
    return counts


def discrete_counts(choices: Tensor, branches: Sequence[Tensor]) -> list[Counts]:
    """Count each choice of each branch. choices: i64[B, K]. branches: the masked logits f32[B, C] of each.

    Raises ExportError when a choice does not exist or has probability zero.
    """
    counts = []
    for branch, (choice, logits) in enumerate(zip(choices.unbind(1), branches, strict=True)):
        require_in_range(choice, logits)
        hits, probabilities = functional.one_hot(choice, logits.shape[1]).bool(), logits.double().softmax(1)
        if bool((hits & (probabilities == 0)).any()):
            raise ExportError(f"the graph samples forbidden choices of branch {branch}")
        counts.append(Counts(hits, probabilities, probabilities))
    return counts


def require_in_range(choice: Tensor, logits: Tensor) -> None:
    """Raise ExportError unless every choice i64[B] has a logit in f32[B, C]."""
    if not bool(((choice >= 0) & (choice < logits.shape[1])).all()):
        raise ExportError(f"the graph's discrete actions must be from 0 to {logits.shape[1] - 1}")


def require_expected(batches: Sequence[Sequence[Counts]]) -> None:
    """Raise ExportError unless every event happened about as often as expected, over the rows of all batches.

    The slack is eight standard deviations and twenty: by Bernstein's inequality a correct graph fails once in 10^12.
    """
    for parts in zip(*batches, strict=True):
        hits, low, high = (torch.cat(tensors).double() for tensors in zip(*parts, strict=True))
        found = hits.sum(0)
        slack = 20 + 8 * (high * (1 - high)).clamp(min=0).sum(0).sqrt()
        if not bool(((found >= low.sum(0) - slack) & (found <= high.sum(0) + slack)).all()):
            raise ExportError("the graph's samples must be distributed like the policy's")
