"""What a soft actor would do, with gradients.

Shapes: B rows, A continuous dimensions, K branches, C choices of one branch, M mask columns, H head columns (see
`networks.actor`, is_squashed).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from rl_tui.engine.learning.distributions import FORBIDDEN, LOG_SQRT_TWO_PI, MAX_LOG_SIGMA, MIN_LOG_SIGMA
from rl_tui.engine.specs import ActionSpec


@dataclass(frozen=True, slots=True)
class SoftPolicy:
    """Continuous actions drawn, discrete ones as probabilities.

    continuous: f32[B, A], squashed. log_prob: f32[B], of all dimensions together, zero without any. probabilities,
    log_probabilities: f32[B, C] for each branch.
    """

    continuous: Tensor
    log_prob: Tensor
    probabilities: tuple[Tensor, ...]
    log_probabilities: tuple[Tensor, ...]

    @property
    def negative_entropies(self) -> list[Tensor]:
        """sum over choices of p ln p, f32[B] for each branch."""
        pairs = zip(self.probabilities, self.log_probabilities, strict=True)
        return [(p * log_p).sum(1) for p, log_p in pairs]

    def expected(self, values: Tensor) -> Tensor:
        """Mean over branches of what the choices are worth on average: f32[..., B, S] of values f32[..., B, S, M].

        Without branches the one value as it is.
        """
        if not self.probabilities:
            return values.squeeze(-1)
        parts = torch.split(values, [p.shape[1] for p in self.probabilities], -1)
        worth = [(p[:, None] * part).sum(-1) for p, part in zip(self.probabilities, parts, strict=True)]
        return sum(worth[1:], worth[0]) / len(worth)


def soft_policy(head: Tensor, actions: ActionSpec, noise: Tensor, allowed: Tensor | None) -> SoftPolicy:
    """The policy of heads f32[B, H]. noise: f32[B, A], standard normal. allowed: f32[B, M] of 0 and 1, or None."""
    size = actions.continuous
    if size:
        mean, log_sigma = head[:, :size], head[:, size : 2 * size].clamp(MIN_LOG_SIGMA, MAX_LOG_SIGMA)
        drawn = mean + log_sigma.exp() * noise
        # ln(1 - tanh(u)^2) = 2 (ln 2 - u - softplus(-2u)), which keeps its digits where tanh is 1
        slope = 2 * (math.log(2) - drawn - functional.softplus(-2 * drawn))
        log_prob = (-0.5 * noise * noise - log_sigma - LOG_SQRT_TWO_PI - slope).sum(1)
        continuous = drawn.tanh()
    else:
        continuous, log_prob = noise, torch.zeros(len(head), device=head.device, dtype=head.dtype)
    if not actions.branches:
        return SoftPolicy(continuous, log_prob, (), ())
    logits = head[:, 2 * size :]
    if allowed is not None:
        logits = logits * allowed - FORBIDDEN * (1 - allowed)
    log_probabilities = tuple(branch.log_softmax(1) for branch in torch.split(logits, list(actions.branches), 1))
    return SoftPolicy(continuous, log_prob, tuple(branch.exp() for branch in log_probabilities), log_probabilities)
