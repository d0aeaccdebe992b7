"""What the records of a file say, but for observations.

Shapes: N records, A continuous dimensions, K branches, M choices of all branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.specs import ActionSpec, Bool, Float32, Int64

NO_LAYOUT = -1


@dataclass(slots=True)
class RecordColumns:
    """begins, lengths: i64[N], of each record in the file. rewards: f32[N], since the record before. ids: i64[N], of
    the agent. continuous: f32[N, A]. discrete: i64[N, K]. has_action: bool[N], False of most files' last record.
    layouts: i16[N], the number of each one's layout, NO_LAYOUT without one. forbidden: bool[N, M], choices that a mask
    forbids; None where none does."""

    begins: Int64
    lengths: Int64
    rewards: Float32
    is_done: Bool
    is_interrupted: Bool
    ids: Int64
    continuous: Float32
    discrete: Int64
    has_action: Bool
    layouts: NDArray[np.int16]
    forbidden: Bool | None = None

    @property
    def num_records(self) -> int:
        """N."""
        return len(self.begins)

    @staticmethod
    def zeros(begins: Int64, lengths: Int64, actions: ActionSpec) -> RecordColumns:
        """Columns to be filled, for records that are there."""
        count, branches = len(begins), len(actions.branches)
        return RecordColumns(
            begins,
            lengths,
            np.zeros(count, np.float32),
            np.zeros(count, np.bool_),
            np.zeros(count, np.bool_),
            np.zeros(count, np.int64),
            np.zeros((count, actions.continuous), np.float32),
            np.zeros((count, branches), np.int64),
            np.zeros(count, np.bool_),
            np.full(count, NO_LAYOUT, np.int16),
        )

    def forbid(self, rows: NDArray[np.intp] | int, mask: Bool, mask_size: int) -> None:
        """Write masks [n, ...] of the file; those of another length allow everything, as in ML-Agents."""
        if mask.shape[-1] != mask_size or not mask.any():
            return
        if self.forbidden is None:
            self.forbidden = np.zeros((self.num_records, mask_size), np.bool_)
        self.forbidden[rows] = mask


def join_columns(parts: Sequence[RecordColumns]) -> RecordColumns:
    """The columns of several blocks or files, in their order; at least one."""
    masks = [part.forbidden for part in parts]
    joined = {
        column.name: np.concatenate([getattr(part, column.name) for part in parts])
        for column in fields(RecordColumns)
        if column.name != "forbidden"
    }
    present = next((mask for mask in masks if mask is not None), None)
    forbidden = None
    if present is not None:
        shapes = [(part.num_records, present.shape[1]) for part in parts]
        filled = [
            np.zeros(shape, np.bool_) if mask is None else mask for mask, shape in zip(masks, shapes, strict=True)
        ]
        forbidden = np.concatenate(filled)
    return RecordColumns(**joined, forbidden=forbidden)
