"""The losses of soft actor-critic (Haarnoja et al. 2018), for continuous, discrete and hybrid actions.

Shapes: B rows, A continuous dimensions, K branches, M mask columns, S reward streams. The letters are the paper's:
Q1, Q2 and V are critics, pi the policy, alpha the temperature by which entropy counts as reward.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from rl_tui.engine.learning.distributions import array_namespace
from rl_tui.engine.learning.networks.critics import StateCritic
from rl_tui.engine.learning.sac.batch import SoftBatch
from rl_tui.engine.learning.sac.networks import SoftNetworks
from rl_tui.engine.learning.sac.policy import NumpySoftPolicy, SoftPolicy, soft_policy
from rl_tui.engine.specs import ActionSpec

Array: TypeAlias = Any  # torch tensor or numpy array
DISCRETE_TARGET = 0.2  # ML-Agents: a branch of n choices should keep the entropy 0.2 ln n; here n counts allowed ones


@dataclass(frozen=True, slots=True)
class SoftLosses:
    """Each f32[] but: q f32[2], grad_log_alpha f32[1 + K] (a gradient), alpha f32[1 + K], values f32[S], errors f32[B].

    policy, q and value have gradients in torch, until `TorchSoftGradients` has followed them. value: None without a
    value network. errors: mean |y - Q| of both critics.
    """

    policy: Array
    q: Array
    value: Array | None
    grad_log_alpha: Array
    alpha: Array
    entropy: Array
    values: Array
    errors: Array

    @property
    def total(self) -> Array:
        """The sum over all networks; no two terms share a parameter."""
        total = self.policy + self.q.sum()
        return total if self.value is None else total + self.value


def soft_losses(
    networks: SoftNetworks, batch: SoftBatch, actions: ActionSpec, alpha: Tensor, target_entropy: float
) -> SoftLosses:
    """All losses from one pass. alpha: f32[1 + K], of the continuous actions (unused without any), then of each branch.

    target_entropy: of the continuous actions.
    """
    state = batch.recurrent_state
    q = networks.q
    head = networks.actor(batch.features, state and state.actor)
    policy = soft_policy(head, actions, batch.noise, batch.allowed)
    encoded = q.encoder(batch.features)
    chosen_values = _chosen_values(q(encoded, batch.continuous, state and state.q), batch.chosen)
    with q.frozen():
        of_policy = q(encoded.detach(), policy.continuous, state and state.q)
    with torch.no_grad():
        q_target = batch.rewards + batch.discounts * _next_values(networks, batch, actions, alpha)
        soft = soft_values(of_policy, policy, alpha)
        grad_log_alpha = log_alpha_gradient(policy, actions, target_entropy, batch.allowed)
        entropy = mean_entropy(policy)
    error = chosen_values - q_target
    value_loss = None
    if networks.value is not None:
        value = networks.value(batch.features, state and state.value)
        value_loss = _half_squares(value - soft, batch.weights)
    return SoftLosses(
        policy=_policy_loss(
            of_policy[0] if networks.value is not None else of_policy.amin(0),
            policy,
            policy_temperatures(alpha, actions),
        ),
        q=_half_squares(error, batch.weights),
        value=value_loss,
        grad_log_alpha=grad_log_alpha,
        alpha=alpha,
        entropy=entropy,
        values=soft.mean(0),
        errors=error.detach().abs().mean((0, 2)),
    )


def soft_values(of_policy: Array, policy: SoftPolicy | NumpySoftPolicy, alpha: Array) -> Array:
    """f32[B, S]: the smaller of both critics' expectations of f32[2, B, S, M].

    Without branches, alpha times the entropy is added, as in the paper. The entropy of choices is never negative, so
    that values which contain it reward every further step, and an agent learns to put off the end of its episode; there
    entropy counts in the policy's loss alone (Yu et al. 2022, Do You Need the Entropy Reward (in Practice)?).
    """
    expected = policy.expected(of_policy)
    smaller = array_namespace(expected).amin(expected, 0)
    return smaller if policy.probabilities else smaller - (alpha[0] * policy.log_prob)[:, None]


def policy_temperatures(alpha: Array, actions: ActionSpec) -> Array:
    """f32[1 + K]: alpha as it counts in the policy's loss, half of it for hybrid actions.

    ML-Agents counts Q twice there, which comes to the same, so that `init_entcoef` begins with the same exploration.
    """
    return 0.5 * alpha if actions.continuous and actions.branches else alpha


def log_alpha_gradient(
    policy: SoftPolicy | NumpySoftPolicy, actions: ActionSpec, target_entropy: float, allowed: Array | None
) -> Array:
    """f32[1 + K]: the gradient of -ln alpha times (negative entropy + target entropy), averaged over rows.

    allowed: f32[B, M], or None. The target of a branch follows the choices that a row allows: one that asked for random
    choices where there is none would raise the temperature without end.
    """
    xp, continuous = array_namespace(policy.log_prob), policy.log_prob.mean() + target_entropy
    parts: list[Array] = [continuous if actions.continuous else xp.zeros_like(continuous)]
    start = 0
    for size, negative_entropy in zip(actions.branches, policy.negative_entropies, strict=True):
        most: Array = math.log(size)
        if allowed is not None:
            counts = allowed[:, start : start + size].sum(1).clip(1)
            most = xp.log(counts).mean()
        parts.append(negative_entropy.mean() + DISCRETE_TARGET * most)
        start += size
    return -xp.stack(parts)


def mean_entropy(policy: SoftPolicy | NumpySoftPolicy) -> Array:
    """f32[]: mean over rows, of continuous actions (by their samples) and all branches together."""
    return -(policy.log_prob + sum(policy.negative_entropies)).mean()


def _chosen_values(values: Tensor, chosen: Tensor) -> Tensor:
    """f32[2, B, S]: the values of the chosen actions in f32[2, B, S, M], averaged over branches."""
    if not chosen.shape[1]:
        return values.squeeze(-1)
    share = chosen / chosen.sum(1, keepdim=True)
    return (values * share[:, None]).sum(-1)


def _next_values(networks: SoftNetworks, batch: SoftBatch, actions: ActionSpec, alpha: Tensor) -> Tensor:
    """f32[B, S]: values of the next states, by the target networks."""
    state, target = batch.recurrent_state, networks.target
    if isinstance(target, StateCritic):
        values: Tensor = target(batch.next_features, state and state.next_target)
        return values
    head = networks.actor(batch.next_features, state and state.next_actor)
    policy = soft_policy(head, actions, batch.next_noise, batch.next_allowed)
    of_policy = target(target.encoder(batch.next_features), policy.continuous, state and state.next_target)
    soft: Tensor = soft_values(of_policy, policy, alpha)
    return soft


def _policy_loss(of_policy: Tensor, policy: SoftPolicy, alpha: Tensor) -> Tensor:
    """f32[]: temperature times negative entropy, minus a critic's expectation f32[B, S, M], averaged over streams.

    Discrete and continuous actions treat each other as constant: their gradients are those of two policies that share a
    body, and no value counts twice.
    """
    loss = torch.zeros_like(policy.log_prob)
    if policy.continuous.shape[1]:
        fixed = SoftPolicy(policy.continuous, policy.log_prob, _detached(policy.probabilities), ())
        loss = alpha[0] * policy.log_prob - fixed.expected(of_policy).mean(1)
    values = of_policy.detach().mean(1)
    start = 0
    for index, (p, log_p) in enumerate(zip(policy.probabilities, policy.log_probabilities, strict=True)):
        own = values[:, start : start + p.shape[1]]
        loss = loss + (p * (alpha[1 + index] * log_p - own)).sum(1)
        start += p.shape[1]
    return loss.mean()


def _detached(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return tuple(tensor.detach() for tensor in tensors)


def _half_squares(error: Tensor, weights: Tensor) -> Tensor:
    """Half the weighted mean square over rows and streams: f32[...] of f32[..., B, S]."""
    return 0.5 * (error * error * weights[:, None]).mean((-2, -1))
