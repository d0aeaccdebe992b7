"""The columns of a replay buffer and their size, known before anything is allocated."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rl_tui.engine.learning.replay.priorities import SumTree
from rl_tui.engine.specs import BehaviorSpec


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
    def columns(self) -> dict[str, tuple[tuple[int, ...], np.dtype[np.generic]]]:
        """Row shape and type of every column; masks and memories only if there are any."""
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
            "added": ((), "int64"),  # `num_added` after the block of this row
        }
        if actions.branches:
            shapes["forbidden"] = (actions.mask_size,), "bool"  # instead of what is allowed: zeros forbid nothing
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
