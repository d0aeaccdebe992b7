"""What every trainer with the clipped objective of PPO has (Schulman et al. 2017), whatever its critic sees.

Shapes: N rows of a rollout, B rows of a mini-batch, A continuous dimensions, K branches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.learning.distributions import array_namespace, one_hot
from rl_tui.engine.learning.on_policy.actor_critic import Outputs
from rl_tui.engine.learning.on_policy.advantages import normalized
from rl_tui.engine.learning.on_policy.minibatches import Part
from rl_tui.engine.learning.on_policy.prepared import Columns, PreparedRollout
from rl_tui.engine.learning.on_policy.settings import ClippedSettings
from rl_tui.engine.learning.on_policy.surrogate import ActionProbabilities, clipped_surrogate, divergence
from rl_tui.engine.learning.on_policy.trainer import OnPolicyTrainer
from rl_tui.engine.learning.row_selection import RowSelection
from rl_tui.engine.learning.schedules import MIN_BETA, MIN_EPSILON, scheduled
from rl_tui.engine.learning.sync import Sync
from rl_tui.engine.learning.trainer import Metrics
from rl_tui.engine.specs import ActionSpec, Float32, Trajectories

Array: TypeAlias = Any  # numpy array on the CPU, torch tensor elsewhere
S = TypeVar("S", bound=ClippedSettings)


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Of the loss. epsilon: the clip of the ratio. beta: of the entropy. value: of the squared error. value_clip: None
    for a plain squared error."""

    epsilon: float
    beta: float
    value: float
    value_clip: float | None


@dataclass(frozen=True, slots=True)
class PolicyLoss:
    """Minus the clipped objective and minus beta times the entropy, f32[]; its terms by tag, and its gradients for head
    and log_sigma."""

    total: Array
    terms: Mapping[str, Array]
    grad_head: Array
    grad_log_sigma: Array | None


def policy_loss(outputs: Outputs, rows: Columns, actions: ActionSpec, coefficients: Coefficients) -> PolicyLoss:
    """Minus L^CLIP of equation 7 and minus c2 S of equation 9; rows: the columns of `Minibatch`."""
    policy = ActionProbabilities(outputs, rows, actions)
    log_ratio = policy.log_probs - rows["log_probs"]
    ratio = array_namespace(log_ratio).exp(log_ratio)
    surrogate, grad_log_probs, clipped = clipped_surrogate(ratio, rows["advantage"], coefficients.epsilon)
    grad_head, grad_log_sigma = policy.gradients(grad_log_probs, coefficients.beta)
    terms = {
        "Losses/Policy Loss": surrogate,
        "Policy/Entropy": policy.entropy,
        "Policy/KL Divergence": divergence(ratio, log_ratio),
        "Policy/Clip Fraction": clipped,
    }
    return PolicyLoss(surrogate - coefficients.beta * policy.entropy, terms, grad_head, grad_log_sigma)


class ClippedTrainer(OnPolicyTrainer[S, Coefficients]):
    """Has the columns of what was done, schedules, and where advantages are normalized."""

    tags: ClassVar[tuple[str, ...]] = (
        "Losses/Policy Loss",
        "Losses/Value Loss",
        "Policy/Entropy",
        "Policy/KL Divergence",
        "Policy/Clip Fraction",
    )

    def _acted_columns(self, block: Trajectories, advantage: Float32, sync: Sync) -> dict[str, NDArray[Any]]:
        """What was done in these rows, and how good that was, f32[N]."""
        hyper = self._hyper
        columns: dict[str, NDArray[Any]] = {
            "continuous": block.continuous_actions,
            "chosen": one_hot(block.discrete_actions, self._spec.actions.branches),
            "log_probs": block.log_probs.sum(1, keepdims=True) if hyper.joint_ratio else block.log_probs,
            "advantage": normalized([advantage], sync)[0] if hyper.normalize_advantage == "buffer" else advantage,
        }
        if block.action_mask is not None:
            columns["allowed"] = block.action_mask.astype(np.float32)
        return columns

    def _completed(self, prepared: PreparedRollout, parts: Sequence[Part], sync: Sync) -> Sequence[Part]:
        """With advantages normalized, if that is done for each mini-batch."""
        if self._hyper.normalize_advantage != "minibatch":
            return parts
        own = [RowSelection(part.rows, part.placed_rows)(prepared.columns["advantage"]) for part in parts]
        of_parts = zip(parts, normalized(own, sync), strict=True)
        return [replace(part, columns={"advantage": advantage}) for part, advantage in of_parts]

    def _coefficients(self, step: int) -> Coefficients:
        hyper, end = self._hyper, self._config.max_steps
        epsilon = scheduled(hyper.epsilon_schedule, hyper.epsilon, min(MIN_EPSILON, hyper.epsilon), step, end)
        return Coefficients(
            epsilon=epsilon,
            beta=scheduled(hyper.beta_schedule, hyper.beta, min(MIN_BETA, hyper.beta), step, end),
            value=hyper.value_coefficient,
            value_clip=epsilon if hyper.value_clip == "epsilon" else hyper.value_clip,
        )

    def _reported(self, coefficients: Coefficients) -> Metrics:
        return {"Policy/Epsilon": coefficients.epsilon, "Policy/Beta": coefficients.beta}
