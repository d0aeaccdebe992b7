"""Formulas of the action distributions, with ML-Agents' constants, so that its published settings mean the same here.

Most are written once for numpy arrays and torch tensors, with operators that mean the same for both. Acting has forms
of its own where a call costs more than its arithmetic; they are next to those of learning, and tests hold them equal.

Shapes: N agents, B rows, A continuous dimensions, K branches, C choices of one branch, M mask columns (all choices).
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.nn import functional

from rl_tui.engine.specs import ActionSpec, Bool, Float32, Int64

Array: TypeAlias = Any  # numpy array or torch tensor
EPSILON = 1e-7
LOG_TWO = math.log(2)
LOG_SQRT_TWO_PI = 0.5 * math.log(2 * math.pi)
TWO_PI_E = 2 * math.pi * math.e
FORBIDDEN = 1e8  # subtracted from the logit of a choice that the mask forbids
ACTION_LIMIT = 3.0  # continuous samples are clipped to +-3 and divided by 3 on their way to the environment
MIN_LOG_SIGMA, MAX_LOG_SIGMA = -20.0, 2.0  # where the spread depends on observations


def array_namespace(array: Array) -> Any:
    """The array's library: numpy or torch."""
    return np if isinstance(array, np.ndarray) else torch


def one_hot(chosen: Int64, branches: tuple[int, ...]) -> Float32:
    """f32[N, M] of i64[N, K]: 1 in the column of each branch's choice."""
    columns = np.zeros((len(chosen), sum(branches)), np.float32)
    starts = np.cumsum([0, *branches[:-1]]) if branches else np.empty(0, np.int64)
    np.put_along_axis(columns, chosen + starts, 1.0, axis=1)
    return columns


def mask_logits(logits: Array, allowed: Array) -> Array:
    """Logits f32[B, C] that give a forbidden choice no probability, finite also when nothing is allowed.

    allowed: f32[B, C] of 0 and 1; a traced graph has this form too.
    """
    return logits * allowed - FORBIDDEN * (1 - allowed)


def mask_logits_to_act(logits: Float32, allowed: Bool) -> Float32:
    """The same numbers for a boolean mask, in one operation."""
    return np.where(allowed, logits, np.float32(-FORBIDDEN))


def gaussian_scale(xp: Any, sigma: Array) -> tuple[Array, Array]:
    """1 / (2 sigma^2) and ln(sigma sqrt(2 pi)), f32[A] each."""
    return 1 / (2 * sigma * sigma + EPSILON), xp.log(sigma + EPSILON) + LOG_SQRT_TWO_PI


def gaussian_log_probs_to_act(noise: Float32, precision: Float32, log_scale: Float32) -> Float32:
    """f32[N, A]: `Gaussian.log_probs` of mean + noise, with the results of `gaussian_scale`."""
    return -(noise * noise) * precision - log_scale


def squashed_log_probs(noise: Array, log_sigma: Array, drawn: Array) -> Array:
    """f32[B, A]: ln of the density of tanh(drawn), drawn = mean + sigma noise (Haarnoja et al. 2018, appendix C)."""
    # ln(1 - tanh(u)^2) = 2 (ln 2 - u - softplus(-2u)), which keeps its digits where tanh is 1
    slope = 2 * (LOG_TWO - drawn - _softplus(-2 * drawn))
    return -0.5 * noise * noise - log_sigma - LOG_SQRT_TWO_PI - slope


def _softplus(x: Array) -> Array:
    return np.logaddexp(np.float32(0), x) if isinstance(x, np.ndarray) else functional.softplus(x)


def choose_to_act(logits: Float32, random: np.random.Generator | None) -> tuple[Int64, Float32]:
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


class Gaussian:
    """ln N(a | mu, sigma) per dimension; entropy is the mean over dimensions, as in ML-Agents."""

    def __init__(self, xp: Any, mean: Array, log_sigma: Array, actions: Array):
        sigma = xp.exp(log_sigma)
        square = sigma * sigma
        self.columns = mean.shape[1]
        self._distance = actions - mean
        precision, log_scale = gaussian_scale(xp, sigma)
        self._weighted = self._distance * precision
        self._share = sigma / (sigma + EPSILON)
        self._entropy_slope = TWO_PI_E * square / (TWO_PI_E * square + EPSILON) / self.columns
        self._spread = 2 * square * precision
        self.log_probs = -(self._distance * self._weighted) - log_scale
        self.entropy = (0.5 * xp.log(TWO_PI_E * square + EPSILON)).mean()

    def gradients(self, grad_log_prob: Array, beta: float) -> tuple[Array, Array]:
        """The loss's gradients for mean f32[B, A] and log_sigma f32[A]. grad_log_prob: f32[B, A], or f32[B, 1]."""
        grad_mean = 2 * self._weighted * grad_log_prob
        grad_log_sigma = (grad_mean * self._distance).sum(0) * self._spread - grad_log_prob.sum(0) * self._share
        return grad_mean, grad_log_sigma - beta * self._entropy_slope


class Categorical:
    """ln(p + eps) of one branch's choice, p = softmax(logits); entropy is the mean over rows of -sum p ln(p + eps)."""

    columns = 1

    def __init__(self, xp: Any, logits: Array, chosen: Array, allowed: Array | None):
        if allowed is not None:
            logits = mask_logits(logits, allowed)
        weights = xp.exp(logits - xp.amax(logits, 1)[:, None])
        self._p = weights / weights.sum(1)[:, None]
        self._logs = xp.log(self._p + EPSILON)
        self._chosen = chosen
        self._allowed = allowed
        self.log_probs = (self._logs * chosen).sum(1)[:, None]
        self.entropy = -(self._p * self._logs).sum() / len(logits)

    def gradients(self, grad_log_prob: Array, beta: float) -> tuple[Array, None]:
        """The loss's gradient for logits f32[B, C]; there is no spread. grad_log_prob: f32[B, 1]."""
        p, share = self._p, self._p / (self._p + EPSILON)
        grad_log_p = share * self._chosen * grad_log_prob
        if beta:
            grad_log_p += (beta / len(p)) * p * (self._logs + share)  # minus beta times the entropy
        gradient = grad_log_p - p * grad_log_p.sum(1)[:, None]
        return (gradient if self._allowed is None else gradient * self._allowed), None


def action_distributions(
    head: Array, log_sigma: Array | None, actions: ActionSpec, continuous: Array, chosen: Array, allowed: Array | None
) -> list[Gaussian | Categorical]:
    """The distributions of the actions of B rows: one for all continuous dimensions, then one per branch.

    head: f32[B, A + M], means and logits. log_sigma: f32[A]. continuous: f32[B, A]. chosen: f32[B, M] as of `one_hot`.
    allowed: f32[B, M], 0 for a forbidden choice, or None.
    """
    parts: list[Gaussian | Categorical] = []
    xp, begin = array_namespace(head), 0
    if log_sigma is not None:
        parts.append(Gaussian(xp, head[:, : actions.continuous], log_sigma, continuous))
    for size in actions.branches:
        columns = slice(begin, begin + size)
        logits = head[:, actions.continuous :][:, columns]
        parts.append(Categorical(xp, logits, chosen[:, columns], None if allowed is None else allowed[:, columns]))
        begin += size
    return parts
