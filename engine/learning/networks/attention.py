"""Self-attention over sets, of observed entities or of the agents of a group.

Shapes: B sets, N members of each at most, E columns of an embedding, H = 4 heads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn
from torch.nn import functional

from rl_tui.engine.learning.networks.layers import linear, weight

HEADS = 4  # as in on_policy/group_settings.py
VARIANCE = 0.125  # ML-Agents: every weight here is normal with variance 0.125 / E
FORBIDDEN = -1e6  # the score of an absent member; finite, so that a set may have none


@dataclass(frozen=True, slots=True)
class Attended:
    """What members have in common, whichever of them are looked at together. normal: f32[B, N, E]. scores: f32[H, B, N,
    N], of a query (next to last) and a key. results: f32[H, B, N, E], what each adds to who attends to it alone."""

    normal: Tensor
    scores: Tensor
    results: Tensor


class Attention(nn.Module):
    """The mean of residual self-attention over a set (Vaswani et al. 2017, as in ML-Agents).

    It does not depend on the order of members, nor on absent ones.
    """

    def __init__(self, random: np.random.Generator, size: int):
        """size: E, a multiple of 4."""
        super().__init__()
        self.size = size
        self.projections = linear(random, size, 3 * size, gain=math.sqrt(VARIANCE))  # queries, keys, values
        self.result = linear(random, size, size, gain=math.sqrt(VARIANCE))

    def forward(self, members: Tensor, is_absent: Tensor) -> Tensor:
        """f32[B, E] of f32[B, N, E] and bool[B, N]; zeros for a set without members."""
        normal, projected = self._projected(members)
        queries, keys, values = (of.transpose(1, 2) for of in projected.unbind(2))
        weights = self._scores(queries, keys, is_absent[:, None, None]).softmax(-1)
        attended = (weights @ values).transpose(1, 2).flatten(2)
        return mean(self.embedded(self.result(attended) + normal), ~is_absent)

    def attended(self, members: Tensor, is_absent: Tensor) -> Attended:
        """Of f32[B, N, E] and bool[B, N]."""
        normal, projected = self._projected(members)
        queries, keys, values = projected.permute(2, 3, 0, 1, 4).contiguous().unbind(0)  # each f32[H, B, N, E / H]
        scores = self._scores(queries, keys, is_absent[:, None])
        by_head = self.result.weight.view(self.size, HEADS, -1).permute(1, 2, 0)  # f32[H, E / H, E]
        results = (values.flatten(1, 2) @ by_head).view(*values.shape[:3], self.size)
        return Attended(normal, scores, results)

    def embedded(self, residual: Tensor) -> Tensor:
        """Members after attention, each of f32[..., E]."""
        return functional.layer_norm(residual, (self.size,))

    def _projected(self, members: Tensor) -> tuple[Tensor, Tensor]:
        """The members, normalized, and f32[B, N, 3, H, E / H] of their queries, keys and values."""
        normal = functional.layer_norm(members, (self.size,))
        return normal, self.projections(normal).view(*members.shape[:2], 3, HEADS, self.size // HEADS)

    def _scores(self, queries: Tensor, keys: Tensor, is_absent: Tensor) -> Tensor:
        """What queries and keys have in common."""
        scores = queries @ keys.transpose(2, 3) / math.sqrt(self.size)  # of all E, not of a head
        return scores.masked_fill(is_absent, FORBIDDEN)


def mean(members: Tensor, is_present: Tensor) -> Tensor:
    """f32[..., E] of f32[..., N, E] and bool[..., N]."""
    present = is_present.to(members.dtype)
    return (members * present[..., None]).sum(-2) / (present.sum(-1, keepdim=True) + 1e-7)


def embedding(random: np.random.Generator, inputs: int, size: int) -> nn.Linear:
    """A layer from `inputs` columns to E, before its swish."""
    return linear(random, inputs, size, gain=math.sqrt(VARIANCE * inputs / size))


def embedding_weight(random: np.random.Generator, size: int) -> Tensor:
    """f32[E, E]: the weights of such a layer."""
    return weight(random, size, size, gain=math.sqrt(VARIANCE))
