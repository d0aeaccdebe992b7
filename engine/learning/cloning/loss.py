"""How far a policy is from what was demonstrated (Pomerleau 1989), in ML-Agents' form.

Shapes: B rows, A continuous dimensions, K branches, H head columns (see networks/actor.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from rl_tui.engine.learning.acting.distributions import MAX_LOG_SIGMA, MIN_LOG_SIGMA
from rl_tui.engine.learning.networks.actor import Actor


@dataclass(frozen=True, slots=True)
class CloningLoss:
    """The means over B rows, f32[] each.

    error: the squared error of continuous actions plus the cross entropy of choices. spread: what drawing adds to the
    squared error on average, as far as `error` is that of means.
    """

    error: Tensor
    spread: Tensor

    @property
    def total(self) -> Tensor:
        """What is minimized."""
        return self.error + self.spread


def cloning_loss(
    actor: Actor, head: Tensor, continuous: Tensor, discrete: Tensor, noise: Tensor | None = None
) -> CloningLoss:
    """The loss of heads f32[B, H], with all choices allowed.

    continuous: f32[B, A], demonstrated, as `Choice.continuous` would have them. discrete: i64[B, K]. noise: f32[B, A],
    standard normal, by which squashed actions are drawn; None for their means.

    ML-Agents draws every action. Of a normal distribution the squared error of a draw is (mean - action)^2 + sigma^2 on
    average, which needs no draws and has their gradient without their noise.
    """
    error = spread = head.new_zeros(())
    begin = actor.actions.continuous
    if actor.is_squashed and begin:
        error = functional.mse_loss(_squashed(head, begin, noise), continuous)
        begin *= 2
    elif actor.log_sigma is not None:
        error = functional.mse_loss(head[:, :begin], continuous)
        spread = (2 * actor.log_sigma).exp().mean()
    if actor.actions.branches:
        branches = torch.split(head[:, begin:], list(actor.actions.branches), 1)
        entropies = [functional.cross_entropy(of, chosen) for of, chosen in zip(branches, discrete.T, strict=True)]
        error = error + torch.stack(entropies).mean()
    return CloningLoss(error, spread)


def _squashed(head: Tensor, size: int, noise: Tensor | None) -> Tensor:
    """f32[B, A]: tanh of the means, or of what is drawn with that noise."""
    drawn = head[:, :size]
    if noise is not None:
        drawn = drawn + head[:, size : 2 * size].clamp(MIN_LOG_SIGMA, MAX_LOG_SIGMA).exp() * noise
    return drawn.tanh()
