"""PPO's loss with its gradient in closed form, for numpy arrays and torch tensors alike.

Shapes: B rows, A continuous dimensions, K branches, H head columns (A means, then the logits of every branch), W ratio
columns (A + K, or 1 when they are joined), S reward streams. Written with the letters of Schulman et al. 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import e, pi
from typing import Any, TypeAlias

import numpy as np
import torch

from rl_tui.engine.learning.distributions import EPSILON, FORBIDDEN, LOG_SQRT_TWO_PI
from rl_tui.engine.learning.ppo.batch import Batch
from rl_tui.engine.specs import ActionSpec

Array: TypeAlias = Any  # numpy array or torch tensor: the operators below mean the same for both


@dataclass(frozen=True, slots=True)
class Coefficients:
    """What weighs the terms of the loss. value_clip: None for a plain squared error."""

    epsilon: float
    beta: float
    value: float
    value_clip: float | None
    joint_ratio: bool


@dataclass(frozen=True, slots=True)
class Loss:
    """Terms of the loss as f32[] and its gradient by head f32[B, H], values f32[B, S] and log_sigma f32[A].

    divergence: k3 of Schulman's note "Approximating KL divergence". clipped: the fraction of ratios out of bounds.
    """

    total: Array
    policy: Array
    value: Array
    entropy: Array
    divergence: Array
    clipped: Array
    grad_head: Array
    grad_values: Array
    grad_log_sigma: Array | None


def surrogate_loss(
    head: Array, values: Array, log_sigma: Array | None, batch: Batch, actions: ActionSpec, coefficients: Coefficients
) -> Loss:
    """The loss of rows whose networks gave `head` and `values`."""
    xp = np if isinstance(head, np.ndarray) else torch
    parts = _distributions(xp, head, log_sigma, batch, actions)
    log_probs = _joined(xp, [part.log_probs for part in parts])
    if coefficients.joint_ratio:
        log_probs = log_probs.sum(1)[:, None]
    log_ratio = log_probs - batch.log_probs
    ratio = xp.exp(log_ratio)
    size = ratio.shape[0] * ratio.shape[1]
    bounded = xp.clip(ratio, 1 - coefficients.epsilon, 1 + coefficients.epsilon)
    advantage = batch.advantage[:, None]
    free, clipped = ratio * advantage, bounded * advantage
    policy = -xp.minimum(free, clipped).sum() / size
    grad_log_prob = free * (free <= clipped) * (-1 / size)
    value, grad_values = _value_loss(xp, values, batch, coefficients)
    entropy = sum(part.entropy for part in parts)
    grad_head, grad_log_sigma = _backward(xp, parts, grad_log_prob, coefficients.beta)
    return Loss(
        total=policy + coefficients.value * value - coefficients.beta * entropy,
        policy=policy,
        value=value,
        entropy=entropy,
        divergence=(ratio - 1 - log_ratio).sum() / size,
        clipped=(ratio != bounded).sum() / size,
        grad_head=grad_head,
        grad_values=grad_values,
        grad_log_sigma=grad_log_sigma,
    )


def _distributions(
    xp: Any, head: Array, log_sigma: Array | None, batch: Batch, actions: ActionSpec
) -> list[_Gaussian | _Categorical]:
    """What the head means: one distribution for all continuous dimensions, one per branch, in the head's order."""
    parts: list[_Gaussian | _Categorical] = []
    if log_sigma is not None:
        parts.append(_Gaussian(xp, head[:, : actions.continuous], log_sigma, batch.continuous))
    begin = 0
    for size in actions.branches:
        columns = slice(begin, begin + size)
        logits = head[:, actions.continuous :][:, columns]
        allowed = None if batch.allowed is None else batch.allowed[:, columns]
        parts.append(_Categorical(xp, logits, batch.chosen[:, columns], allowed))
        begin += size
    return parts


def _backward(
    xp: Any, parts: list[_Gaussian | _Categorical], grad_log_prob: Array, beta: float
) -> tuple[Array, Array | None]:
    """The loss's gradient by head f32[B, H] and log_sigma f32[A], given that by log-probabilities f32[B, W]."""
    grad_head, grad_log_sigma, begin = [], None, 0
    for part in parts:
        is_joint = grad_log_prob.shape[1] == 1
        own = grad_log_prob if is_joint else grad_log_prob[:, begin : begin + part.columns]
        grad_part, grad_spread = part.gradients(own, beta)
        grad_head.append(grad_part)
        grad_log_sigma = grad_log_sigma if grad_spread is None else grad_spread
        begin += part.columns
    return _joined(xp, grad_head), grad_log_sigma


def _joined(xp: Any, columns: list[Array]) -> Array:
    return columns[0] if len(columns) == 1 else xp.concatenate(columns, 1)


class _Gaussian:
    """ln N(a | mu, sigma) per dimension; entropy is the mean over dimensions, as ML-Agents counts it."""

    def __init__(self, xp: Any, mean: Array, log_sigma: Array, actions: Array):
        sigma = xp.exp(log_sigma)
        square = sigma * sigma
        self.columns = mean.shape[1]
        self._distance = actions - mean
        self._precision = 1 / (2 * square + EPSILON)
        self._weighted = self._distance * self._precision
        self._share = sigma / (sigma + EPSILON)
        self._entropy_slope = 2 * pi * e * square / (2 * pi * e * square + EPSILON) / self.columns
        self._spread = 2 * square * self._precision
        self.log_probs = -(self._distance * self._weighted) - (xp.log(sigma + EPSILON) + LOG_SQRT_TWO_PI)
        self.entropy = (0.5 * xp.log(2 * pi * e * square + EPSILON)).mean()

    def gradients(self, grad_log_prob: Array, beta: float) -> tuple[Array, Array]:
        """Of the loss by mean f32[B, A] and by log_sigma f32[A]; grad_log_prob: f32[B, A], or f32[B, 1] for all."""
        grad_mean = 2 * self._weighted * grad_log_prob
        grad_log_sigma = (grad_mean * self._distance).sum(0) * self._spread - grad_log_prob.sum(0) * self._share
        return grad_mean, grad_log_sigma - beta * self._entropy_slope


class _Categorical:
    """ln(p + eps) of one branch's choice, p = softmax(logits); entropy is the mean over rows of -sum p ln(p + eps)."""

    columns = 1

    def __init__(self, xp: Any, logits: Array, chosen: Array, allowed: Array | None):
        if allowed is not None:
            logits = logits * allowed - FORBIDDEN * (1 - allowed)
        weights = xp.exp(logits - xp.amax(logits, 1)[:, None])
        self._p = weights / weights.sum(1)[:, None]
        self._logs = xp.log(self._p + EPSILON)
        self._chosen = chosen
        self._allowed = allowed
        self.log_probs = (self._logs * chosen).sum(1)[:, None]
        self.entropy = -(self._p * self._logs).sum() / len(logits)

    def gradients(self, grad_log_prob: Array, beta: float) -> tuple[Array, None]:
        """Of the loss by logits f32[B, C], and there is no spread; grad_log_prob: f32[B, 1]."""
        p, share = self._p, self._p / (self._p + EPSILON)
        grad_log_p = share * self._chosen * grad_log_prob
        if beta:
            grad_log_p += (beta / len(p)) * p * (self._logs + share)  # minus beta times the entropy
        gradient = grad_log_p - p * grad_log_p.sum(1)[:, None]
        return (gradient if self._allowed is None else gradient * self._allowed), None


def _value_loss(xp: Any, values: Array, batch: Batch, coefficients: Coefficients) -> tuple[Array, Array]:
    """The value term and the loss's gradient by values f32[B, S].

    Squared error, or with a clip the larger of it and that of a value which moved at most the clip away from the old.
    """
    error = values - batch.returns
    squares, slope = error * error, error
    if coefficients.value_clip is not None:
        step = values - batch.values
        bounded = xp.clip(step, -coefficients.value_clip, coefficients.value_clip)
        clipped_error = batch.values + bounded - batch.returns
        is_free = squares >= clipped_error * clipped_error
        squares = xp.maximum(squares, clipped_error * clipped_error)
        slope = error * is_free + clipped_error * (~is_free & (step == bounded))
    return squares.mean(), slope * (2 * coefficients.value / (error.shape[0] * error.shape[1]))
