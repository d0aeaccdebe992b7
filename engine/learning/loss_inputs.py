"""What a custom loss is given.  Shapes: B rows of a mini-batch, S reward streams, W ratio columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from torch import Tensor

from rl_tui.engine.learning.on_policy.rollout import RolloutMinibatch


@dataclass(frozen=True, slots=True)
class LossInputs:
    """A mini-batch and what the networks say of it, as tensors on the learner's device.

    behavior: whose mini-batch it is. sample: its rows, with what was known before the update; observations, actions and
    rewards are numpy arrays. features: the networks' inputs, normalized, each [B, ...].

    These can be differentiated: log_probs f32[B, W], of the actions taken; entropy f32[], as its metric; values
    f32[B, S].
    """

    behavior: str
    sample: RolloutMinibatch
    features: tuple[Tensor, ...]
    log_probs: Tensor
    entropy: Tensor
    values: Tensor


CustomLoss: TypeAlias = Callable[[LossInputs], Tensor]  # f32[]


def require_scalar(loss: CustomLoss) -> CustomLoss:
    """The loss, which raises a TypeError where it returns anything else."""

    def call(inputs: LossInputs) -> Tensor:
        returned: object = loss(inputs)
        if isinstance(returned, Tensor) and returned.numel() == 1 and returned.is_floating_point():
            return returned.reshape(())
        got = f"a Tensor of shape {list(returned.shape)}" if isinstance(returned, Tensor) else repr(returned)
        raise TypeError(f"a custom loss must return a torch scalar of floats, got {got}")

    call.__qualname__ = getattr(loss, "__qualname__", type(loss).__qualname__)
    return call
