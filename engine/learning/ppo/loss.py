"""PPO's loss with its gradient in closed form, for numpy arrays and torch tensors alike.

Shapes: B rows, A continuous dimensions, K branches, H head columns (A means, then the logits of every branch), W ratio
columns (A + K, or 1 when they are joined), S reward streams. Written with the letters of Schulman et al. 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from rl_tui.engine.learning.distributions import Categorical, Gaussian, action_distributions, array_namespace
from rl_tui.engine.learning.ppo.batch import Batch
from rl_tui.engine.specs import ActionSpec

Array: TypeAlias = Any  # numpy array or torch tensor: the operators below mean the same for both


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Coefficients of the loss. value_clip: None for a plain squared error."""

    epsilon: float
    beta: float
    value: float
    value_clip: float | None
    joint_ratio: bool


@dataclass(frozen=True, slots=True)
class Loss:
    """Terms of the loss, f32[] each, and its gradients for head f32[B, H], values f32[B, S] and log_sigma f32[A].

    divergence: k3 in Schulman's note "Approximating KL divergence". clipped: the fraction of ratios out of bounds.
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
    """The loss of rows with these outputs of the networks."""
    xp = array_namespace(head)
    parts = action_distributions(head, log_sigma, actions, batch.continuous, batch.chosen, batch.allowed)
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


def _backward(
    xp: Any, parts: list[Gaussian | Categorical], grad_log_prob: Array, beta: float
) -> tuple[Array, Array | None]:
    """The loss's gradients for head f32[B, H] and log_sigma f32[A], given that for log-probabilities f32[B, W]."""
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


def _value_loss(xp: Any, values: Array, batch: Batch, coefficients: Coefficients) -> tuple[Array, Array]:
    """The value term and the loss's gradient for values f32[B, S].

    The squared error, or with a clip the larger of it and that of the value moved by at most the clip.
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
