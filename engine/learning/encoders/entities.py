"""The encoder of sets of entities, of which any number may be absent.

Shapes: B rows, N entities of F features, E columns of an embedding, S columns of the agent's other observations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from rl_tui.engine.learning.networks.layers import linear, weight
from rl_tui.engine.specs import ObservationSpec

EMBEDDING = 128  # E of observed entities
HEADS = 4
ABSENT = 0.01  # ML-Agents: entities whose features have a smaller sum of squares are absent
VARIANCE = 0.125  # ML-Agents: every weight here is normal with variance 0.125 / E
FORBIDDEN = -1e6  # the score of an absent entity; finite, so that a row may have none


class Attention(nn.Module):
    """The mean of residual self-attention over a set (Vaswani et al. 2017, as in ML-Agents).

    It does not depend on the order of entities, nor on the features of absent ones.
    """

    def __init__(self, random: np.random.Generator, size: int):
        """size: E, a multiple of 4."""
        super().__init__()
        self._size = size
        self.projections = linear(random, size, 3 * size, gain=math.sqrt(VARIANCE))  # queries, keys, values
        self.result = linear(random, size, size, gain=math.sqrt(VARIANCE))

    def forward(self, entities: Tensor, is_absent: Tensor) -> Tensor:
        """f32[B, E] of f32[B, N, E] and bool[B, N]; zeros for a row without entities."""
        normal = functional.layer_norm(entities, (self._size,))
        num_entities = entities.shape[1]
        heads = self.projections(normal).view(-1, num_entities, 3, HEADS, self._size // HEADS)
        queries, keys, values = heads.permute(2, 0, 3, 1, 4).unbind(0)
        scores = queries @ keys.transpose(2, 3) / math.sqrt(self._size)  # of all E, not of a head
        attention = scores.masked_fill(is_absent[:, None, None], FORBIDDEN).softmax(3)
        attended = (attention @ values).transpose(1, 2).reshape(-1, num_entities, self._size)
        embedded = functional.layer_norm(self.result(attended) + normal, (self._size,))
        present = (~is_absent).to(embedded.dtype)[:, :, None]
        return (embedded * present).sum(1) / (present.sum(1) + 1e-7)


class EntityEncoder(nn.Module):
    """Attention over all sets of an agent, each entity embedded together with the other observations."""

    def __init__(self, random: np.random.Generator, columns: int, sets: Sequence[ObservationSpec]):
        """columns: S, 0 if there are no other observations."""
        super().__init__()
        self.own = _embedding(random, columns) if columns else None
        self.sets = nn.ModuleList(_embedding(random, spec.shape[1]) for spec in sets)
        self.own_weights = nn.ParameterList(  # equal to one layer over own and entity side by side
            weight(random, EMBEDDING, EMBEDDING, gain=math.sqrt(VARIANCE)) for _ in sets if columns
        )
        self.attention = Attention(random, EMBEDDING)

    def forward(self, own: Tensor | None, sets: Sequence[Tensor]) -> Tensor:
        """f32[B, E] of f32[B, S], None if S = 0, and one f32[B, N, F] of each set."""
        is_absent = torch.cat([entities.square().sum(2) < ABSENT for entities in sets], 1)
        embedded = [embed(entities) for embed, entities in zip(self.sets, sets, strict=True)]
        if self.own is not None and own is not None:
            own = functional.silu(self.own(own))
            embedded = [
                rows + functional.linear(own, weights)[:, None]
                for rows, weights in zip(embedded, self.own_weights, strict=True)
            ]
        result: Tensor = self.attention(functional.silu(torch.cat(embedded, 1)), is_absent)
        return result


def _embedding(random: np.random.Generator, inputs: int) -> nn.Linear:
    """A layer from `inputs` columns to E, before its swish."""
    return linear(random, inputs, EMBEDDING, gain=math.sqrt(VARIANCE * inputs / EMBEDDING))
