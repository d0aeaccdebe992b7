"""Losses of a user's program.  Shapes: B rows."""

from __future__ import annotations

import torch
from torch import Tensor

from rl_tui.engine.learning.loss_inputs import CustomLoss, LossInputs
from rl_tui.engine.learning.on_policy.actor_critic import Outputs
from rl_tui.engine.learning.on_policy.added_terms import AddedTerm
from rl_tui.engine.learning.on_policy.prepared import Minibatch
from rl_tui.engine.learning.on_policy.surrogate import ActionProbabilities
from rl_tui.engine.specs import BehaviorSpec


class CustomLosses:
    """Their sum is one term that is added to the loss of every mini-batch."""

    def __init__(self, spec: BehaviorSpec):
        self.functions: list[CustomLoss] = []
        self._spec = spec

    def terms(self) -> list[AddedTerm]:
        """That term; none without functions."""
        return [AddedTerm("Losses/Custom Loss", self._sum)] if self.functions else []

    def _sum(self, outputs: Outputs, minibatch: Minibatch) -> Tensor:
        inputs = self._inputs(outputs, minibatch)
        return torch.stack([function(inputs) for function in tuple(self.functions)]).sum()

    def _inputs(self, outputs: Outputs, minibatch: Minibatch) -> LossInputs:
        policy = ActionProbabilities(outputs, minibatch.columns, self._spec.actions)
        return LossInputs(
            behavior=self._spec.name,
            sample=minibatch.sample,
            features=minibatch.features,
            log_probs=policy.log_probs,
            entropy=policy.entropy,
            values=outputs.values,
        )
