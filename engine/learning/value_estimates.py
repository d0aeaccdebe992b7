"""Value estimates of a rollout, with or without memory.

Shapes: N rows in P segments, S sequences, R reward streams, M memory columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_tui.engine.config.network import MemorySettings
from rl_tui.engine.experience import sequence_rows
from rl_tui.engine.learning.agent_state import AgentState
from rl_tui.engine.learning.feature_layout import Features
from rl_tui.engine.learning.joint_steps import JointExperience, JointInputs, JointSource, NextJointSteps
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.learning.row_selection import Array, RowSelection
from rl_tui.engine.learning.sequences import EpisodeLinks, link_episodes, split_segments
from rl_tui.engine.specs import Float32, Int64, Trajectories


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
class DeviceCritic(Protocol):
    """A critic that need not wait for its device."""

    def estimates(self, features: Features) -> Tensor:
        """f32[B, R] without memory, on the device."""


@runtime_checkable
class GroupCritic(Protocol):
    """A network whose values of an agent depend on what its mates see and do. Its class says so by `sees_mates`."""

    sees_mates: Literal[True]

    def place(self, array: NDArray[Any]) -> Array:
        """The array where it computes."""

    def values(
        self, features: Features, sequences: Sequences | None, joint: JointInputs
    ) -> tuple[Float32, Float32 | None]:
        """As those of a critic. joint: the joint steps of these rows; values may have further columns where the actions
        are known."""


class ValueEstimator:
    """Estimates the values of a rollout, about `rows_per_call` rows in one call of the critic."""

    def __init__(
        self,
        critic: Critic | GroupCritic,
        settings: MemorySettings | None,
        rows_per_call: int,
        is_shared: bool,
        num_memories: int = 1,
    ):
        """settings: None without memory. is_shared: whether actor and critic share one memory. num_memories: of the
        critic, side by side."""
        self._critic = critic
        self._sequence_length = settings.sequence_length if settings else 0
        self.memory_size = settings.memory_size * num_memories if settings else 0
        self._rows_per_call = rows_per_call
        self._is_shared = is_shared
        self.sees_mates = isinstance(critic, GroupCritic)

    def __call__(
        self,
        features: Features,
        following: Features,
        block: Trajectories,
        agents: AgentState,
        joint: JointExperience | None = None,
        next_joint: NextJointSteps | None = None,
    ) -> ValueEstimates:
        """Estimate a block. features, following: of its rows and after its segments, on the critic's device.

        agents: the critic's memories before the rollout. joint, next_joint: the joint steps of the rows and after the
        segments, for a critic that sees mates.
        """
        if not self._sequence_length:
            if isinstance(self._critic, DeviceCritic):
                values, next_values = self._estimates(self._critic, features, following)
            else:
                values, next_values = self._values(features, joint), self._values(following, next_joint)
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
        values, after = self._read_sequences(features, joint, starts, lengths, memories, links)
        after_segments = after[np.flatnonzero(np.diff(segments, append=block.num_segments))]
        next_values = self._values(following, next_joint, after_segments)
        if self._is_shared:
            return ValueEstimates(values, next_values, self._sequences(lengths, memories), agents)
        both = np.concatenate([acted[starts], memories], axis=1)
        carried = agents.updated(block.agent_ids, block.endings, after_segments, block.departed)
        return ValueEstimates(values, next_values, self._sequences(lengths, both), carried)

    def _estimates(self, critic: DeviceCritic, features: Features, following: Features) -> tuple[Float32, Float32]:
        """f32[N, R] and f32[P, R], moved to the host together."""
        at_once = self._rows_per_call
        parts = [
            critic.estimates(tuple([column[begin : begin + at_once] for column in of]))
            for of in (features, following)
            for begin in range(0, len(of[0]), at_once)
        ]
        values, next_values = np.split(torch.cat(parts).cpu().numpy(), [len(features[0])])
        return values, next_values

    def _initial_memories(self, agents: AgentState, block: Trajectories, segments: Int64) -> Float32:
        """f32[S, M]: the memory before the first sequence of each agent; zeros elsewhere."""
        memories = np.zeros((len(segments), self.memory_size), np.float32)
        ids, first = np.unique(block.agent_ids[segments], return_index=True)
        memories[first] = agents.lookup(ids, block.begins[segments[first]])
        return memories

    def _read_sequences(
        self,
        features: Features,
        joint: JointSource | None,
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
                values, final = self._ask(tuple([select(column) for column in features]), sequences, joint, rows)
                parts.append((rows, values))
                after[own] = final
        return _in_order(parts), after

    def _values(self, features: Features, joint: JointSource | None, memories: Float32 | None = None) -> Float32:
        """f32[N, R] of rows that no others continue. memories: f32[N, M], before each of them; None without memory."""
        num_rows, parts = len(features[0]), []
        order = np.arange(num_rows) if joint is None else joint.order
        for begin in range(0, num_rows, self._rows_per_call):
            rows = order[begin : begin + self._rows_per_call]
            select = RowSelection(rows)
            sequences = None if memories is None else self._sequences(np.ones_like(rows), memories[rows])
            values, _ = self._ask(tuple([select(column) for column in features]), sequences, joint, rows)
            parts.append((rows, values))
        return _in_order(parts)

    def _ask(
        self, features: Features, sequences: Sequences | None, joint: JointSource | None, rows: Int64
    ) -> tuple[Float32, Float32 | None]:
        """What the critic says of these rows i64[B], with their joint steps if it sees mates."""
        if isinstance(self._critic, GroupCritic):
            assert joint is not None
            return self._critic.values(features, sequences, joint.select(rows))
        return self._critic.values(features, sequences)

    def _sequences(self, lengths: Int64, memories: Float32) -> Sequences:
        return Sequences(lengths, self._critic.place(memories))


def _in_order(parts: list[tuple[Int64, Float32]]) -> Float32:
    """One array of parts, each given with its rows."""
    joined = np.concatenate([values for _, values in parts])
    ordered = np.empty_like(joined)
    ordered[np.concatenate([rows for rows, _ in parts])] = joined
    return ordered
