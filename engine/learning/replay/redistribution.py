"""The replay buffers of several ranks as one, and one as several.

Every rank counts the steps of all (`num_added`), so that `added` orders the blocks of all by age. Blocks that the ranks
added in the same update are equally old.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.errors import CheckpointError
from rl_tui.engine.specs import Int64, Json, State

SLICE_BYTES = 1 << 24  # of rows that are sent at once


def require_divisible(replay: State) -> None:
    """Raise CheckpointError for a state that no ReplayBuffer has saved: a trainer of a package may have its own."""
    if not {"added", "remaining"} <= replay.tensors.keys() or "num_added" not in replay.values:
        raise CheckpointError("its trainer keeps experience in a way that cannot be divided among ranks")


def joined(parts: Sequence[State]) -> State:
    """Every step of these parts as one buffer would have saved them, the oldest first.

    parts: of one behavior, or consecutive `slices` of them. Their arrays are taken out of them, so that at most one
    column is there twice. A part without an optional column has zeros.
    """
    if len(parts) == 1:
        return parts[0]
    order = np.concatenate([part.tensors["added"] for part in parts]).argsort(kind="stable")  # segments stay whole
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    ends = np.cumsum([len(part.tensors["added"]) for part in parts])
    rows = np.split(places, ends[:-1])
    names = dict.fromkeys(name for part in parts for name in part.tensors)
    return State({name: _column(parts, name, rows) for name in names}, _values(parts, len(order)))


def _column(parts: Sequence[State], name: str, rows: Sequence[Int64]) -> NDArray[Any]:
    like = next(part.tensors[name] for part in parts if name in part.tensors)
    column = np.zeros((sum(map(len, rows)), *like.shape[1:]), like.dtype)
    for part, own in zip(parts, rows, strict=True):
        if name in part.tensors:
            column[own] = part.tensors.pop(name)
    return column


def _values(parts: Sequence[State], end: int) -> dict[str, Json]:
    return {
        "num_added": int(max(part.number("num_added") for part in parts)),
        "end": end,
        "largest_priority": max(part.number("largest_priority", 1.0) for part in parts),
        "has_masks": any(bool(part.values.get("has_masks")) for part in parts),
    }


def dealt_out(replay: State, shares: Sequence[int]) -> Iterator[State]:
    """The part of each rank, made when it is asked for: together they have every step once.

    Segments stay whole, and of the rows of each age every part has about its share. shares: what each rank collects,
    beside the others.
    """
    if len(shares) == 1:
        yield replay
        return
    closings = np.flatnonzero(replay.tensors["remaining"] == 0)
    lengths = np.diff(closings, prepend=-1)
    owners = np.repeat(_owners(lengths, shares), lengths)
    for rank in range(len(shares)):
        rows = np.flatnonzero(owners == rank)
        yield State(
            {name: column.take(rows, 0) for name, column in replay.tensors.items()}, replay.values | {"end": len(rows)}
        )


def _owners(lengths: Int64, shares: Sequence[int]) -> Int64:
    """i64[P]: the rank that gets each segment: the one that has the fewest rows so far, for its share."""
    filled = [(0.0, rank) for rank in range(len(shares))]
    owners = np.empty(len(lengths), np.int64)
    for segment, length in enumerate(lengths.tolist()):
        num_rows, rank = filled[0]
        owners[segment] = rank
        heapq.heapreplace(filled, (num_rows + length / shares[rank], rank))
    return owners


def slices(replay: State, num_bytes: int = SLICE_BYTES) -> Iterator[State]:
    """Its rows one after the other, of about so many bytes at a time; one slice without rows of an empty buffer.

    `joined` makes one of them.
    """
    num_rows = len(replay.tensors["added"])
    row_bytes = sum(column.nbytes for column in replay.tensors.values()) / max(1, num_rows)
    at_once = max(1, int(num_bytes / max(1.0, row_bytes)))
    for first in range(0, max(1, num_rows), at_once):
        yield State({name: column[first : first + at_once] for name, column in replay.tensors.items()}, replay.values)
