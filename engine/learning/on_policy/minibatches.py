"""How the rows of a rollout are divided into mini-batches.  Shapes: N rows of a rollout, B rows of a mini-batch."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from rl_tui.engine.experience import sequence_rows
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.learning.row_selection import RowSelection
from rl_tui.engine.specs import Int64


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of a mini-batch, i64[B] of a rollout. sequences: into which they are divided, None without memory."""

    rows: Int64
    sequences: Sequences | None


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
        memories = RowSelection(own)(sequences.memories)
        found.append(Part(sequence_rows(starts[own], lengths[own]), Sequences(lengths[own], memories)))
    return found


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
