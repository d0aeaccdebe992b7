"""Self-attention over sets, of observed entities or of the agents of a group.

Shapes: B sets, N members of each at most, E columns of an embedding, H = 4 heads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from rl_tui.engine.learning.networks.layers import linear, weight

HEADS = 4
VARIANCE = 0.125  # ML-Agents: every weight here is normal with variance 0.125 / E
FORBIDDEN = -1e6  # the score of an absent member; finite, so that a set may have none


@dataclass(frozen=True, slots=True)
class Attended:
    """Members as attention needs them: normalized f32[..., E], their queries, keys and values f32[..., H, E / H]."""

    normal: Tensor
    queries: Tensor
    keys: Tensor
    values: Tensor

    def take(self, places: Tensor) -> Attended:
        """The members in these places i64[B, N], of M in one row."""
        flat = places.flatten()
        columns = (self.normal, self.queries, self.keys, self.values)
        return Attended(*[of.index_select(0, flat).view(*places.shape, *of.shape[1:]) for of in columns])


class Attention(nn.Module):
    """The mean of residual self-attention over a set (Vaswani et al. 2017, as in ML-Agents).

    It does not depend on the order of members, nor on absent ones.
    """

    def __init__(self, random: np.random.Generator, size: int):
        """size: E, a multiple of 4."""
        super().__init__()
        self._size = size
        self.projections = linear(random, size, 3 * size, gain=math.sqrt(VARIANCE))  # queries, keys, values
        self.result = linear(random, size, size, gain=math.sqrt(VARIANCE))

    def forward(self, members: Tensor, is_absent: Tensor) -> Tensor:
        """f32[B, E] of f32[B, N, E] and bool[B, N]; zeros for a set without members."""
        return self.mean(self.project(members), is_absent)

    def project(self, members: Tensor) -> Attended:
        """Each of f32[..., E]."""
        normal = functional.layer_norm(members, (self._size,))
        projected = self.projections(normal).view(*members.shape[:-1], 3, HEADS, self._size // HEADS)
        return Attended(normal, *projected.unbind(-3))

    def mean(self, members: Attended, is_absent: Tensor) -> Tensor:
        """f32[B, E] of members [B, N, ...] and bool[B, N]."""
        queries, keys, values = (of.transpose(1, 2) for of in (members.queries, members.keys, members.values))
        weights = self._weights(queries @ keys.transpose(2, 3), is_absent[:, None, None])
        attended = (weights @ values).transpose(1, 2).flatten(2)
        return self._pooled(attended, members.normal, is_absent)

    def mean_with_each_replaced(self, members: Attended, others: Attended, is_absent: Tensor) -> Tensor:
        """f32[B, N, E]: `mean` of each set N times, where at the n-th time other n takes the place of member n.

        members, others: [B, N, ...]. Scores between members are computed once for all N of them.
        """
        num_members = is_absent.shape[1]
        queries, keys, values = (of.transpose(1, 2) for of in (members.queries, members.keys, members.values))
        of_others = (of.transpose(1, 2) for of in (others.queries, others.keys, others.values))
        other_queries, other_keys, other_values = of_others
        is_same = torch.eye(num_members, dtype=torch.bool, device=is_absent.device)
        # scores f32[B, H, n, query, key]
        towards_other = (queries @ other_keys.transpose(2, 3)).transpose(2, 3)[..., None]
        of_other = (other_queries @ keys.transpose(2, 3)).masked_fill(is_same, 0)
        of_other = of_other + torch.diag_embed((other_queries * other_keys).sum(3))
        scores = torch.where(is_same[:, None, :], towards_other, (queries @ keys.transpose(2, 3))[:, :, None])
        scores = torch.where(is_same[:, :, None], of_other[:, :, :, None, :], scores)
        weights = self._weights(scores, is_absent[:, None, None, None])
        to_other = weights.diagonal(dim1=2, dim2=4).transpose(2, 3)[..., None]  # f32[B, H, n, query, 1]
        to_members = weights.masked_fill(is_same[:, None, :], 0)
        attended = (to_members.flatten(2, 3) @ values).view(*to_members.shape[:4], -1)
        attended = attended + to_other * other_values[:, :, :, None]
        normal = torch.where(is_same[:, :, None], others.normal[:, :, None], members.normal[:, None])
        return self._pooled(attended.permute(0, 2, 3, 1, 4).flatten(3), normal, is_absent[:, None])

    def _weights(self, scores: Tensor, is_absent: Tensor) -> Tensor:
        """Of the members, from what queries and keys have in common."""
        scores = scores / math.sqrt(self._size)  # of all E, not of a head
        return scores.masked_fill(is_absent, FORBIDDEN).softmax(-1)

    def _pooled(self, attended: Tensor, normal: Tensor, is_absent: Tensor) -> Tensor:
        """f32[..., E] of f32[..., N, E]."""
        embedded = functional.layer_norm(self.result(attended) + normal, (self._size,))
        present = (~is_absent).to(embedded.dtype)[..., None]
        return (embedded * present).sum(-2) / (present.sum(-2) + 1e-7)


def embedding(random: np.random.Generator, inputs: int, size: int) -> nn.Linear:
    """A layer from `inputs` columns to E, before its swish."""
    return linear(random, inputs, size, gain=math.sqrt(VARIANCE * inputs / size))


def embedding_weight(random: np.random.Generator, size: int) -> Tensor:
    """f32[E, E]: the weights of such a layer."""
    return weight(random, size, size, gain=math.sqrt(VARIANCE))
