"""How the rows of a rollout are divided into mini-batches.  Shapes: N rows of a rollout, B rows of a mini-batch."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from rl_tui.engine.experience import sequence_rows
from rl_tui.engine.learning.networks.flat import placed
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.learning.row_selection import RowSelection
from rl_tui.engine.specs import Int64

Array: TypeAlias = Any  # numpy array or torch tensor


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of a mini-batch, i64[B] of a rollout. sequences: into which they are divided, None without memory.
    placed_rows: the same numbers on the networks' device, None where they are not there yet. columns: by name, in place
    of the rollout's. is_shared: whether every rank has some rows of the mini-batch."""

    rows: Int64
    sequences: Sequences | None
    placed_rows: Tensor | None = None
    columns: Mapping[str, Array] = field(default_factory=dict)
    is_shared: bool = True


def split_rows(
    num_rows: int,
    parts: int,
    random: np.random.Generator | None,
    sequences: Sequences | None = None,
    joint: Int64 | None = None,
) -> list[Part]:
    """One pass: so many nearly equal parts that hold every row once, in the order `random` gives; None keeps it.

    With sequences, which must cover the rows in their order, parts are made of whole sequences; else with joint
    steps, i64[N] of each row, of whole ones. Parts may be empty, if there are more of them than rows, sequences or
    joint steps.
    """
    if sequences is not None:
        units = _units(sequences.lengths, parts, random)
        lengths, starts = sequences.lengths, np.cumsum(sequences.lengths) - sequences.lengths
        return [
            Part(
                sequence_rows(starts[own], lengths[own]),
                Sequences(lengths[own], RowSelection(own)(sequences.memories)),
            )
            for own in units
        ]
    if joint is not None:
        sizes, by_step = np.bincount(joint), joint.argsort(kind="stable")
        sizes = sizes[sizes > 0]
        starts = np.cumsum(sizes) - sizes
        units = _units(sizes, parts, random)
        return [Part(by_step[sequence_rows(starts[own], sizes[own])], None) for own in units]
    order: Int64 = np.arange(num_rows) if random is None else random.permutation(num_rows)
    ends = itertools.pairwise(num_rows * part // parts for part in range(parts + 1))
    return [Part(order[begin:end], None) for begin, end in ends]


def placed_parts(parts: Sequence[Part], device: torch.device) -> list[Part]:
    """The same, with the numbers of all of their rows on a device, to which they are copied together."""
    ends = list(accumulate(len(part.rows) for part in parts))
    rows = placed(np.concatenate([part.rows for part in parts]), device) if parts else torch.empty(0)
    spans = zip(parts, [0, *ends], ends, strict=False)
    return [replace(part, placed_rows=rows[begin:end]) for part, begin, end in spans]


def num_parts(num_rows: float, batch_size: int) -> int:
    """Into how many mini-batches of about `batch_size` rows this many are split."""
    return max(1, round(num_rows / batch_size))


def _units(sizes: Int64, parts: int, random: np.random.Generator | None) -> list[Int64]:
    """Which units of so many rows are in each part."""
    order: Int64 = np.arange(len(sizes)) if random is None else random.permutation(len(sizes))
    return [order[begin:end] for begin, end in itertools.pairwise(_split_points(sizes[order], parts))]


def _split_points(lengths: Int64, parts: int) -> list[int]:
    """0, then the sequence after which each part ends, so that parts of whole sequences are as equal as possible."""
    ends = np.concatenate([[0], np.cumsum(lengths)])
    targets = ends[-1] * np.arange(parts + 1) / parts
    above = np.searchsorted(ends, targets)
    below = np.maximum(above - 1, 0)
    nearest: Int64 = np.where(targets - ends[below] < ends[above] - targets, below, above)
    return [int(end) for end in nearest]
