"""An actor and a critic as torch modules.

Shapes: B rows, H head columns, R reward streams, S sequences, M memory columns.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor, nn

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.feature_layout import FeatureLayout, Features
from rl_tui.engine.learning.networks.actor import Actor
from rl_tui.engine.learning.networks.body import Body
from rl_tui.engine.learning.networks.layers import linear
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.specs import ActionSpec


class ActorCriticModule(nn.Module):
    """An actor, and a critic with a body of its own or, if it is shared, a value head on the actor's.

    Two bodies have two memories side by side: f32[S, 2 M], the actor's first. A shared body has one.
    """

    def __init__(
        self,
        random: np.random.Generator,
        layout: FeatureLayout,
        actions: ActionSpec,
        network: NetworkSettings,
        num_streams: int,
        is_shared: bool,
    ):
        super().__init__()
        self.actor = Actor(random, layout, actions, network, is_squashed=False)
        self.critic = None if is_shared else Body(random, layout, network)
        self.values = linear(random, self.actor.body.outputs, num_streams, "xavier")

    def forward(self, features: Features, sequences: Sequences | None = None) -> tuple[Tensor, Tensor]:
        """The head f32[B, H] and values f32[B, R]."""
        if self.critic is None:
            hidden = valued = self.actor.body(features, sequences)
        elif sequences is None:
            hidden, valued = self.actor.body(features), self.critic(features)
        else:
            own, critics = _halves(sequences)
            hidden, valued = self.actor.body(features, own), self.critic(features, critics)
        return self.actor.head(hidden), self.values(valued)

    def value(self, features: Features, sequences: Sequences | None = None) -> tuple[Tensor, Tensor | None]:
        """Values f32[B, R] and the memories f32[S, M] after each sequence, None without memory.

        sequences: with the memories f32[S, M] of the critic alone.
        """
        body = self.actor.body if self.critic is None else self.critic
        if sequences is None:
            return self.values(body(features)), None
        hidden, memories = body.read(features, sequences)
        return self.values(hidden), memories


def _halves(sequences: Sequences) -> tuple[Sequences, Sequences]:
    """The sequences with the actor's memories, and with the critic's."""
    own, critics = sequences.memories.chunk(2, 1)
    return Sequences(sequences.lengths, own), Sequences(sequences.lengths, critics)
