"""The memories of soft actor-critic's networks at the beginning of sequences.

Shapes: B rows in S sequences, R reward streams, M memory columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_tui.engine.config.network import MemorySettings
from rl_tui.engine.learning.agent_state import AgentState
from rl_tui.engine.learning.feature_layout import Features
from rl_tui.engine.learning.networks.critics import StateCritic, TwinCritic
from rl_tui.engine.learning.networks.flat import FlatParameters, placed
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.learning.sac.networks import SoftNetworks
from rl_tui.engine.learning.sequences import split_segments
from rl_tui.engine.learning.value_estimates import ValueEstimator
from rl_tui.engine.specs import Float32, Trajectories


@dataclass(frozen=True, slots=True)
class RecurrentState:
    """Sequences of every network for the rows of a batch, and for the next observations.

    Those of next observations begin with the memory after the first row. Both Q begin every sequence at zero.
    """

    actor: Sequences
    q: Sequences
    value: Sequences | None  # None without a value network
    next_actor: Sequences
    next_target: Sequences  # of the value network's target, or of both Q's


def recurrent_state(
    networks: SoftNetworks, features: Features, continuous: Tensor, own: Sequences, critics: Sequences | None
) -> RecurrentState:
    """The recurrent state for rows with these features and actions f32[B, A].

    own, critics: with memories of the actor and the value network before the first row of each sequence.
    """
    firsts = placed(np.cumsum(own.lengths) - own.lengths, own.memories.device)
    first = tuple(column[firsts] for column in features)
    zeros = torch.zeros_like(own.memories).expand(2, *own.memories.shape)
    with torch.no_grad():
        _, next_actor = networks.actor.step(first, own.memories)
        if networks.value is None:
            assert isinstance(networks.target, TwinCritic)
            following = networks.target.after(networks.target.encoder(first), continuous[firsts], zeros)
        else:
            assert critics is not None
            _, following = networks.value.step(first, critics.memories)
    return RecurrentState(
        actor=own,
        q=Sequences(own.lengths, zeros),
        value=critics,
        next_actor=Sequences(own.lengths, next_actor),
        next_target=Sequences(own.lengths, following),
    )


class CriticReader:
    """A state critic for a `ValueEstimator`."""

    def __init__(self, critic: StateCritic, flat: FlatParameters):
        self.place = flat.place
        self._critic = critic

    def values(self, features: Features, sequences: Sequences | None = None) -> tuple[Float32, Float32 | None]:
        """f32[B, R] and the memories f32[S, M] after each sequence, on the CPU."""
        assert sequences is not None
        with torch.no_grad():
            hidden, memories = self._critic.body.read(features, sequences)
            return self._critic.head(hidden).cpu().numpy(), memories.cpu().numpy()


class CriticMemory:
    """The state critic's memory of every agent, followed from block to block."""

    def __init__(self, reader: CriticReader, settings: MemorySettings, batch_size: int):
        self._settings = settings
        self._estimate = ValueEstimator(reader, settings, batch_size, is_shared=False)
        self._agents = AgentState.empty(settings.memory_size, np.float32)

    def follow(self, block: Trajectories, features: Features, following: Features) -> Float32:
        """f32[N, M]: its memory where a sequence of the block begins; zeros in all other rows.

        features, following: of the block's rows, and after its segments.
        """
        estimates = self._estimate(features, following, block, self._agents)
        self._agents = estimates.agents
        assert estimates.sequences is not None
        lengths, _ = split_segments(block.lengths, self._settings.sequence_length)
        memories = np.zeros((block.num_rows, self._settings.memory_size), np.float32)
        both: NDArray[np.float32] = estimates.sequences.memories.cpu().numpy()
        memories[np.cumsum(lengths) - lengths] = both[:, self._settings.memory_size :]
        return memories
