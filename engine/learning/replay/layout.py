"""What a replay buffer keeps, and what that costs, known before anything is allocated."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rl_tui.engine.learning.replay.priorities import SumTree
from rl_tui.engine.specs import BehaviorSpec


@dataclass(frozen=True, slots=True)
class ReplayLayout:
    """The shape of a replay buffer.

    capacity: steps it is meant to hold (`buffer_size`). It holds exactly so many when every segment has `time_horizon`
    steps, and fewer when episodes end earlier: each segment takes one row more than it has steps.
    num_streams: reward columns. memory_size, value_memory_size: columns of what the policy and the critic remember; 0
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
    def columns(self) -> dict[str, tuple[tuple[int, ...], np.dtype[np.generic]]]:
        """Shape of a row and type of every column; what is neither masked nor remembered has none."""
        actions = self.spec.actions
        shapes: dict[str, tuple[tuple[int, ...], str]] = {
            f"observation.{index}": (observation.shape, observation.dtype)
            for index, observation in enumerate(self.spec.observations)
        }
        shapes |= {
            "continuous": ((actions.continuous,), "float32"),
            "discrete": ((len(actions.branches),), "int64"),
            "rewards": ((self.num_streams,), "float32"),
            "remaining": ((), "int32"),  # steps left in the segment from here; 0: no step begins in this row
            "position": ((), "int32"),  # in the segment, from 0
            "ending": ((), "int8"),  # of the segment
            "added": ((), "int64"),  # steps that had ever come, with the block of this row
        }
        if actions.branches:
            shapes["forbidden"] = (actions.mask_size,), "bool"  # not what is allowed: zeroed memory forbids nothing
        if self.memory_size:
            shapes["memories"] = (self.memory_size,), "float32"
        if self.value_memory_size:
            shapes["value_memories"] = (self.value_memory_size,), "float32"
        return {name: (shape, np.dtype(dtype)) for name, (shape, dtype) in shapes.items()}

    @property
    def bytes(self) -> int:
        """Memory that the buffer takes when it is full."""
        per_row = sum(math.prod(shape) * dtype.itemsize for shape, dtype in self.columns.values())
        return self.num_rows * per_row + (0 if self.alpha is None else SumTree.bytes(self.num_rows))
