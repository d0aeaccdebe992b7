"""Rollouts of on-policy algorithms, and the mini-batches they are split into.

Shapes: N rows, R reward streams.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch

from rl_tui.engine.experience import join_trajectories, joined
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.learning.sequences import sequence_rows
from rl_tui.engine.specs import Float32, Int64, Trajectories

Array: TypeAlias = Any  # numpy array or torch tensor
Columns: TypeAlias = dict[str, Array]  # by name, all of the same rows


@dataclass(frozen=True, slots=True)
class Rollout:
    """The experience of one on-policy update, and its rewards f32[N, R], one column per stream."""

    experience: Trajectories
    rewards: Float32

    @staticmethod
    def of(blocks: Sequence[tuple[Trajectories, Float32]]) -> Rollout:
        """Blocks joined in order, each with its rewards f32[N, R]."""
        return Rollout(join_trajectories([block for block, _ in blocks]), joined([rewards for _, rewards in blocks]))


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


def minibatches(
    columns: Columns, batch_size: int, random: np.random.Generator | None, sequences: Sequences | None = None
) -> Iterator[tuple[Columns, Sequences | None]]:
    """One pass: round(N / batch_size) nearly equal parts that hold every row once, in the order `random` gives.

    columns: numpy arrays, or tensors of one device, of N rows. With sequences, which must cover the rows in their
    order, parts are made of whole sequences, which come with each part. random: None keeps the order.
    """
    num_rows = len(next(iter(columns.values())))
    count = num_rows if sequences is None else len(sequences.lengths)
    order: Int64 = np.arange(count) if random is None else random.permutation(count)
    parts = max(1, round(num_rows / batch_size))
    if sequences is None:
        for begin, end in itertools.pairwise(num_rows * part // parts for part in range(parts + 1)):
            yield {name: select_rows(column, order[begin:end]) for name, column in columns.items()}, None
        return
    lengths = sequences.lengths
    starts = np.cumsum(lengths) - lengths
    for begin, end in itertools.pairwise(_split_points(lengths[order], parts)):
        own = order[begin:end]
        rows = sequence_rows(starts[own], lengths[own])
        memories = select_rows(sequences.memories, own)
        yield {name: select_rows(column, rows) for name, column in columns.items()}, Sequences(lengths[own], memories)


def _split_points(lengths: Int64, parts: int) -> list[int]:
    """0, then the sequence after which each part ends, so that parts of whole sequences are as equal as possible."""
    ends = np.concatenate([[0], np.cumsum(lengths)])
    targets = ends[-1] * np.arange(parts + 1) / parts
    above = np.searchsorted(ends, targets)
    below = np.maximum(above - 1, 0)
    nearest: Int64 = np.unique(np.where(targets - ends[below] < ends[above] - targets, below, above))
    return [int(end) for end in nearest]


def select_rows(column: Array, rows: Int64) -> Array:
    """The rows of a column, in that order, on its device."""
    if isinstance(column, np.ndarray):
        return column.take(rows, 0)
    if column.device.type == "cpu":  # numpy copies rows of images 20 times as fast as torch
        return torch.from_numpy(column.numpy().take(rows, 0))
    return column.index_select(0, torch.from_numpy(rows).to(column.device))
