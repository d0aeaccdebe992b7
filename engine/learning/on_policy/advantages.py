"""Advantages and returns of packed segments.  Shapes: N rows, P segments, S reward streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from rl_tui.engine.learning.discounted_sums import discounted_sums
from rl_tui.engine.learning.on_policy.rollout import Rollout
from rl_tui.engine.learning.rewards.streams import RewardStreams
from rl_tui.engine.learning.sync import Sync
from rl_tui.engine.learning.value_estimates import ValueEstimates
from rl_tui.engine.specs import TERMINATED, Float32, Int64

Array: TypeAlias = Any  # numpy array or torch tensor
EPSILON = 1e-10  # ML-Agents; keeps a constant advantage finite


def gae(
    rewards: Float32, values: Float32, next_values: Float32, lengths: Int64, gammas: Float32, lam: float
) -> tuple[Float32, Float32]:
    """Advantages and returns, f32[N, S] each (Schulman et al. 2016, eq. 16; returns are advantages + values).

    rewards, values: f32[N, S], segment after segment. next_values: f32[P, S], the value of the state after each
    segment, zero if and only if its episode terminated. lengths: i64[P]. gammas: f32[S].
    """
    last = np.cumsum(lengths) - 1
    following = np.empty_like(values)
    following[:-1] = values[1:]
    following[last] = next_values
    deltas = rewards + gammas * following - values
    factors = np.broadcast_to(gammas * np.float32(lam), deltas.shape).copy()
    factors[last] = 0
    advantages = discounted_sums(deltas, factors, int(lengths.max()))
    return advantages, advantages + values


def rollout_advantages(
    rollout: Rollout, estimates: ValueEstimates, streams: RewardStreams, lam: float
) -> tuple[Float32, Float32]:
    """`gae` of a rollout: nothing follows a termination, unless the signal of a stream ignores it."""
    block = rollout.experience
    ends = (block.endings == TERMINATED)[:, None] & streams.masks_terminal
    next_values = np.where(ends, np.float32(0), estimates.next_values)
    return gae(rollout.rewards, estimates.values, next_values, block.lengths, streams.gammas, lam)


def normalized(advantages: Sequence[Array], sync: Sync) -> list[Array]:
    """Each of these arrays f32[B] with mean 0 and deviation 1, over the rows of all ranks."""
    means = sync.mean_of_each(advantages)
    centered = [advantage - mean for advantage, mean in zip(advantages, means, strict=True)]
    variances = sync.mean_of_each([each * each for each in centered])  # of populations: torch's divide by one less
    return [each / (variance**0.5 + EPSILON) for each, variance in zip(centered, variances, strict=True)]
