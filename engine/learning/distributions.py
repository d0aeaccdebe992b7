"""Formulas of the action distributions, with ML-Agents' constants, so that its published settings mean the same here.

Most are written once for numpy arrays and torch tensors, with operators that mean the same for both. Acting has forms
of its own (acting/distributions.py); tests hold them equal.

Shapes: N agents, B rows, A continuous dimensions, K branches, C choices of one branch, M mask columns (all choices).
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.nn import functional

from rl_tui.engine.learning.acting import distributions as acting
from rl_tui.engine.learning.acting.distributions import EPSILON, FORBIDDEN, gaussian_scale
from rl_tui.engine.specs import ActionSpec, Float32, Int64

Array: TypeAlias = Any  # numpy array or torch tensor
TWO_PI_E = 2 * math.pi * math.e


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


def squashed_log_probs(noise: Array, log_sigma: Array, drawn: Array) -> Array:
    """f32[B, A]: ln of the density of tanh(drawn), drawn = mean + sigma noise."""
    return acting.squashed_log_probs(noise, log_sigma, drawn, _softplus)


def _softplus(x: Array) -> Array:
    return acting.softplus(x) if isinstance(x, np.ndarray) else functional.softplus(x)


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
