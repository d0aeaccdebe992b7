"""Networks that value states and actions.

Shapes: B rows, E encoded columns, A continuous dimensions, S reward streams, O outputs of a stream: one for each choice
of every branch, one in all without branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.encoders.observations import ObservationEncoder
from rl_tui.engine.learning.feature_layout import FeatureLayout, Features
from rl_tui.engine.learning.networks.body import Body, Core
from rl_tui.engine.learning.networks.layers import Layers, linear
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.specs import ActionSpec


class StateCritic(nn.Module):
    """V(s) of every stream."""

    def __init__(self, random: np.random.Generator, layout: FeatureLayout, network: NetworkSettings, streams: int):
        super().__init__()
        self.body = Body(random, layout, network)
        self.head = linear(random, self.body.outputs, streams, "xavier")

    def forward(self, features: Features, sequences: Sequences | None = None) -> Tensor:
        """f32[B, S]."""
        values: Tensor = self.head(self.body(features, sequences))
        return values

    def step(self, features: Features, memories: Tensor) -> tuple[Tensor, Tensor]:
        """Values f32[B, S] and the memories after them, of one step of B agents."""
        hidden, memories = self.body.step(features, memories)
        return self.head(hidden), memories


class TwinCritic(nn.Module):
    """Q1(s, a) and Q2(s, a): one encoder of observations, followed by two networks side by side.

    Continuous actions are inputs, discrete ones outputs.
    """

    def __init__(
        self,
        random: np.random.Generator,
        layout: FeatureLayout,
        actions: ActionSpec,
        network: NetworkSettings,
        streams: int,
    ):
        super().__init__()
        self._streams = streams
        self.encoder = ObservationEncoder(random, layout, network)
        inputs = self.encoder.outputs + actions.continuous
        self.core = Core(random, inputs, network, twins=2, goals=self.encoder.goal_outputs)
        outputs = streams * max(actions.mask_size, 1)
        self.head = Layers(random, [self.core.outputs, outputs], network.activation, ends_linear=True, twins=2)
        with torch.no_grad():
            for twin in self.head.weights[0]:
                twin.copy_(linear(random, self.core.outputs, outputs, "xavier").weight)
        self._behind_encoder = [*self.core.parameters(), *self.head.parameters()]

    def forward(self, encoded: Tensor, continuous: Tensor, sequences: Sequences | None = None) -> Tensor:
        """f32[2, B, S, O] of `encoder`'s result f32[B, E] and actions f32[B, A].

        sequences: with memories f32[2, sequences, M], each network's own.
        """
        values: Tensor = self.head(self.core(_joined(encoded, continuous), sequences, self.encoder.goals(encoded)))
        return values.view(2, len(encoded), self._streams, -1)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Calls inside give gradients to the actions, and none to the parameters behind the encoder."""
        for parameter in self._behind_encoder:
            parameter.requires_grad = False
        try:
            yield
        finally:
            for parameter in self._behind_encoder:
                parameter.requires_grad = True

    def after(self, encoded: Tensor, continuous: Tensor, memories: Tensor) -> Tensor:
        """The memories of both after one step of B agents, f32[2, B, M], given those before it."""
        inputs = _joined(encoded, continuous)
        return self.core.step(inputs, memories, self.encoder.goals(encoded))[1]


def _joined(encoded: Tensor, continuous: Tensor) -> Tensor:
    return torch.cat([encoded, continuous], 1) if continuous.shape[1] else encoded
