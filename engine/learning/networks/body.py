"""The common part of actors and critics: encoders, hidden layers, and a memory if the settings have one.

Shapes: B rows, E encoded columns, G goal columns, H hidden units, I inputs and O outputs of a layer, S sequences,
M memory columns, T twins (or none of that axis).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.acting.layers import Activation
from rl_tui.engine.learning.encoders.observations import ObservationEncoder
from rl_tui.engine.learning.feature_layout import FeatureLayout, Features
from rl_tui.engine.learning.networks.layers import ACTIVATIONS, Layers
from rl_tui.engine.learning.networks.memory import Memory, Sequences


class Core(nn.Module):
    """Hidden layers over encoded columns, the last of them conditioned where there are goals, then the memory."""

    def __init__(
        self,
        random: np.random.Generator,
        inputs: int,
        network: NetworkSettings,
        twins: int | None = None,
        goals: int = 0,
    ):
        """inputs: E. goals: G; if it is not 0, every call needs the goals."""
        super().__init__()
        widths = [inputs, *[network.hidden_units] * network.num_layers]
        self.layers = Layers(random, widths[:-1] if goals else widths, network.activation, twins=twins)
        self.conditioned = (
            ConditionedLayer(random, widths[-2], network.hidden_units, goals, network.activation, twins)
            if goals
            else None
        )
        settings = network.memory
        self.memories = nn.ModuleList(
            Memory(random, network.hidden_units, settings.memory_size) for _ in range(twins or 1) if settings
        )
        self.outputs = settings.memory_size // 2 if settings else network.hidden_units

    def forward(self, encoded: Tensor, sequences: Sequences | None = None, goals: Tensor | None = None) -> Tensor:
        """f32[B, outputs] of f32[B, E] and f32[B, G], or f32[T, B, outputs].

        sequences: needed with memory; for twins with memories f32[T, S, M].
        """
        hidden = self._hidden(encoded, goals)
        if not self.memories:
            return hidden
        assert sequences is not None, "a memory reads sequences"
        if hidden.dim() == 2:
            return self.memories[0](hidden, sequences)  # type: ignore[no-any-return]  # a tensor
        twins = zip(self.memories, hidden, sequences.memories, strict=True)
        return torch.stack([memory(rows, Sequences(sequences.lengths, own)) for memory, rows, own in twins])

    def step(self, encoded: Tensor, memories: Tensor, goals: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """f32[B, outputs] and the memories after it f32[B, M], of one step of B agents; all with T for twins."""
        hidden = self._hidden(encoded, goals)
        if not self.memories:
            return hidden, memories
        if hidden.dim() == 2:
            return self.memories[0].step(hidden, memories)  # type: ignore[operator, no-any-return]  # a Memory
        twins = zip(self.memories, hidden, memories, strict=True)
        steps = [memory.step(rows, own) for memory, rows, own in twins]  # type: ignore[operator]  # a Memory
        return torch.stack([read for read, _ in steps]), torch.stack([after for _, after in steps])

    def read(self, encoded: Tensor, sequences: Sequences, goals: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """f32[B, outputs] and the memories f32[S, M] after each sequence; without gradients, and not for twins."""
        return self.memories[0].read(self._hidden(encoded, goals), sequences)  # type: ignore[operator, no-any-return]  # a Memory

    def _hidden(self, encoded: Tensor, goals: Tensor | None) -> Tensor:
        """f32[B, H], or f32[T, B, H]."""
        hidden: Tensor = self.layers(encoded)
        if self.conditioned is None:
            return hidden
        assert goals is not None, "a conditioned layer needs the goals"
        result: Tensor = self.conditioned(hidden, goals)
        return result


class Body(nn.Module):
    """From features to hidden units."""

    def __init__(self, random: np.random.Generator, layout: FeatureLayout, network: NetworkSettings):
        super().__init__()
        self.encoder = ObservationEncoder(random, layout, network)
        self.core = Core(random, self.encoder.outputs, network, goals=self.encoder.goal_outputs)
        self.outputs = self.core.outputs

    def forward(self, features: Features, sequences: Sequences | None = None) -> Tensor:
        """f32[B, outputs]."""
        encoded = self.encoder(features)
        hidden: Tensor = self.core(encoded, sequences, self.encoder.goals(encoded))
        return hidden

    def read(self, features: Features, sequences: Sequences) -> tuple[Tensor, Tensor]:
        """See `Core.read`."""
        encoded = self.encoder(features)
        return self.core.read(encoded, sequences, self.encoder.goals(encoded))

    def step(self, features: Features, memories: Tensor) -> tuple[Tensor, Tensor]:
        """See `Core.step`."""
        encoded = self.encoder(features)
        return self.core.step(encoded, memories, self.encoder.goals(encoded))


class ConditionedLayer(nn.Module):
    """A layer and its activation, whose weights a network of two layers makes from the row's goal.

    A hypernetwork (Ha et al. 2016) with ML-Agents' layers and initial values; `base`, the part of the weights that is
    the same for every goal, and the bias begin at zero.
    """

    def __init__(
        self,
        random: np.random.Generator,
        inputs: int,
        outputs: int,
        goals: int,
        activation: Activation,
        twins: int | None = None,
    ):
        super().__init__()
        self._activate = ACTIVATIONS[activation]
        self.goal_layers = Layers(random, [goals, outputs, outputs], activation, twins=twins)
        axis = () if twins is None else (twins,)
        bound = np.float32(math.sqrt(1 / (outputs * inputs)))
        made = random.random((*axis, outputs, inputs * outputs), np.float32)
        self.makers = nn.Parameter(torch.from_numpy((2 * made - 1) * bound))
        self.base = nn.Parameter(torch.zeros(*axis, inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(*axis, 1, outputs))

    def forward(self, hidden: Tensor, goals: Tensor) -> Tensor:
        """f32[B, O] of f32[B, I] and f32[B, G], or f32[T, B, O] of f32[B, I] or f32[T, B, I] and f32[B, G]."""
        *axis, inputs, outputs = self.base.shape
        features = functional.layer_norm(self.goal_layers(goals), (outputs,))
        weights = (features @ self.makers).view(*axis, -1, inputs, outputs)
        result = (hidden.unsqueeze(-2) @ weights).squeeze(-2) + hidden @ self.base + self.bias
        return self._activate(result)
