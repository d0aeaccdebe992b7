"""The columns of a replay buffer and their size, known before anything is allocated, and whether a saved one fits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.errors import CheckpointError
from rl_tui.engine.experience import COLUMNS, Column, used_columns
from rl_tui.engine.learning.replay.priorities import SumTree
from rl_tui.engine.specs import BehaviorSpec, Ending, State

_VALUES = ("num_added", "end", "largest_priority")  # of a saved one, besides its columns
_NAMES = {  # in the buffer and in saved ones, where they differ
    "action_mask": "forbidden",
    "continuous_actions": "continuous",
    "discrete_actions": "discrete",
}


def stored_name(column: Column) -> str:
    """Its name in the buffer."""
    return _NAMES.get(column.name, column.name)


@dataclass(frozen=True, slots=True)
class ReplayLayout:
    """The shape of a replay buffer.

    capacity: the number of steps (`buffer_size`) if every segment has `time_horizon` steps. It is less if episodes end
    earlier: each segment takes one row more than it has steps.
    num_streams: reward columns. memory_size, value_memory_size: columns of the policy's and the critic's memories; 0
    without memory. sequence_length: the longest sequence that is sampled, with memory. alpha: of prioritized replay
    (Schaul et al. 2016), None draws uniformly.
    """

    spec: BehaviorSpec
    capacity: int
    time_horizon: int
    num_streams: int = 1
    memory_size: int = 0
    value_memory_size: int = 0
    sequence_length: int = 1
    alpha: float | None = None

    @property
    def num_rows(self) -> int:
        """Rows of the ring."""
        return self.capacity + math.ceil(self.capacity / self.time_horizon)

    @property
    def optional(self) -> tuple[Column, ...]:
        """The columns that may be absent. They are stored combined with their `fill`: zeros mean what an absent one
        does, and take no memory."""
        return used_columns([column for column in COLUMNS if column.in_replay and column.is_optional], self.spec)

    @property
    def required(self) -> tuple[Column, ...]:
        """The columns of the description that are always there."""
        return tuple(column for column in COLUMNS if column.in_replay and not column.is_optional)

    @property
    def columns(self) -> dict[str, tuple[tuple[int, ...], np.dtype[np.generic]]]:
        """Row shape and type of every column that is reserved; memories only if there are any.

        Of the optional columns only masks, which any game with discrete actions may use; the others are made when they
        first appear.
        """
        shapes: dict[str, tuple[tuple[int, ...], str]] = {
            f"observation.{index}": (observation.shape, observation.dtype)
            for index, observation in enumerate(self.spec.observations)
        }
        for column in (*self.required, *self.optional):
            if not column.is_optional or column.name == "action_mask":
                shapes[stored_name(column)] = column.shape(self.spec, self.memory_size), column.dtype
        shapes |= {
            "rewards": ((self.num_streams,), "float32"),
            "remaining": ((), "int32"),  # steps left in the segment from here; 0: no step begins in this row
            "position": ((), "int32"),  # in the segment, from 0
            "ending": ((), "int8"),  # of the segment
            "added": ((), "int64"),  # `num_added` after the block of this row
        }
        if self.memory_size:
            shapes["memories"] = (self.memory_size,), "float32"
        if self.value_memory_size:
            shapes["value_memories"] = (self.value_memory_size,), "float32"
        return {name: (shape, np.dtype(dtype)) for name, (shape, dtype) in shapes.items()}

    @property
    def bytes(self) -> int:
        """Memory of a full buffer."""
        per_row = sum(math.prod(shape) * dtype.itemsize for shape, dtype in self.columns.values())
        return self.num_rows * per_row + (0 if self.alpha is None else SumTree.bytes(self.num_rows))


def require_fit(saved: State, layout: ReplayLayout) -> None:
    """Raise CheckpointError naming the first column that does not fit this layout, or inconsistent segments."""
    num_rows = len(saved.tensors.get("remaining", ()))
    expected = {name: ((num_rows, *shape), dtype) for name, (shape, dtype) in layout.columns.items()}
    for column in layout.optional:
        if (name := stored_name(column)) in saved.tensors:
            expected[name] = (num_rows, *column.shape(layout.spec, 0)), np.dtype(column.dtype)
    if "priorities" in saved.tensors:  # optional with prioritized replay, ignored without
        expected["priorities"] = (num_rows,), np.dtype(np.float64)
    for name, (shape, dtype) in expected.items():
        described = f"{name}, expected {dtype}{list(shape)}"
        if name not in saved.tensors:
            raise CheckpointError(f"the saved replay buffer has no {described}")
        found = saved.tensors[name]
        if (found.shape, found.dtype) != (shape, dtype):
            raise CheckpointError(f"the saved replay buffer has {found.dtype}{list(found.shape)} as {described}")
    if unknown := sorted(saved.tensors.keys() - expected.keys()):
        raise CheckpointError(f"the saved replay buffer has {', '.join(unknown)}, which this run does not have")
    if any(not isinstance(saved.values.get(name), (int, float)) for name in _VALUES):
        raise CheckpointError(f"the saved replay buffer lacks one of {', '.join(_VALUES)}")
    if not _are_whole(saved):
        raise CheckpointError("the segments of the saved replay buffer are inconsistent")


def _are_whole(saved: State) -> bool:
    """Whether every step is followed by the next one of its segment, or by the row that closes it."""
    names = "remaining", "position", "ending", "added"
    columns: tuple[NDArray[Any], ...] = tuple(saved.tensors[name] for name in names)
    remaining, position, ending, added = columns
    if not len(remaining):
        return True
    if (added[1:] < added[:-1]).any():
        return False
    steps = np.flatnonzero(remaining)
    if remaining[-1] or remaining.min() < 0 or not np.isin(ending[steps], list(Ending)).all():
        return False
    inside = steps[remaining[steps] > 1]
    return bool(
        (remaining[steps + 1] == remaining[steps] - 1).all() and (position[inside + 1] == position[inside] + 1).all()
    )
