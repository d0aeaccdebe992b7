"""The columns of a rollout that PPO's loss needs.

Shapes: N rows in P segments, A continuous dimensions, K branches, R reward streams.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.learning.distributions import one_hot
from rl_tui.engine.learning.on_policy.advantages import gae
from rl_tui.engine.learning.on_policy.rollout import Rollout
from rl_tui.engine.learning.ppo.settings import PPOSettings
from rl_tui.engine.learning.rewards.streams import RewardStreams
from rl_tui.engine.learning.sync import Sync
from rl_tui.engine.learning.value_estimates import ValueEstimates
from rl_tui.engine.specs import TERMINATED

Array: TypeAlias = Any  # numpy array or torch tensor
EPSILON = 1e-10  # ML-Agents; keeps a constant advantage finite


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of a rollout, with values and log-probabilities from when they were collected.

    continuous: f32[B, A]. chosen: f32[B, sum of branches], 1 for each branch's choice. allowed: the same shape, 0 for a
    forbidden choice, or None. log_probs: f32[B, W]. advantage: f32[B]. returns, values: f32[B, S].
    """

    continuous: Array
    chosen: Array
    allowed: Array | None
    log_probs: Array
    advantage: Array
    returns: Array
    values: Array


def advantage_columns(
    rollout: Rollout,
    estimates: ValueEstimates,
    streams: RewardStreams,
    branches: tuple[int, ...],
    hyper: PPOSettings,
    sync: Sync,
) -> dict[str, NDArray[Any]]:
    """The columns of `Batch` for N rows; "allowed" only if something was forbidden."""
    block = rollout.experience
    ends = (block.endings == TERMINATED)[:, None] & streams.masks_terminal
    next_values = np.where(ends, np.float32(0), estimates.next_values)
    advantages, returns = gae(
        rollout.rewards, estimates.values, next_values, block.lengths, streams.gammas, hyper.lambd
    )
    advantage = advantages.mean(1)
    columns: dict[str, NDArray[Any]] = {
        "continuous": block.continuous_actions,
        "chosen": one_hot(block.discrete_actions, branches),
        "log_probs": block.log_probs.sum(1, keepdims=True) if hyper.joint_ratio else block.log_probs,
        "values": estimates.values,
        "returns": returns,
        "advantage": normalized(advantage, sync) if hyper.normalize_advantage == "buffer" else advantage,
    }
    if block.action_mask is not None:
        columns["allowed"] = block.action_mask.astype(np.float32)
    return columns


def normalized(advantage: Array, sync: Sync) -> Array:
    """Advantages of mean 0 and deviation 1, over the rows of all ranks."""
    centered = advantage - sync.mean(advantage)
    deviation = sync.mean(centered * centered) ** 0.5  # of the population: torch's std() divides by one less
    return centered / (deviation + EPSILON)
