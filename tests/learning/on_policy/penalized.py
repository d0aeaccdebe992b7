"""A trainer of its own on `OnPolicyTrainer`: the penalty of Schulman et al. 2017, equation 8, in place of a clip.

Shapes: N rows of a rollout, B rows of a mini-batch, H head columns, A continuous dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_tui.engine.config.hyperparameters import Schedule
from rl_tui.engine.learning.distributions import array_namespace, one_hot
from rl_tui.engine.learning.on_policy.actor_critic import Outputs
from rl_tui.engine.learning.on_policy.added_terms import AddedTerm
from rl_tui.engine.learning.on_policy.advantages import rollout_advantages
from rl_tui.engine.learning.on_policy.loss import Loss
from rl_tui.engine.learning.on_policy.prepared import Minibatch
from rl_tui.engine.learning.on_policy.rollout import Rollout
from rl_tui.engine.learning.on_policy.settings import OnPolicySettings
from rl_tui.engine.learning.on_policy.surrogate import ActionProbabilities, clipped_surrogate, squared_error
from rl_tui.engine.learning.on_policy.trainer import OnPolicyTrainer
from rl_tui.engine.learning.sync import Sync
from rl_tui.engine.learning.value_estimates import ValueEstimates

PENALTY, CRITIC = "Losses/KL Penalty", "Losses/Auxiliary Value Loss"


class PenalizedSettings(OnPolicySettings):
    """Its hyperparameters."""

    implementation: ClassVar = "tests.learning.on_policy.penalized:PenalizedTrainer"
    changeable: ClassVar = ("beta",)
    batch_size: int = 16
    buffer_size: int = 64
    learning_rate: float = 1e-2
    learning_rate_schedule: Schedule = "constant"
    num_epoch: int = 2
    max_grad_norm: float | None = None
    target_kl: float | None = None
    adam_epsilon: float = 1e-8
    beta: float = 3.0


class PenalizedTrainer(OnPolicyTrainer[PenalizedSettings, float]):
    """Autograd differentiates the penalty, and a second term of the critic."""

    tags = ("Losses/Policy Loss", "Losses/Value Loss")

    def _columns(self, rollout: Rollout, estimates: ValueEstimates, sync: Sync) -> Mapping[str, NDArray[Any]]:
        """The usual ones, and what the distributions were made of when the rows were collected."""
        block = rollout.experience
        advantages, returns = rollout_advantages(rollout, estimates, self._streams, 0.95)
        before = self._network.forward(self._features(block.observations), estimates.sequences)
        columns = {
            "continuous": block.continuous_actions,
            "chosen": one_hot(block.discrete_actions, self._spec.actions.branches),
            "log_probs": block.log_probs,
            "values": estimates.values,
            "returns": returns,
            "advantage": advantages.mean(1),
            "head": _copied(before.head),
        }
        if before.log_sigma is not None:
            columns["log_sigma"] = np.tile(_copied(before.log_sigma), (block.num_rows, 1))
        return columns

    def _coefficients(self, step: int) -> float:
        """beta."""
        return self._hyper.beta

    def _loss(self, outputs: Outputs, minibatch: Minibatch, coefficients: float) -> Loss:
        """The surrogate without a clip, and the critic's squared error, in closed form."""
        policy = ActionProbabilities(outputs, minibatch.columns, self._spec.actions)
        xp = array_namespace(outputs.head)
        ratio = xp.exp(policy.log_probs - minibatch["log_probs"])
        surrogate, grad_log_probs, _ = clipped_surrogate(ratio, minibatch["advantage"], np.inf)
        value, grad_values = squared_error(outputs.values, minibatch["values"], minibatch["returns"], None, 0.5)
        terms = dict(zip(self.tags, (surrogate, value), strict=False))
        grad_head, grad_log_sigma = policy.gradients(grad_log_probs, 0.0)
        return Loss(surrogate + 0.5 * value, terms, Outputs(grad_head, grad_values, grad_log_sigma))

    def _added_terms(self, coefficients: float) -> Sequence[AddedTerm]:
        """No derivative of these is written down."""
        return (AddedTerm(PENALTY, self._penalty, coefficients), AddedTerm(CRITIC, _auxiliary, 0.25))

    def _penalty(self, outputs: Outputs, minibatch: Minibatch) -> Tensor:
        """The mean over rows of KL[pi_old, pi], by torch's own distributions."""
        begin, divergences = self._spec.actions.continuous, []
        if outputs.log_sigma is not None:
            new = torch.distributions.Normal(outputs.head[:, :begin], outputs.log_sigma.exp())
            old = torch.distributions.Normal(minibatch["head"][:, :begin], minibatch["log_sigma"].exp())
            divergences.append(torch.distributions.kl_divergence(old, new).sum(1))
        for size in self._spec.actions.branches:
            of_branch = slice(begin, begin + size)
            old_choice, new_choice = (
                torch.distributions.Categorical(logits=head[:, of_branch]) for head in (minibatch["head"], outputs.head)
            )
            divergences.append(torch.distributions.kl_divergence(old_choice, new_choice))
            begin += size
        return torch.stack(divergences).sum(0).mean()


def _copied(array: Any) -> NDArray[Any]:
    copied: NDArray[Any] = torch.as_tensor(array).cpu().numpy().copy()
    return copied


def _auxiliary(outputs: Outputs, minibatch: Minibatch) -> Tensor:
    return torch.square(outputs.values - minibatch["returns"]).mean()


class InClosedForm(PenalizedTrainer):
    """The same with every derivative by hand."""

    tags = (*PenalizedTrainer.tags, PENALTY, CRITIC)

    def _added_terms(self, coefficients: float) -> Sequence[AddedTerm]:  # there are none
        return ()

    def _loss(self, outputs: Outputs, minibatch: Minibatch, coefficients: float) -> Loss:
        loss = super()._loss(outputs, minibatch, coefficients)
        penalty, grad_head, grad_log_sigma = self._closed_penalty(outputs, minibatch)
        error = outputs.values - minibatch["returns"]
        auxiliary = (error * error).mean()
        own = loss.gradients
        gradients = Outputs(
            head=own.head + coefficients * grad_head,
            values=own.values + 0.25 * 2 * error / (error.shape[0] * error.shape[1]),
            log_sigma=None if own.log_sigma is None else own.log_sigma + coefficients * grad_log_sigma,
        )
        terms = {**loss.terms, PENALTY: penalty, CRITIC: auxiliary}
        return replace(
            loss, total=loss.total + coefficients * penalty + 0.25 * auxiliary, terms=terms, gradients=gradients
        )

    def _closed_penalty(self, outputs: Outputs, minibatch: Minibatch) -> tuple[Any, Any, Any]:
        """The penalty and its gradients for head f32[B, H] and log_sigma f32[A]."""
        xp, count, begin = array_namespace(outputs.head), len(minibatch.rows), self._spec.actions.continuous
        penalty, grad_log_sigma, grad_head = 0.0, None, []
        if outputs.log_sigma is not None:
            variance, old_variance = xp.exp(2 * outputs.log_sigma), xp.exp(2 * minibatch["log_sigma"])
            distance = outputs.head[:, :begin] - minibatch["head"][:, :begin]
            share = (old_variance + distance * distance) / variance
            penalty += (outputs.log_sigma - minibatch["log_sigma"] + share / 2 - 0.5).sum() / count
            grad_head.append(distance / variance / count)
            grad_log_sigma = (1 - share).sum(0) / count
        for size in self._spec.actions.branches:
            of_branch = slice(begin, begin + size)
            p, old_p = (_softmax(xp, head[:, of_branch]) for head in (outputs.head, minibatch["head"]))
            penalty += (old_p * (xp.log(old_p) - xp.log(p))).sum() / count
            grad_head.append((p - old_p) / count)
            begin += size
        return penalty, xp.concatenate(grad_head, 1), grad_log_sigma


def _softmax(xp: Any, logits: Any) -> Any:
    weights = xp.exp(logits)
    return weights / weights.sum(1)[:, None]
