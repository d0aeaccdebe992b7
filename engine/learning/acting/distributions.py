"""Forms of the action distributions that act, where a call costs more than its arithmetic, with ML-Agents' constants.

Shapes: N agents, B rows, A continuous dimensions, C choices of one branch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.specs import Bool, Float32, Int64

Array: TypeAlias = Any  # numpy array or torch tensor
EPSILON = 1e-7
LOG_TWO = math.log(2)
LOG_SQRT_TWO_PI = 0.5 * math.log(2 * math.pi)
FORBIDDEN = 1e8  # subtracted from the logit of a choice that the mask forbids
ACTION_LIMIT = 3.0  # continuous samples are clipped to +-3 and divided by 3 on their way to the environment
MIN_LOG_SIGMA, MAX_LOG_SIGMA = -20.0, 2.0  # where the spread depends on observations


def before_bounds(bounded: Float32, is_squashed: bool) -> Float32:
    """f32[B, A]: continuous actions as training learns from them, of those of the environment in [-1, 1]."""
    return bounded if is_squashed else bounded * np.float32(ACTION_LIMIT)


def bounded(drawn: Float32) -> Float32:
    """f32[B, A] in [-1, 1]: what the environment gets of actions that were not squashed."""
    clipped: Float32 = drawn.clip(-ACTION_LIMIT, ACTION_LIMIT)  # np.clip takes twice as long
    return clipped / np.float32(ACTION_LIMIT)


class Uniform(Protocol):
    """What draws numbers from 0 to 1, 1 excluded: a generator of numpy, or CopyGenerators."""

    def random(self, size: tuple[int, ...], /) -> NDArray[np.float64]:
        """f64 of that shape."""


def mask_logits_to_act(logits: Float32, allowed: Bool) -> Float32:
    """The same numbers for a boolean mask, in one operation."""
    return np.where(allowed, logits, np.float32(-FORBIDDEN))


def gaussian_scale(xp: Any, sigma: Array) -> tuple[Array, Array]:
    """1 / (2 sigma^2) and ln(sigma sqrt(2 pi)), f32[A] each."""
    return 1 / (2 * sigma * sigma + EPSILON), xp.log(sigma + EPSILON) + LOG_SQRT_TWO_PI


def gaussian_log_probs_to_act(noise: Float32, precision: Float32, log_scale: Float32) -> Float32:
    """f32[N, A]: `Gaussian.log_probs` of mean + noise, with the results of `gaussian_scale`."""
    return -(noise * noise) * precision - log_scale


def squashed_log_probs(noise: Array, log_sigma: Array, drawn: Array, softplus: Callable[[Array], Array]) -> Array:
    """f32[B, A]: ln of the density of tanh(drawn), drawn = mean + sigma noise (Haarnoja et al. 2018, appendix C)."""
    # ln(1 - tanh(u)^2) = 2 (ln 2 - u - softplus(-2u)), which keeps its digits where tanh is 1
    slope = 2 * (LOG_TWO - drawn - softplus(-2 * drawn))
    return -0.5 * noise * noise - log_sigma - LOG_SQRT_TWO_PI - slope


def squashed_log_probs_to_act(noise: Array, log_sigma: Array, drawn: Array) -> Array:
    """`squashed_log_probs` f32[N, A] of arrays."""
    return squashed_log_probs(noise, log_sigma, drawn, softplus)


def softplus(x: Float32) -> Float32:
    """ln(1 + e^x)."""
    return np.logaddexp(np.float32(0), x)


def choose_to_act(logits: Float32, random: Uniform | None) -> tuple[Int64, Float32]:
    """Choices i64[N] of logits f32[N, C], by the inverse of the cumulated probability, and their log-probabilities
    f32[N] as `Categorical` has them. random: None for the likeliest."""
    weights = np.exp(logits - logits.max(1, keepdims=True))
    cumulated = weights.cumsum(1)
    total = cumulated[:, -1:]
    # in float64 random() * total stays below total, so that a choice without weight is never drawn
    chosen = logits.argmax(1) if random is None else (cumulated <= random.random(total.shape) * total).sum(1)
    return chosen, _log_share(weights, total, chosen)


def choice_log_probs_to_act(logits: Float32, chosen: Int64) -> Float32:
    """f32[N]: the log-probabilities that `choose_to_act` returns with these choices i64[N]."""
    weights = np.exp(logits - logits.max(1, keepdims=True))
    return _log_share(weights, weights.cumsum(1)[:, -1:], chosen)


def _log_share(weights: Float32, total: Float32, chosen: Int64) -> Float32:
    picked = weights[np.arange(len(weights)), chosen]
    shares: Float32 = np.log(picked / total[:, 0] + np.float32(EPSILON))
    return shares
