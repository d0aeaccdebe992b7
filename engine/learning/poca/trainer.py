"""MA-POCA, posthumous credit assignment (Cohen et al. 2021), with ML-Agents' defaults: the page to read next to the
paper.

A critic values what all agents of a group see, and says what an agent could expect whatever it does (a counterfactual
baseline, Foerster et al. 2018): of what the agent sees, and of what the others see and do. Its inputs are the agents
that are there, however many. An agent is credited with all that its group earns after it acted, also after its own end.

Shapes: N rows of a rollout, R reward streams.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.learning.joint_steps import rewards_of_mates
from rl_tui.engine.learning.on_policy.actor_critic import Outputs
from rl_tui.engine.learning.on_policy.clipping import Coefficients, policy_loss
from rl_tui.engine.learning.on_policy.group_networks import GroupOutputs
from rl_tui.engine.learning.on_policy.group_trainer import GroupTrainer
from rl_tui.engine.learning.on_policy.loss import Loss
from rl_tui.engine.learning.on_policy.prepared import Columns, Minibatch
from rl_tui.engine.learning.on_policy.rollout import Rollout
from rl_tui.engine.learning.on_policy.surrogate import squared_error
from rl_tui.engine.learning.on_policy.trainer import ACTOR
from rl_tui.engine.learning.poca.settings import POCASettings
from rl_tui.engine.learning.sync import Sync
from rl_tui.engine.learning.trainer import Metrics
from rl_tui.engine.learning.value_estimates import ValueEstimates
from rl_tui.engine.specs import ActionSpec

BASELINE_WEIGHT = 0.5  # ML-Agents: of the baseline's error beside the value's


@dataclass(frozen=True, slots=True)
class POCACoefficients(Coefficients):
    """baseline_clip: None for a plain squared error."""

    baseline_clip: float | None


class POCATrainer(GroupTrainer[POCASettings]):
    """Learns by the clipped objective; an advantage is what was returned above the baseline."""

    actor_prefix = ACTOR
    has_baselines = True
    tags = (*GroupTrainer.tags, "Losses/Baseline Loss")

    def _columns(self, rollout: Rollout, estimates: ValueEstimates, sync: Sync) -> dict[str, NDArray[Any]]:
        """What was collected, and the advantages: lambda-returns minus the baseline, the mean of all streams.

        An agent earns its own rewards, its mates' and the group's.
        """
        block = rollout.experience
        values, baselines = np.split(estimates.values, 2, axis=1)
        of_mates = self._streams.evaluate_mates(rewards_of_mates(block, rollout.joint_steps))
        returns = self._returns(rollout, values, estimates.next_values, rollout.rewards + of_mates)
        acted = self._acted_columns(block, (returns - baselines).mean(1), sync)
        return acted | {"values": values, "baselines": baselines, "returns": returns}

    def _coefficients(self, step: int) -> POCACoefficients:
        coefficients, clip = super()._coefficients(step), self._hyper.baseline_clip
        return POCACoefficients(
            **asdict(coefficients), baseline_clip=coefficients.epsilon if clip == "epsilon" else clip
        )

    def _loss(self, outputs: Outputs, minibatch: Minibatch, coefficients: Coefficients) -> Loss:
        assert isinstance(outputs, GroupOutputs)
        assert isinstance(coefficients, POCACoefficients)
        return poca_loss(outputs, minibatch.columns, self._spec.actions, coefficients)

    def _mean_estimates(self, means: list[float]) -> Metrics:
        values, baselines = means[: len(self._streams)], means[len(self._streams) :]
        return self._streams.named(values, "Value Estimate") | self._streams.named(baselines, "Baseline Estimate")


def poca_loss(outputs: GroupOutputs, rows: Columns, actions: ActionSpec, coefficients: POCACoefficients) -> Loss:
    """PPO's objective with the errors of value and baseline, and its gradients for the networks' outputs."""
    policy, c1 = policy_loss(outputs, rows, actions, coefficients), coefficients.value
    returns, c2 = rows["returns"], c1 * BASELINE_WEIGHT
    value, grad_values = squared_error(outputs.values, rows["values"], returns, coefficients.value_clip, c1)
    baseline, grad_baselines = squared_error(
        outputs.baselines, rows["baselines"], returns, coefficients.baseline_clip, c2
    )
    return Loss(
        total=policy.total + c1 * value + c2 * baseline,
        terms={**policy.terms, "Losses/Value Loss": value, "Losses/Baseline Loss": baseline},
        gradients=GroupOutputs(policy.grad_head, grad_values, policy.grad_log_sigma, grad_baselines),
    )
