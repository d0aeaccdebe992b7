"""The gradients of soft actor-critic's losses, written out in numpy.

Shapes: B rows, D feature columns, A continuous dimensions, K branches, M mask columns (1 without branches, for
values), S reward streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from rl_tui.engine.learning.acting.layers import Activation
from rl_tui.engine.learning.networks.flat import FlatParameters
from rl_tui.engine.learning.networks.numpy.mlp import MLP
from rl_tui.engine.learning.networks.numpy.named_layers import NamedLayers
from rl_tui.engine.learning.sac.batch import SoftBatch
from rl_tui.engine.learning.sac.losses import (
    SoftLosses,
    log_alpha_gradient,
    mean_entropy,
    policy_temperatures,
    soft_values,
)
from rl_tui.engine.learning.sac.networks import SoftParameters
from rl_tui.engine.learning.sac.policy import NumpySoftPolicy, numpy_soft_policy
from rl_tui.engine.specs import ActionSpec, Float32

Array: TypeAlias = Any


class NumpySoftGradients:
    """The formulas of `soft_losses` and their derivatives, for stacks of linear layers over vectors on the CPU.

    numpy's small operations cost a fifth of torch's, and no graph is recorded: half of torch's time for an update of
    256 rows and layers of 256 units is overhead.
    """

    def __init__(self, parameters: SoftParameters, actions: ActionSpec, activation: Activation):
        self._actions = actions
        self._log_alpha: Float32 = parameters.temperature.parameters.numpy()
        self._grad_log_alpha: Float32 = parameters.temperature.gradient.numpy()
        self._actor = NamedLayers(parameters.actor, activation).network("body.")
        self._q = _twins(parameters.q, activation)
        self._value = None if parameters.value is None else NamedLayers(parameters.value, activation).network("body.")
        self._target = (
            _twins(parameters.target, activation)
            if parameters.value is None
            else [NamedLayers(parameters.target, activation).network("body.")]
        )

    def place(self, array: np.ndarray[Any, Any]) -> Array:
        """The array itself."""
        return array

    def place_all(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[Array]:
        """The arrays themselves."""
        return list(arrays)

    def mean(self, rows: Sequence[Sequence[Array]]) -> list[float]:
        """See SoftGradients."""
        means: list[float] = np.mean(rows, 0).tolist()
        return means

    def __call__(self, batch: SoftBatch, target_entropy: float) -> SoftLosses:
        """See SoftGradients."""
        alpha: Float32 = np.exp(self._log_alpha)
        q_target = batch.rewards + batch.discounts * self._next_values(batch, alpha)
        q_losses, errors = self._learn_q(batch, q_target)
        policy = numpy_soft_policy(self._actor.forward(batch.features[0]), self._actions, batch.noise, batch.allowed)
        of_policy = self._values(self._q, batch.features[0], policy.continuous, q_target.shape[1])
        soft = soft_values(of_policy, policy, alpha)
        temperatures = policy_temperatures(alpha, self._actions)
        policy_loss = self._learn_policy(policy, of_policy, temperatures, batch.allowed)
        value_loss = None if self._value is None else self._learn_value(self._value, batch, soft)
        self._grad_log_alpha[:] = log_alpha_gradient(policy, self._actions, target_entropy, batch.allowed)
        return SoftLosses(
            policy=policy_loss,
            q=q_losses,
            value=value_loss,
            grad_log_alpha=self._grad_log_alpha,
            alpha=alpha,
            entropy=mean_entropy(policy),
            values=soft.mean(0),
            errors=errors,
        )

    def _next_values(self, batch: SoftBatch, alpha: Float32) -> Float32:
        if self._value is not None:
            return self._target[0].forward(batch.next_features[0])
        head = self._actor.forward(batch.next_features[0])
        policy = numpy_soft_policy(head, self._actions, batch.next_noise, batch.next_allowed)
        streams = batch.rewards.shape[1]
        of_policy = self._values(self._target, batch.next_features[0], policy.continuous, streams)
        values: Float32 = soft_values(of_policy, policy, alpha)
        return values

    def _values(self, twins: list[MLP], features: Float32, continuous: Float32, streams: int) -> Float32:
        """f32[2, B, S, M]."""
        inputs = np.concatenate([features, continuous], 1) if continuous.shape[1] else features
        return np.stack([twin.forward(inputs).reshape(len(inputs), streams, -1) for twin in twins])

    def _learn_q(self, batch: SoftBatch, q_target: Float32) -> tuple[Float32, Float32]:
        """Both losses f32[2] and the mean error of each row f32[B]."""
        values = self._values(self._q, batch.features[0], batch.continuous, q_target.shape[1])
        share = None
        if batch.chosen.shape[1]:
            share = batch.chosen / np.float32(len(self._actions.branches))
        chosen_values = values[..., 0] if share is None else (values * share[:, None]).sum(-1)
        error = chosen_values - q_target
        weighted = error * batch.weights[:, None]
        grad_chosen = weighted / np.float32(q_target.size)
        grad_values = grad_chosen[..., None] if share is None else grad_chosen[..., None] * share[:, None]
        for twin, gradient in zip(self._q, grad_values, strict=True):
            twin.backward(np.ascontiguousarray(gradient.reshape(len(gradient), -1)), with_inputs=False)
        return 0.5 * (weighted * error).mean((1, 2)), np.abs(error).mean((0, 2))

    def _learn_value(self, critic: MLP, batch: SoftBatch, soft: Float32) -> Float32:
        error = critic.forward(batch.features[0]) - soft
        weighted = error * batch.weights[:, None]
        critic.backward(weighted / np.float32(error.size), with_inputs=False)
        loss: Float32 = 0.5 * (weighted * error).mean()
        return loss

    def _learn_policy(
        self, policy: NumpySoftPolicy, of_policy: Float32, alpha: Float32, allowed: Float32 | None
    ) -> Float32:
        """The policy's loss f32[], by the first critic with a value network, by the smaller one without."""
        critic_values = of_policy[0] if self._value is not None else of_policy.min(0)
        rows, grad_head = len(critic_values), []
        loss = np.zeros(rows, np.float32)
        if self._actions.continuous:
            grad_action = self._grad_action(policy, of_policy)
            grad_drawn = alpha[0] * 2 * policy.continuous / np.float32(rows)
            grad_drawn += grad_action * (1 - policy.continuous * policy.continuous)
            grad_log_sigma = (grad_drawn * policy.spread - alpha[0] / np.float32(rows)) * policy.is_inside
            grad_head += [grad_drawn, grad_log_sigma]
            loss = alpha[0] * policy.log_prob - policy.expected(critic_values).mean(1)
        values, start = critic_values.mean(1), 0
        for index, (p, log_p) in enumerate(zip(policy.probabilities, policy.log_probabilities, strict=True)):
            choices = slice(start, start + p.shape[1])
            weighted = p * (alpha[1 + index] * log_p - values[:, choices])
            total = weighted.sum(1, keepdims=True)
            grad_logits = (weighted - p * total) / np.float32(rows)
            grad_head.append(grad_logits if allowed is None else grad_logits * allowed[:, choices])
            loss = loss + total[:, 0]
            start = choices.stop
        self._actor.backward(np.concatenate(grad_head, 1), with_inputs=False)
        mean: Float32 = loss.mean()
        return mean

    def _grad_action(self, policy: NumpySoftPolicy, of_policy: Float32) -> Float32:
        """f32[B, A]: the loss's gradient for the continuous actions, through the critic's values."""
        _, rows, streams, _ = of_policy.shape
        weight = of_policy.dtype.type(-1 / (rows * streams))
        shares = policy.shares
        grad_values = (
            np.full(of_policy.shape[1:], weight) if shares is None else np.repeat(shares[:, None] * weight, streams, 1)
        )
        grad_inputs: Float32 | None = None
        for twin, mask in zip(self._q, self._critic_masks(of_policy), strict=True):
            if mask is not None:
                gradient = twin.backward_inputs((grad_values * mask).reshape(rows, -1))
                grad_inputs = gradient if grad_inputs is None else grad_inputs + gradient
        assert grad_inputs is not None
        return grad_inputs[:, -self._actions.continuous :]

    def _critic_masks(self, of_policy: Float32) -> list[Array]:
        """Where each critic's value is used, f32[B, S, M] of 0 and 1; None where it never is."""
        if self._value is not None:
            return [np.float32(1), None]
        is_first = (of_policy[0] <= of_policy[1]).astype(np.float32)
        return [is_first, 1 - is_first]


def _twins(flat: FlatParameters, activation: Activation) -> list[MLP]:
    layers = NamedLayers(flat, activation)
    return [layers.network(twin=twin) for twin in range(2)]
