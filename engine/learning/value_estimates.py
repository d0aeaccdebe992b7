"""Value estimates of a rollout, with or without memory.

Shapes: N rows in P segments, S sequences, R reward streams, M memory columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.config.network import MemorySettings
from rl_tui.engine.experience import sequence_rows
from rl_tui.engine.learning.agent_state import AgentState
from rl_tui.engine.learning.feature_layout import Features
from rl_tui.engine.learning.group_mates import Mates, MatesOfRows, find_group_mates
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.learning.row_selection import Array, RowSelection
from rl_tui.engine.learning.sequences import EpisodeLinks, link_episodes, split_segments
from rl_tui.engine.specs import Float32, Int64, Trajectories

AnyMates: TypeAlias = Mates | MatesOfRows | None


@dataclass(frozen=True, slots=True)
class ValueEstimates:
    """values: f32[N, R]. next_values: f32[P, R], after each segment, however it ended. sequences: for
    `ActorCritic.forward`, None without memory. agents: the critic's memories after the rollout."""

    values: Float32
    next_values: Float32
    sequences: Sequences | None
    agents: AgentState


class Critic(Protocol):
    """A network that estimates values of single agents, like `ActorCritic`."""

    def place(self, array: NDArray[Any]) -> Array:
        """The array where it computes."""

    def values(self, features: Features, sequences: Sequences | None = None) -> tuple[Float32, Float32 | None]:
        """f32[B, R] and the memories f32[S, M] after each sequence, copies on the CPU."""


@runtime_checkable
class GroupCritic(Protocol):
    """A network whose values of an agent depend on what its mates see. Its class says so by `sees_mates`."""

    sees_mates: Literal[True]

    def place(self, array: NDArray[Any]) -> Array:
        """The array where it computes."""

    def values(self, features: Features, sequences: Sequences | None, mates: Mates) -> tuple[Float32, Float32 | None]:
        """As those of a critic. mates: of every row, as they are in the experience; see `find_group_mates`."""


class ValueEstimator:
    """Estimates the values of a rollout, about `rows_per_call` rows in one call of the critic."""

    def __init__(
        self, critic: Critic | GroupCritic, settings: MemorySettings | None, rows_per_call: int, is_shared: bool
    ):
        """settings: None without memory. is_shared: whether actor and critic share one memory."""
        self._critic = critic
        self._sequence_length = settings.sequence_length if settings else 0
        self._memory_size = settings.memory_size if settings else 0
        self._rows_per_call = rows_per_call
        self._is_shared = is_shared
        self.sees_mates = isinstance(critic, GroupCritic)

    def __call__(
        self,
        features: Features,
        following: Features,
        block: Trajectories,
        agents: AgentState,
        next_mates: Mates | None = None,
    ) -> ValueEstimates:
        """Estimate a block. features, following: of its rows and after its segments, on the critic's device.

        agents: the critic's memories before the rollout. next_mates: the mates of each segment's agent where the
        segment ended, for a critic that sees mates and a block with groups.
        """
        mates = self._mates(features, block)
        if mates is not None and next_mates is None:
            assert block.group_ids is None, "what the mates saw after each segment is known"
            next_mates = Mates(tuple(column[:0] for column in features), np.zeros(block.num_segments, np.int64))
        if not self._sequence_length:
            values, next_values = self._values(features, mates), self._values(following, next_mates)
            return ValueEstimates(values, next_values, None, agents)
        lengths, segments = split_segments(block.lengths, self._sequence_length)
        starts = np.cumsum(lengths) - lengths
        acted = block.memories
        assert acted is not None, "the policy that acted had a memory"
        if self._is_shared:  # one memory, known wherever a sequence begins
            memories, links = acted[starts], EpisodeLinks(np.full(len(starts), -1), (np.arange(len(starts)),))
        else:
            memories = self._initial_memories(agents, block, segments)
            links = link_episodes(block.agent_ids, block.begins, segments)
        values, after = self._read_sequences(features, mates, starts, lengths, memories, links)
        after_segments = after[np.flatnonzero(np.diff(segments, append=block.num_segments))]
        next_values = self._values(following, next_mates, after_segments)
        if self._is_shared:
            return ValueEstimates(values, next_values, self._sequences(lengths, memories), agents)
        both = np.concatenate([acted[starts], memories], axis=1)
        carried = agents.updated(block.agent_ids, block.endings, after_segments, block.departed)
        return ValueEstimates(values, next_values, self._sequences(lengths, both), carried)

    def _mates(self, features: Features, block: Trajectories) -> MatesOfRows | None:
        return MatesOfRows(features, find_group_mates(block)) if self.sees_mates else None

    def _initial_memories(self, agents: AgentState, block: Trajectories, segments: Int64) -> Float32:
        """f32[S, M]: the memory before the first sequence of each agent; zeros elsewhere."""
        memories = np.zeros((len(segments), self._memory_size), np.float32)
        ids, first = np.unique(block.agent_ids[segments], return_index=True)
        memories[first] = agents.lookup(ids, block.begins[segments[first]])
        return memories

    def _read_sequences(
        self,
        features: Features,
        mates: AnyMates,
        starts: Int64,
        lengths: Int64,
        memories: Float32,
        links: EpisodeLinks,
    ) -> tuple[Float32, Float32]:
        """f32[N, R], and memories f32[S, M] after each sequence; fills in `memories` before those with links."""
        parts, after = [], np.empty_like(memories)
        at_once = max(1, self._rows_per_call // self._sequence_length)
        for depth, level in enumerate(links.levels):
            if depth:
                memories[level] = after[links.before[level]]
            for begin in range(0, len(level), at_once):
                own = level[begin : begin + at_once]
                rows = sequence_rows(starts[own], lengths[own])
                select, sequences = RowSelection(rows), self._sequences(lengths[own], memories[own])
                values, final = self._ask(tuple([select(column) for column in features]), sequences, mates, rows)
                parts.append((rows, values))
                after[own] = final
        return _in_order(parts), after

    def _values(self, features: Features, mates: AnyMates, memories: Float32 | None = None) -> Float32:
        """f32[N, R] of rows that no others continue. memories: f32[N, M], before each of them; None without memory."""
        num_rows, parts = len(features[0]), []
        for begin in range(0, num_rows, self._rows_per_call):
            rows = np.arange(begin, min(begin + self._rows_per_call, num_rows))
            part = slice(begin, begin + len(rows))
            sequences = None if memories is None else self._sequences(np.ones_like(rows), memories[part])
            parts.append(self._ask(tuple(column[part] for column in features), sequences, mates, rows)[0])
        return np.concatenate(parts)

    def _ask(
        self, features: Features, sequences: Sequences | None, mates: AnyMates, rows: Int64
    ) -> tuple[Float32, Float32 | None]:
        """What the critic says of these rows i64[B], with their mates if it sees any."""
        if isinstance(self._critic, GroupCritic):
            assert mates is not None
            return self._critic.values(features, sequences, mates.of(rows))
        return self._critic.values(features, sequences)

    def _sequences(self, lengths: Int64, memories: Float32) -> Sequences:
        return Sequences(lengths, self._critic.place(memories))


def _in_order(parts: list[tuple[Int64, Float32]]) -> Float32:
    """One array of parts, each given with its rows."""
    joined = np.concatenate([values for _, values in parts])
    ordered = np.empty_like(joined)
    ordered[np.concatenate([rows for rows, _ in parts])] = joined
    return ordered
