"""Proximal policy optimization (Schulman et al. 2017), with ML-Agents' defaults: the page to read next to the paper.

Algorithm 1: the policy has acted, and `_columns` receives what was collected, from which it estimates advantages.
`OnPolicyTrainer` makes the epochs over mini-batches, and takes a step by Adam for the `ppo_loss` of each.

Shapes: N rows of a rollout, B rows of a mini-batch, R reward streams.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from rl_tui.engine.learning.on_policy.actor_critic import Outputs
from rl_tui.engine.learning.on_policy.advantages import rollout_advantages
from rl_tui.engine.learning.on_policy.clipping import ClippedTrainer, Coefficients, policy_loss
from rl_tui.engine.learning.on_policy.loss import Loss
from rl_tui.engine.learning.on_policy.prepared import Columns, Minibatch
from rl_tui.engine.learning.on_policy.rollout import Rollout
from rl_tui.engine.learning.on_policy.surrogate import squared_error
from rl_tui.engine.learning.on_policy.trainer import ACTOR
from rl_tui.engine.learning.ppo.settings import PPOSettings
from rl_tui.engine.learning.sync import Sync
from rl_tui.engine.learning.value_estimates import ValueEstimates
from rl_tui.engine.specs import ActionSpec


class PPOTrainer(ClippedTrainer[PPOSettings]):
    """Learns by the clipped objective, from the rows since the last update."""

    actor_prefix = ACTOR

    def _columns(self, rollout: Rollout, estimates: ValueEstimates, sync: Sync) -> dict[str, NDArray[Any]]:
        """What was collected, and the advantages: GAE for each reward stream, then their mean."""
        advantages, returns = rollout_advantages(rollout, estimates, self._streams, self._hyper.lambd)
        acted = self._acted_columns(rollout.experience, advantages.mean(1), sync)
        return acted | {"values": estimates.values, "returns": returns}

    def _loss(self, outputs: Outputs, minibatch: Minibatch, coefficients: Coefficients) -> Loss:
        return ppo_loss(outputs, minibatch.columns, self._spec.actions, coefficients)

    @property
    def _has_shared_critic(self) -> bool:
        return self._hyper.shared_critic


def ppo_loss(outputs: Outputs, rows: Columns, actions: ActionSpec, coefficients: Coefficients) -> Loss:
    """Minus the objective of equation 9, L^CLIP - c1 L^VF + c2 S, and its gradients for the networks' outputs.

    rows: the columns of `Minibatch`. In closed form, for numpy arrays and torch tensors alike.
    """
    policy, c1 = policy_loss(outputs, rows, actions, coefficients), coefficients.value
    value, grad_values = squared_error(outputs.values, rows["values"], rows["returns"], coefficients.value_clip, c1)
    return Loss(
        total=policy.total + c1 * value,
        terms={**policy.terms, "Losses/Value Loss": value},
        gradients=Outputs(policy.grad_head, grad_values, policy.grad_log_sigma),
    )
