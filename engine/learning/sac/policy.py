"""The actions of a soft actor for its losses: in torch with gradients, and in numpy for gradients written out.

Shapes: B rows, A continuous dimensions, K branches, C choices of one branch, M mask columns (1 without branches, for
values), S reward streams, H head columns (see networks/actor.py, is_squashed).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rl_tui.engine.learning.acting.distributions import MAX_LOG_SIGMA, MIN_LOG_SIGMA
from rl_tui.engine.learning.distributions import Array, mask_logits, squashed_log_probs
from rl_tui.engine.specs import ActionSpec, Float32


@dataclass(frozen=True, slots=True)
class SoftPolicy:
    """Samples of continuous actions, probabilities of discrete ones.

    continuous: f32[B, A], squashed. log_prob: f32[B], of all dimensions together, zero without any. probabilities,
    log_probabilities: f32[B, C] for each branch.
    """

    continuous: Tensor
    log_prob: Tensor
    probabilities: tuple[Tensor, ...]
    log_probabilities: tuple[Tensor, ...]

    @property
    def negative_entropies(self) -> list[Array]:
        """sum over choices of p ln p, f32[B] for each branch."""
        pairs = zip(self.probabilities, self.log_probabilities, strict=True)
        return [(p * log_p).sum(1) for p, log_p in pairs]

    def expected(self, values: Tensor) -> Tensor:
        """The expectation over choices, averaged over branches: f32[..., B, S] of values f32[..., B, S, M].

        Without branches the only value.
        """
        if not self.probabilities:
            return values.squeeze(-1)
        parts = torch.split(values, [p.shape[1] for p in self.probabilities], -1)
        means = [(p[:, None] * part).sum(-1) for p, part in zip(self.probabilities, parts, strict=True)]
        return sum(means[1:], means[0]) / len(means)


def soft_policy(head: Tensor, actions: ActionSpec, noise: Tensor, allowed: Tensor | None) -> SoftPolicy:
    """The policy of heads f32[B, H]. noise: f32[B, A], standard normal. allowed: f32[B, M] of 0 and 1, or None."""
    size = actions.continuous
    if size:
        mean, log_sigma = head[:, :size], head[:, size : 2 * size].clamp(MIN_LOG_SIGMA, MAX_LOG_SIGMA)
        drawn = mean + log_sigma.exp() * noise
        log_prob = squashed_log_probs(noise, log_sigma, drawn).sum(1)
        continuous = drawn.tanh()
    else:
        continuous, log_prob = noise, torch.zeros(len(head), device=head.device, dtype=head.dtype)
    if not actions.branches:
        return SoftPolicy(continuous, log_prob, (), ())
    logits = head[:, 2 * size :]
    if allowed is not None:
        logits = mask_logits(logits, allowed)
    log_probabilities = tuple(branch.log_softmax(1) for branch in torch.split(logits, list(actions.branches), 1))
    return SoftPolicy(continuous, log_prob, tuple(branch.exp() for branch in log_probabilities), log_probabilities)


@dataclass(frozen=True, slots=True)
class NumpySoftPolicy:
    """`SoftPolicy` in numpy, with what its gradients need. spread: f32[B, A], sigma times noise.

    negative_entropies: f32[B] for each branch. shares: f32[B, M], the weight of each choice in `expected`; None without
    branches.
    """

    continuous: Float32
    log_prob: Float32
    spread: Float32
    is_inside: Float32  # f32[B, A]: 0 where the spread is held at a limit
    probabilities: list[Float32]
    log_probabilities: list[Float32]
    negative_entropies: list[Array]
    shares: Float32 | None

    def expected(self, values: Float32) -> Float32:
        """See SoftPolicy."""
        shares = self.shares
        return values[..., 0] if shares is None else (values * shares[:, None]).sum(-1)


def numpy_soft_policy(head: Float32, actions: ActionSpec, noise: Float32, allowed: Float32 | None) -> NumpySoftPolicy:
    """What `soft_policy` computes, in half of torch's time; test_gradients.py holds them equal."""
    size = actions.continuous
    continuous, log_prob = noise, np.zeros(len(head), np.float32)
    spread = is_inside = noise
    if size:
        mean, raw = head[:, :size], head[:, size : 2 * size]
        log_sigma = np.clip(raw, MIN_LOG_SIGMA, MAX_LOG_SIGMA)
        is_inside = (raw == log_sigma).astype(np.float32)
        spread = np.exp(log_sigma) * noise
        drawn = mean + spread
        log_prob = squashed_log_probs(noise, log_sigma, drawn).sum(1)
        continuous = np.tanh(drawn)
    probabilities, log_probabilities = [], []
    start = 0
    for choices in actions.branches:
        columns = slice(start, start + choices)
        logits = head[:, 2 * size :][:, columns]
        if allowed is not None:
            logits = mask_logits(logits, allowed[:, columns])
        shifted = logits - logits.max(1, keepdims=True)
        powers = np.exp(shifted)
        total = powers.sum(1, keepdims=True)
        probabilities.append(powers / total)
        log_probabilities.append(shifted - np.log(total))
        start += choices
    shares: Float32 | None = None
    if probabilities:
        shares = np.concatenate(probabilities, 1)
        shares /= np.float32(len(probabilities))
    negative_entropies = [(p * log_p).sum(1) for p, log_p in zip(probabilities, log_probabilities, strict=True)]
    return NumpySoftPolicy(
        continuous, log_prob, spread, is_inside, probabilities, log_probabilities, negative_entropies, shares
    )
