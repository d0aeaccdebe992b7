"""The terms of a loss of Schulman et al. 2017 with their gradients in closed form, for numpy arrays and torch tensors
alike: of the policy, of the values, and the entropy.

Shapes: B rows, A continuous dimensions, K branches, H head columns (A means, then the logits of every branch), W ratio
columns (A + K, or 1 when they are joined), R reward streams.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from rl_tui.engine.learning.distributions import action_distributions, array_namespace
from rl_tui.engine.learning.on_policy.actor_critic import Outputs
from rl_tui.engine.learning.on_policy.prepared import Columns
from rl_tui.engine.specs import ActionSpec

Array: TypeAlias = Any  # numpy array or torch tensor: the operators below mean the same for both


class ActionProbabilities:
    """How probable the networks' policy makes the actions that were taken. log_probs: f32[B, W]. entropy: f32[]."""

    def __init__(self, outputs: Outputs, columns: Columns, actions: ActionSpec):
        """columns: of `Minibatch`. Those of its log-probabilities also say whether W = 1."""
        self._xp, self._is_joint = array_namespace(outputs.head), columns["log_probs"].shape[1] == 1
        taken = columns["continuous"], columns["chosen"], columns.get("allowed")
        self._parts = action_distributions(outputs.head, outputs.log_sigma, actions, *taken)
        log_probs = self._joined([part.log_probs for part in self._parts])
        self.log_probs = log_probs.sum(1)[:, None] if self._is_joint and log_probs.shape[1] > 1 else log_probs
        self.entropy = sum(part.entropy for part in self._parts)

    def gradients(self, grad_log_probs: Array, beta: float) -> tuple[Array, Array | None]:
        """A loss's gradients for head f32[B, H] and log_sigma f32[A], given that for `log_probs` f32[B, W].

        The loss also contains minus beta times the entropy.
        """
        grad_head, grad_log_sigma, begin = [], None, 0
        for part in self._parts:
            own = grad_log_probs if self._is_joint else grad_log_probs[:, begin : begin + part.columns]
            grad_part, grad_spread = part.gradients(own, beta)
            grad_head.append(grad_part)
            grad_log_sigma = grad_log_sigma if grad_spread is None else grad_spread
            begin += part.columns
        return self._joined(grad_head), grad_log_sigma

    def _joined(self, columns: list[Array]) -> Array:
        return columns[0] if len(columns) == 1 else self._xp.concatenate(columns, 1)


def clipped_surrogate(ratio: Array, advantage: Array, epsilon: float) -> tuple[Array, Array, Array]:
    """Minus L^CLIP of equation 7, f32[]; its gradient for log-probabilities f32[B, W]; the fraction of ratios clipped.

    ratio: f32[B, W]. advantage: f32[B].
    """
    xp = array_namespace(ratio)
    size = ratio.shape[0] * ratio.shape[1]
    bounded = xp.clip(ratio, 1 - epsilon, 1 + epsilon)
    free, clipped = ratio * advantage[:, None], bounded * advantage[:, None]
    grad_log_probs = free * (free <= clipped) * (-1 / size)
    return -xp.minimum(free, clipped).sum() / size, grad_log_probs, (ratio != bounded).sum() / size


def divergence(ratio: Array, log_ratio: Array) -> Array:
    """How far the policy moved, f32[]: k3 in Schulman's note "Approximating KL divergence"."""
    return (ratio - 1 - log_ratio).sum() / (ratio.shape[0] * ratio.shape[1])


def squared_error(
    values: Array, old_values: Array, returns: Array, clip: float | None, coefficient: float
) -> tuple[Array, Array]:
    """L^VF of equation 9, f32[], and the gradient of `coefficient` times that for values f32[B, R].

    The squared error, or with a clip the larger of it and that of the value moved by at most the clip.
    """
    xp = array_namespace(values)
    error = values - returns
    squares, slope = error * error, error
    if clip is not None:
        step = values - old_values
        bounded = xp.clip(step, -clip, clip)
        clipped_error = old_values + bounded - returns
        is_free = squares >= clipped_error * clipped_error
        squares = xp.maximum(squares, clipped_error * clipped_error)
        slope = error * is_free + clipped_error * (~is_free & (step == bounded))
    return squares.mean(), slope * (2 * coefficient / (error.shape[0] * error.shape[1]))
