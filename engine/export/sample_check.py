"""Whether sampled actions come as often as a policy's distribution says.

Shapes: B rows, A continuous dimensions, K branches, C choices of one branch, X events that were counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from rl_tui.engine.errors import ExportError
from rl_tui.engine.export.exported_policy import ExportedPolicy

PLACES = (-1.0, 0.0, 1.0)  # deviations from the mean, below which samples are counted
BOUND = 0.999  # of a place: up to there neither clipping nor tanh hides how often samples lie below it
RESOLUTION = 1e-5  # of an action: float32 squashes to within some units of its seventh digit


class Counts(NamedTuple):
    """Whether some events happened in each row, bool[B, X], and between which probabilities each should, f64[B, X]."""

    hits: Tensor
    low: Tensor
    high: Tensor


def continuous_counts(
    actions: Tensor, mean: Tensor, sigma: Tensor, blur: float, policy: ExportedPolicy
) -> list[Counts]:
    """Actions f32[B, A], drawn around means f32[B, A] that are known up to `blur`, that lie below three places.

    sigma: f32[B, A] or f32[A]. What is negative is mirrored, so that too small actions of both signs add up. Raises
    ExportError when an action is beyond what the environment takes.
    """
    if not bool((actions.abs() <= 1).all()):
        raise ExportError("the graph's sampled continuous actions leave [-1, 1]")
    counts, side_of_zero = [], torch.where(mean < 0, -1, 1)
    actions, mean = actions * side_of_zero, mean.abs()
    for place in PLACES:
        below = policy.bounded(mean + place * sigma).clamp(-BOUND, BOUND).double()
        low, high = (
            torch.special.ndtr((policy.unbounded(below + side * RESOLUTION) + side * blur - mean) / sigma.double())
            for side in (-1, 1)
        )
        counts.append(Counts(actions <= below, low, high))
    return counts


def discrete_counts(choices: Tensor, branches: Sequence[Tensor]) -> list[Counts]:
    """Each choice of each branch, of i64[B, K] and the masked logits f32[B, C] of each.

    Raises ExportError when a choice does not exist or has no probability.
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
    """Every choice i64[B] is one of those that f32[B, C] has logits for, or ExportError."""
    if not bool(((choice >= 0) & (choice < logits.shape[1])).all()):
        raise ExportError(f"the graph chooses beyond a branch's {logits.shape[1]} choices")


def require_expected(batches: Sequence[Sequence[Counts]]) -> None:
    """Over the rows of all batches, every event happened about as often as it should, or ExportError.

    Eight standard deviations and twenty: by Bernstein's inequality a right graph fails once in 10^12 times.
    """
    for parts in zip(*batches, strict=True):
        hits, low, high = (torch.cat(tensors).double() for tensors in zip(*parts, strict=True))
        found = hits.sum(0)
        slack = 20 + 8 * (high * (1 - high)).clamp(min=0).sum(0).sqrt()
        if not bool(((found >= low.sum(0) - slack) & (found <= high.sum(0) + slack)).all()):
            raise ExportError("the graph's samples do not come as often as the policy's")
