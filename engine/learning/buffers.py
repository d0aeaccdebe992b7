"""Experience between its collection and its use.  Shapes: N rows, P pieces, D feature columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch

from engine.specs import Bool, Float32, Int64, Observations, Trajectories

Array: TypeAlias = Any  # numpy array or torch tensor


def flat_observations(observations: Observations) -> Float32:
    """f32[N, D]: every observation of a row side by side, in their order."""
    if len(observations) == 1 and observations[0].ndim == 2:
        return observations[0]
    return np.concatenate([o.reshape(len(o), -1) for o in observations], axis=1)


@dataclass(frozen=True, slots=True)
class Rollout:
    """Everything an on-policy update learns from; the columns of `Trajectories`, joined."""

    observations: Float32  # f32[N, D]
    next_observations: Float32  # f32[P, D]
    continuous_actions: Float32
    discrete_actions: Int64
    log_probs: Float32
    action_mask: Bool | None
    rewards: Float32  # f32[N, S], one column per stream
    lengths: Int64
    endings: np.ndarray[tuple[int], np.dtype[np.int8]]


class RolloutBuffer:
    """Collects blocks until they are taken for an update; each row is used in one update only."""

    def __init__(self) -> None:
        self._blocks: list[tuple[Trajectories, Float32]] = []
        self.num_rows = 0

    def add(self, block: Trajectories, rewards: Float32) -> None:
        """Keep a block with its rewards f32[N, S] of every stream."""
        self._blocks.append((block, rewards))
        self.num_rows += block.num_rows

    def take(self) -> Rollout:
        """All rows in the order they came; the buffer is empty afterwards."""
        blocks = [block for block, _ in self._blocks]
        masks = [block.action_mask for block in blocks]
        full = next((mask.shape[1] for mask in masks if mask is not None), None)
        rollout = Rollout(
            observations=np.concatenate([flat_observations(block.observations) for block in blocks]),
            next_observations=np.concatenate([flat_observations(block.next_observations) for block in blocks]),
            continuous_actions=np.concatenate([block.continuous_actions for block in blocks]),
            discrete_actions=np.concatenate([block.discrete_actions for block in blocks]),
            log_probs=np.concatenate([block.log_probs for block in blocks]),
            action_mask=None
            if full is None
            else np.concatenate(
                [
                    np.ones((block.num_rows, full), np.bool_) if mask is None else mask
                    for block, mask in zip(blocks, masks, strict=True)
                ]
            ),
            rewards=np.concatenate([rewards for _, rewards in self._blocks]),
            lengths=np.concatenate([block.lengths for block in blocks]),
            endings=np.concatenate([block.endings for block in blocks]),
        )
        self._blocks, self.num_rows = [], 0
        return rollout


def minibatches(columns: dict[str, Array], batch_size: int, random: np.random.Generator) -> Iterator[dict[str, Array]]:
    """One shuffled pass: round(N / batch_size) nearly equal parts that hold every row once.

    columns: numpy arrays, or tensors of one device, of N rows.
    """
    first = next(iter(columns.values()))
    order: Array = random.permutation(len(first))
    if not isinstance(first, np.ndarray):
        order = torch.from_numpy(order).to(first.device)
    parts = max(1, round(len(first) / batch_size))
    shuffled = {name: column[order] for name, column in columns.items()}
    ends = [len(first) * part // parts for part in range(parts + 1)]
    for begin, end in itertools.pairwise(ends):
        yield {name: column[begin:end] for name, column in shuffled.items()}
