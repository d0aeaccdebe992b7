"""Proximal policy optimization (Schulman et al. 2017), with ML-Agents' defaults: the page to read next to the paper.

Algorithm 1: the policy has acted, and `_columns` receives what was collected, from which it estimates advantages.
`OnPolicyTrainer` makes the epochs over mini-batches, and takes a step by Adam for the `ppo_loss` of each.

Shapes: N rows of a rollout, B rows of a mini-batch, A continuous dimensions, K branches, R reward streams.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.learning.distributions import array_namespace, one_hot
from rl_tui.engine.learning.on_policy.actor_critic import Outputs
from rl_tui.engine.learning.on_policy.advantages import normalized, rollout_advantages
from rl_tui.engine.learning.on_policy.loss import Loss
from rl_tui.engine.learning.on_policy.prepared import Columns, Minibatch
from rl_tui.engine.learning.on_policy.rollout import Rollout
from rl_tui.engine.learning.on_policy.surrogate import (
    ActionProbabilities,
    clipped_surrogate,
    divergence,
    squared_error,
)
from rl_tui.engine.learning.on_policy.trainer import ACTOR, OnPolicyTrainer
from rl_tui.engine.learning.ppo.settings import PPOSettings
from rl_tui.engine.learning.schedules import MIN_BETA, MIN_EPSILON, scheduled
from rl_tui.engine.learning.sync import Sync
from rl_tui.engine.learning.trainer import Metrics
from rl_tui.engine.learning.value_estimates import ValueEstimates
from rl_tui.engine.specs import ActionSpec


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Of the loss. epsilon: the clip of the ratio. value: c1 of the paper. beta: c2. value_clip: None for a plain
    squared error."""

    epsilon: float
    beta: float
    value: float
    value_clip: float | None


class PPOTrainer(OnPolicyTrainer[PPOSettings, Coefficients]):
    """Learns by the clipped objective, from the rows since the last update."""

    actor_prefix = ACTOR
    tags = ("Losses/Policy Loss", "Losses/Value Loss", "Policy/Entropy", "Policy/KL Divergence", "Policy/Clip Fraction")

    def _columns(self, rollout: Rollout, estimates: ValueEstimates, sync: Sync) -> dict[str, NDArray[Any]]:
        """What was collected, and the advantages: GAE for each reward stream, then their mean."""
        block, hyper = rollout.experience, self._hyper
        advantages, returns = rollout_advantages(rollout, estimates, self._streams, hyper.lambd)
        advantage = advantages.mean(1)
        columns: dict[str, NDArray[Any]] = {
            "continuous": block.continuous_actions,
            "chosen": one_hot(block.discrete_actions, self._spec.actions.branches),
            "log_probs": block.log_probs.sum(1, keepdims=True) if hyper.joint_ratio else block.log_probs,
            "values": estimates.values,
            "returns": returns,
            "advantage": normalized(advantage, sync) if hyper.normalize_advantage == "buffer" else advantage,
        }
        if block.action_mask is not None:
            columns["allowed"] = block.action_mask.astype(np.float32)
        return columns

    def _normalized(self, minibatch: Minibatch, sync: Sync) -> Minibatch:
        """With advantages normalized, if that is done for each mini-batch."""
        if self._hyper.normalize_advantage != "minibatch":
            return minibatch
        return minibatch.with_columns(lambda of: of | {"advantage": normalized(of["advantage"], sync)})

    def _coefficients(self, step: int) -> Coefficients:
        hyper, end = self._hyper, self._config.max_steps
        epsilon = scheduled(hyper.epsilon_schedule, hyper.epsilon, min(MIN_EPSILON, hyper.epsilon), step, end)
        return Coefficients(
            epsilon=epsilon,
            beta=scheduled(hyper.beta_schedule, hyper.beta, min(MIN_BETA, hyper.beta), step, end),
            value=hyper.value_coefficient,
            value_clip=epsilon if hyper.value_clip == "epsilon" else hyper.value_clip,
        )

    def _loss(self, outputs: Outputs, minibatch: Minibatch, coefficients: Coefficients) -> Loss:
        return ppo_loss(outputs, minibatch.columns, self._spec.actions, coefficients)

    def _reported(self, coefficients: Coefficients) -> Metrics:
        return {"Policy/Epsilon": coefficients.epsilon, "Policy/Beta": coefficients.beta}

    @property
    def _has_shared_critic(self) -> bool:
        return self._hyper.shared_critic


def ppo_loss(outputs: Outputs, rows: Columns, actions: ActionSpec, coefficients: Coefficients) -> Loss:
    """Minus the objective of equation 9, L^CLIP - c1 L^VF + c2 S, and its gradients for the networks' outputs.

    rows: the columns of `Minibatch`. In closed form, for numpy arrays and torch tensors alike.
    """
    epsilon, beta, c1 = coefficients.epsilon, coefficients.beta, coefficients.value
    policy = ActionProbabilities(outputs, rows, actions)
    log_ratio = policy.log_probs - rows["log_probs"]
    ratio = array_namespace(log_ratio).exp(log_ratio)
    surrogate, grad_log_probs, clipped = clipped_surrogate(ratio, rows["advantage"], epsilon)
    value, grad_values = squared_error(outputs.values, rows["values"], rows["returns"], coefficients.value_clip, c1)
    grad_head, grad_log_sigma = policy.gradients(grad_log_probs, beta)
    return Loss(
        total=surrogate + c1 * value - beta * policy.entropy,
        terms={
            "Losses/Policy Loss": surrogate,
            "Losses/Value Loss": value,
            "Policy/Entropy": policy.entropy,
            "Policy/KL Divergence": divergence(ratio, log_ratio),
            "Policy/Clip Fraction": clipped,
        },
        gradients=Outputs(grad_head, grad_values, grad_log_sigma),
    )
