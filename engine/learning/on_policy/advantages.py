"""Advantages and returns of packed segments.  Shapes: N rows, P segments, S reward streams."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.specs import Float32, Int64

Float = TypeVar("Float", np.float32, np.float64)


def discounted_sums(terms: NDArray[Float], factors: NDArray[Float], longest: int) -> NDArray[Float]:
    """y with y[i] = terms[i] + factors[i] * y[i + 1], all rows at once.

    terms, factors: [N, ...]; a factor of zero ends a sum; that of the last row must be zero. longest: at least the
    number of rows in any sum. Takes log2(longest) passes over doubling windows (Hillis and Steele 1986).
    """
    sums, products = terms.copy(), factors.copy()
    window = 1
    while window < longest:
        sums[:-window] += products[:-window] * sums[window:]
        products[:-window] *= products[window:]
        window *= 2
    return sums


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
