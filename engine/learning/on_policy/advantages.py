"""Advantages and returns of packed segments.  Shapes: N rows, P segments, S reward streams."""

from __future__ import annotations

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


def normalized(advantage: Array, sync: Sync) -> Array:
    """Advantages of mean 0 and deviation 1, over the rows of all ranks."""
    centered = advantage - sync.mean(advantage)
    deviation = sync.mean(centered * centered) ** 0.5  # of the population: torch's std() divides by one less
    return centered / (deviation + EPSILON)
