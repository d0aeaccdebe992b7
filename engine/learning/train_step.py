"""One gradient step, as the hooks that are called after it see it.  Shapes: B rows of a mini-batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rl_tui.engine.learning.transitions import Transitions

Array: TypeAlias = Any  # numpy array or torch tensor


@dataclass(frozen=True, slots=True)
class TrainStep:
    """The rows of a mini-batch, and the losses by which the step was taken.

    behavior: whose trainer took it. sample: PPO's `RolloutMinibatch`, with rewards, advantages, returns and
    log-probabilities, or a replay buffer's `Minibatch`, with its rows' numbers and weights. losses: by ML-Agents' tag,
    f32[] each on the trainer's device, where `float` waits for it. errors: f32[B] of the critics, by which a
    prioritized replay ranks its rows; None where the trainer has no such errors. On several ranks, each sees its own
    rows and their losses.
    """

    behavior: str
    sample: Transitions
    losses: Mapping[str, Array]
    errors: Array | None = None


TrainStepHook: TypeAlias = Callable[[TrainStep], None]
