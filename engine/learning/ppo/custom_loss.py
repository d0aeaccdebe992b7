"""Losses of a user's program, differentiated by autograd, also where the networks compute in numpy.

Shapes: B rows, H head columns, A continuous dimensions, K branches, S reward streams, W ratio columns (A + K, or 1).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from rl_tui.engine.learning.distributions import action_distributions
from rl_tui.engine.learning.feature_layout import Features
from rl_tui.engine.learning.loss_inputs import CustomLoss, LossInputs
from rl_tui.engine.learning.on_policy.actor_critic import ActorCritic
from rl_tui.engine.learning.on_policy.rollout import RolloutMinibatch
from rl_tui.engine.learning.ppo.batch import Batch
from rl_tui.engine.learning.ppo.loss import Loss
from rl_tui.engine.learning.ppo.terms import Terms, terms_of
from rl_tui.engine.specs import BehaviorSpec

Array: TypeAlias = Any  # numpy array or torch tensor
OF_SAMPLE = ("log_probs", "advantages", "returns", "values")  # tensors for a custom loss


class CustomLosses:
    """Added to the loss of every mini-batch. They are differentiated down to the networks' outputs, from where the
    networks go on with their own backward pass, and for parameters that they use directly."""

    def __init__(self, network: ActorCritic, spec: BehaviorSpec, is_joint: bool):
        """is_joint: whether there is one ratio for each action, W = 1."""
        self.functions: list[CustomLoss] = []
        self._network, self._spec, self._is_joint = network, spec, is_joint

    def backward(
        self, loss: Loss, head: Array, values: Array, batch: Batch, features: Features, sample: RolloutMinibatch
    ) -> Terms:
        """Write the network's gradient of `loss` and these losses; the terms, with the sum of these as the last one.

        head, values: of the network's last `forward`, f32[B, H] and f32[B, S].
        """
        leaves = [_leaf(of) for of in (head, values, self._network.log_sigma)]
        gradient = torch.as_tensor(self._network.gradient)  # the same memory, and that of the parameters' `grad`
        gradient.zero_()
        inputs = self._inputs(leaves, batch, features, sample)
        total = torch.stack([function(inputs) for function in tuple(self.functions)]).sum()
        if total.requires_grad:
            torch.autograd.backward(total)
        of_parameters = gradient.clone()
        self._network.backward(
            _sum(loss.grad_head, leaves[0]), _sum(loss.grad_values, leaves[1]), _sum(loss.grad_log_sigma, leaves[2])
        )
        gradient.add_(of_parameters)
        custom = _like(loss.grad_head, total.detach())
        return (*terms_of(replace(loss, total=loss.total + custom)), custom)

    def _inputs(
        self, leaves: list[Tensor | None], batch: Batch, features: Features, sample: RolloutMinibatch
    ) -> LossInputs:
        head, values, log_sigma = leaves
        assert head is not None
        assert values is not None
        taken = [None if of is None else torch.as_tensor(of) for of in (batch.continuous, batch.chosen, batch.allowed)]
        parts = action_distributions(head, log_sigma, self._spec.actions, *taken)
        log_probs = torch.cat([part.log_probs for part in parts], 1)
        entropy: Tensor = sum(part.entropy for part in parts)
        known: dict[str, Any] = {name: torch.as_tensor(getattr(sample, name)) for name in OF_SAMPLE}
        return LossInputs(
            behavior=self._spec.name,
            sample=replace(sample, **known),
            features=tuple(map(torch.as_tensor, features)),
            log_probs=log_probs.sum(1, keepdim=True) if self._is_joint else log_probs,
            entropy=entropy,
            values=values,
        )


def _leaf(array: Array | None) -> Tensor | None:
    """A copy that autograd differentiates for; the network may use the array again."""
    return None if array is None else torch.as_tensor(array).detach().clone().requires_grad_()


def _sum(gradient: Array, leaf: Tensor | None) -> Array:
    return gradient if leaf is None or leaf.grad is None else gradient + _like(gradient, leaf.grad)


def _like(array: Array, tensor: Tensor) -> Array:
    return tensor.numpy() if isinstance(array, np.ndarray) else tensor
