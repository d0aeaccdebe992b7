"""The encoder of sets of entities, of which any number may be absent.

Shapes: B rows, N entities of F features, E columns of an embedding, S columns of the agent's other observations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from rl_tui.engine.learning.networks.attention import Attention, embedding, embedding_weight
from rl_tui.engine.specs import ObservationSpec

EMBEDDING = 128  # E of observed entities
ABSENT = 0.01  # ML-Agents: entities whose features have a smaller sum of squares are absent


class EntityEncoder(nn.Module):
    """Attention over all sets of an agent, each entity embedded together with the other observations."""

    def __init__(self, random: np.random.Generator, columns: int, sets: Sequence[ObservationSpec]):
        """columns: S, 0 if there are no other observations."""
        super().__init__()
        self.own = embedding(random, columns, EMBEDDING) if columns else None
        self.sets = nn.ModuleList(embedding(random, spec.shape[1], EMBEDDING) for spec in sets)
        self.own_weights = nn.ParameterList(  # equal to one layer over own and entity side by side
            embedding_weight(random, EMBEDDING) for _ in sets if columns
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
