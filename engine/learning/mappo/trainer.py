"""MAPPO, PPO with a critic that sees the whole group (Lowe et al. 2017, Yu et al. 2022), as ML-Agents' development
version has it: the critic of MA-POCA without its baseline, and PPO's advantages.

Shapes: N rows of a rollout, R reward streams.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from rl_tui.engine.learning.mappo.settings import MAPPOSettings
from rl_tui.engine.learning.on_policy.actor_critic import Outputs
from rl_tui.engine.learning.on_policy.clipping import Coefficients, policy_loss
from rl_tui.engine.learning.on_policy.group_networks import GroupOutputs
from rl_tui.engine.learning.on_policy.group_trainer import GroupTrainer
from rl_tui.engine.learning.on_policy.loss import Loss
from rl_tui.engine.learning.on_policy.prepared import Minibatch
from rl_tui.engine.learning.on_policy.rollout import Rollout
from rl_tui.engine.learning.on_policy.surrogate import squared_error
from rl_tui.engine.learning.on_policy.trainer import ACTOR
from rl_tui.engine.learning.sync import Sync
from rl_tui.engine.learning.value_estimates import ValueEstimates


class MAPPOTrainer(GroupTrainer[MAPPOSettings]):
    """Learns by the clipped objective, from advantages over what the whole group could expect."""

    actor_prefix = ACTOR
    has_baselines = False

    def _columns(self, rollout: Rollout, estimates: ValueEstimates, sync: Sync) -> dict[str, NDArray[Any]]:
        """What was collected, and the advantages: GAE for each reward stream, then their mean.

        An agent earns its own rewards and the group's, but not its mates'.
        """
        returns = self._returns(rollout, estimates.values, estimates.next_values, rollout.rewards)
        acted = self._acted_columns(rollout.experience, (returns - estimates.values).mean(1), sync)
        return acted | {"values": estimates.values, "returns": returns}

    def _loss(self, outputs: Outputs, minibatch: Minibatch, coefficients: Coefficients) -> Loss:
        """That of PPO."""
        rows, c1 = minibatch.columns, coefficients.value
        policy = policy_loss(outputs, rows, self._spec.actions, coefficients)
        value, grad_values = squared_error(outputs.values, rows["values"], rows["returns"], coefficients.value_clip, c1)
        return Loss(
            total=policy.total + c1 * value,
            terms={**policy.terms, "Losses/Value Loss": value},
            gradients=GroupOutputs(policy.grad_head, grad_values, policy.grad_log_sigma),
        )
