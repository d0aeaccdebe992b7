"""Rollouts of on-policy algorithms, and the mini-batches they are split into.

Shapes: N rows, R reward streams.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
import torch

from rl_tui.engine.experience import join_trajectories, joined, sequence_rows, take_segments
from rl_tui.engine.learning.networks.flat import placed
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.specs import Float32, Int64, Trajectories

Array: TypeAlias = Any  # numpy array or torch tensor
Columns: TypeAlias = dict[str, Array]  # by name, all of the same rows


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutMinibatch(Transitions):
    """B steps of a rollout. Besides the columns of Transitions there are these, S = reward signals, W = A + K, or 1
    where ratios are joint. Those after `rewards` are numpy arrays, or tensors on the learner's device.

    rows: i64[B], in the rollout
    rewards: f32[B, S], what each signal paid, times its strength
    log_probs: f32[B, W], of the policy that acted
    advantages: f32[B], as the loss has them, normalized where it normalizes them
    returns: f32[B, S], which the critic learns
    values: f32[B, S], which the critic estimated when the update began
    """

    rows: Int64
    rewards: Float32
    log_probs: Array
    advantages: Array
    returns: Array
    values: Array


@dataclass(frozen=True, slots=True)
class Rollout:
    """The experience of one on-policy update, and its rewards f32[N, R], one column per stream."""

    experience: Trajectories
    rewards: Float32

    @staticmethod
    def of(blocks: Sequence[tuple[Trajectories, Float32]]) -> Rollout:
        """Blocks joined in order, each with its rewards f32[N, R]."""
        return Rollout(join_trajectories([block for block, _ in blocks]), joined([rewards for _, rewards in blocks]))

    def minibatch(self, rows: Int64, **columns: Array) -> RolloutMinibatch:
        """These rows i64[B]. columns: those of `RolloutMinibatch` that a rollout does not have."""
        steps = Transitions.of(self.experience, rows)
        shared: dict[str, Any] = {name: getattr(steps, name) for name in _OF_TRANSITIONS}
        return RolloutMinibatch(rows=rows, rewards=self.rewards.take(rows, 0), **shared, **columns)


_OF_TRANSITIONS = [field.name for field in fields(Transitions)]


class RolloutBuffer:
    """Collects blocks until the next update; each row is used in one update only."""

    def __init__(self) -> None:
        self._blocks: list[tuple[Trajectories, Float32]] = []
        self.num_rows = 0

    def add(self, block: Trajectories, rewards: Float32) -> None:
        """Keep a block with its rewards f32[N, R] of every stream."""
        self._blocks.append((block, rewards))
        self.num_rows += block.num_rows

    def drain(self) -> Rollout:
        """All rows in the order they came; the buffer is empty afterwards."""
        blocks, self._blocks, self.num_rows = self._blocks, [], 0
        return Rollout.of(blocks)


def join_by_agent(blocks: Sequence[Trajectories]) -> Trajectories:
    """Blocks joined into one: the segments of one agent are adjacent, in time order."""
    if len(blocks) == 1:
        return blocks[0]
    block = join_trajectories(blocks)
    return take_segments(block, block.agent_ids.argsort(kind="stable"))


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of a mini-batch, i64[B] of a rollout. sequences: into which they are divided, None without memory."""

    rows: Int64
    sequences: Sequences | None

    def of(self, columns: Columns) -> Columns:
        """These rows of all columns."""
        select = RowSelection(self.rows)
        return {name: select(column) for name, column in columns.items()}


def split_rows(
    num_rows: int, parts: int, random: np.random.Generator | None, sequences: Sequences | None = None
) -> list[Part]:
    """One pass: so many nearly equal parts that hold every row once, in the order `random` gives; None keeps it.

    With sequences, which must cover the rows in their order, parts are made of whole sequences. Parts may be empty, if
    there are more of them than rows or sequences.
    """
    count = num_rows if sequences is None else len(sequences.lengths)
    order: Int64 = np.arange(count) if random is None else random.permutation(count)
    if sequences is None:
        ends = itertools.pairwise(num_rows * part // parts for part in range(parts + 1))
        return [Part(order[begin:end], None) for begin, end in ends]
    lengths = sequences.lengths
    starts = np.cumsum(lengths) - lengths
    found = []
    for begin, end in itertools.pairwise(_split_points(lengths[order], parts)):
        own = order[begin:end]
        memories = select_rows(sequences.memories, own)
        found.append(Part(sequence_rows(starts[own], lengths[own]), Sequences(lengths[own], memories)))
    return found


def minibatches(
    columns: Columns, batch_size: int, random: np.random.Generator | None, sequences: Sequences | None = None
) -> Iterator[tuple[Columns, Sequences | None]]:
    """One pass over columns of N rows: the parts of `split_rows` with about `batch_size` rows that are not empty.

    columns: numpy arrays, or tensors of one device.
    """
    num_rows = len(next(iter(columns.values())))
    for part in split_rows(num_rows, num_parts(num_rows, batch_size), random, sequences):
        if len(part.rows):
            yield part.of(columns), part.sequences


def num_parts(num_rows: float, batch_size: int) -> int:
    """Into how many mini-batches of about `batch_size` rows this many are split."""
    return max(1, round(num_rows / batch_size))


def _split_points(lengths: Int64, parts: int) -> list[int]:
    """0, then the sequence after which each part ends, so that parts of whole sequences are as equal as possible."""
    ends = np.concatenate([[0], np.cumsum(lengths)])
    targets = ends[-1] * np.arange(parts + 1) / parts
    above = np.searchsorted(ends, targets)
    below = np.maximum(above - 1, 0)
    nearest: Int64 = np.where(targets - ends[below] < ends[above] - targets, below, above)
    return [int(end) for end in nearest]


def select_rows(column: Array, rows: Int64) -> Array:
    """The rows of a column, in that order, on its device."""
    return RowSelection(rows)(column)


class RowSelection:
    """The same rows of many columns, in that order, each on its device, where their numbers i64[B] are copied once."""

    def __init__(self, rows: Int64):
        self._rows = rows
        self._placed: torch.Tensor | None = None

    def __call__(self, column: Array) -> Array:
        """Those of one column."""
        if isinstance(column, np.ndarray):
            return column.take(self._rows, 0)
        if column.device.type == "cpu":  # numpy copies rows of images 20 times as fast as torch
            return torch.from_numpy(column.numpy().take(self._rows, 0))
        if self._placed is None:
            self._placed = placed(self._rows, column.device)
        return column.index_select(0, self._placed)
