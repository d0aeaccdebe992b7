"""A critic that sees all agents of a group (Cohen et al. 2021, with ML-Agents' networks).

Shapes: B rows, U agents: the rows and others of their joint steps, S joint steps of at most A agents; C action columns,
E columns of an embedding, R reward streams, Q sequences, M memory columns.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.encoders.observations import ObservationEncoder
from rl_tui.engine.learning.feature_layout import FeatureLayout, Features
from rl_tui.engine.learning.joint_steps import JointInputs
from rl_tui.engine.learning.networks.attention import VARIANCE, Attention, embedding
from rl_tui.engine.learning.networks.flat import placed
from rl_tui.engine.learning.networks.layers import Layers, linear
from rl_tui.engine.learning.networks.memory import Memory, Sequences
from rl_tui.engine.learning.networks.replaced_members import attend_with_each_replaced


class JointCritic(nn.Module):
    """Embeds every agent, lets all of a joint step attend to each other, and values the mean of that by hidden layers.

    The value is of what all agents see. The baseline of an agent is of what it sees, and of what the others see and do:
    it does not depend on its own action. Both have the same weights, but for the embedding of agents that act. One
    input of the head is the number of agents, from just above -1 to 1 for `largest`, the most that a group ever had.
    Goals are ordinary observations here, as in ML-Agents.
    """

    def __init__(
        self,
        random: np.random.Generator,
        layout: FeatureLayout,
        network: NetworkSettings,
        num_streams: int,
        action_columns: int | None,
    ):
        """action_columns: C; None without baselines. hidden_units must be a multiple of 4."""
        super().__init__()
        size, settings = network.hidden_units, network.memory
        self.encoder = ObservationEncoder(random, layout, network)
        self.observed = embedding(random, self.encoder.outputs, size)
        self.acted = None if action_columns is None else embedding(random, self.encoder.outputs + action_columns, size)
        self.attention = Attention(random, size)
        gain = math.sqrt(VARIANCE / size)  # ML-Agents
        self.layers = Layers(random, [size] * (network.num_layers + 1), network.activation, gain=gain)
        self.memory = Memory(random, size, settings.memory_size) if settings else None
        self.values = linear(random, (settings.memory_size // 2 if settings else size) + 1, num_streams, "xavier")
        self.largest = 1

    def forward(self, features: Features, joint: JointInputs, sequences: Sequences | None = None) -> list[Tensor]:
        """Values f32[B, R], then baselines f32[B, R] if there are any and the actions are known.

        features: of the rows, [B, ...]. sequences: with memories f32[Q, M] before them, or f32[Q, 2 M] with baselines;
        needed with memory.
        """
        hidden, counts = self._hidden(features, joint)
        if self.memory is None:
            parts = torch.split(self._valued(torch.cat(hidden), torch.cat(counts)), [len(part) for part in hidden])
            return [parts[0][self._index(joint.of_rows)], *parts[1:]]
        assert sequences is not None, "a memory reads sequences"
        read = self.memory(torch.cat(hidden), self._each(sequences, len(hidden)))
        return list(self._valued(read, torch.cat(counts)).chunk(len(hidden)))

    def read(self, features: Features, joint: JointInputs, sequences: Sequences) -> tuple[list[Tensor], Tensor]:
        """The same, and the memories after each sequence; only without gradients, and with memory."""
        assert self.memory is not None
        hidden, counts = self._hidden(features, joint)
        read, memories = self.memory.read(torch.cat(hidden), self._each(sequences, len(hidden)))
        values = list(self._valued(read, torch.cat(counts)).chunk(len(hidden)))
        return values, torch.cat(memories.chunk(len(hidden)), 1)

    def _hidden(self, features: Features, joint: JointInputs) -> tuple[list[Tensor], list[Tensor]]:
        """Hidden units of each joint step, or with memory of each row, then those for baselines of each row; and how
        many agents there are, f32[..., 1] of each."""
        encoded = self.encoder(tuple(map(_together, features, joint.others)))
        agents, of_rows = self._index(joint.agents), self._index(joint.of_rows)
        is_absent, places = agents < 0, agents.clamp(min=0)
        counts = ((~is_absent).sum(1, keepdim=True) * 2.0 / self.largest - 1).to(encoded.dtype)
        observed = functional.silu(self.observed(encoded))[places]
        of_agents: Tensor | None = None
        if self.acted is None or joint.actions is None:
            hidden = self.attention(observed, is_absent)
        else:
            acted = functional.silu(self.acted(torch.cat([encoded, joint.actions], 1)))[places]
            of_agents, hidden = attend_with_each_replaced(self.attention, acted, observed, is_absent)
        found = [(hidden, counts) if self.memory is None else (hidden[of_rows], counts[of_rows])]
        if of_agents is not None:
            found.append((of_agents[of_rows, self._index(joint.places)], counts[of_rows]))
        return [self.layers(own) for own, _ in found], [own for _, own in found]

    def _valued(self, hidden: Tensor, counts: Tensor) -> Tensor:
        """f32[..., R]."""
        values: Tensor = self.values(torch.cat([hidden, counts], 1))
        return values

    def _each(self, sequences: Sequences, times: int) -> Sequences:
        """The sequences so many times, one after the other, with one memory after the other of those side by side."""
        assert self.memory is not None
        memories = torch.split(sequences.memories, 2 * self.memory.units, 1)
        return Sequences(np.tile(sequences.lengths, times), torch.cat(memories[:times]))

    def _index(self, numbers: np.ndarray) -> Tensor:
        return placed(numbers, self.values.weight.device)


def _together(rows: Tensor, others: Tensor) -> Tensor:
    return torch.cat([rows, others]) if len(others) else rows
