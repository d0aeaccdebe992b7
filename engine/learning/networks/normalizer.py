"""Running normalization of vector observations (ML-Agents' formulas).  Shapes: B rows, D columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.learning.acting.normalization import normalize
from rl_tui.engine.learning.sync import ONE_RANK, Sync
from rl_tui.engine.specs import Float32, State


class Normalizer:
    """Running mean and variance of every column, in float64 so that 10^9 rows lose no precision.

    Owned by its trainer; a policy gets copies of `mean` and `scale`.
    """

    def __init__(self, columns: int, sync: Sync = ONE_RANK):
        self._sync = sync
        self._steps = 1
        self._mean: NDArray[np.float64] = np.zeros(columns)
        self._variance_sum: NDArray[np.float64] = np.ones(columns)

    def update(self, rows: Float32) -> None:
        """Include rows f32[B, D], and those of all other ranks."""
        steps = self._steps + int(self._sync.sum(len(rows)))
        distance = rows - self._mean
        mean = self._mean + self._sync.sum(distance.sum(0)) / steps
        self._variance_sum = self._variance_sum + self._sync.sum(((rows - mean) * distance).sum(0))
        self._steps, self._mean = steps, mean

    @property
    def mean(self) -> Float32:
        """f32[D], a copy."""
        return self._mean.astype(np.float32)

    @property
    def scale(self) -> Float32:
        """f32[D]: one over the standard deviation, a copy."""
        deviation: NDArray[np.float64] = np.sqrt(self._variance_sum / self._steps)
        return (1 / deviation).astype(np.float32)

    def __call__(self, rows: Float32) -> Float32:
        """f32[B, D], centered, scaled and clipped."""
        return normalize(rows, self.mean, self.scale)

    def arrays(self) -> dict[str, Float32]:
        """The arrays that a policy needs, by their names in `Weights.arrays`."""
        return {"normalizer.mean": self.mean, "normalizer.scale": self.scale}

    def load_arrays(self, mean: Float32, scale: Float32, num_rows: int) -> None:
        """What `arrays` has, as that of at least so many rows."""
        self._steps = max(self._steps, num_rows)
        self._mean, self._variance_sum = mean.astype(np.float64), self._steps / np.square(scale, dtype=np.float64)

    def state(self) -> State:
        """The state for `load`."""
        return State({"mean": self._mean.copy(), "variance_sum": self._variance_sum.copy()}, {"steps": self._steps})

    def load(self, state: State) -> None:
        """Restore `state`."""
        self._mean = np.asarray(state.tensors["mean"], np.float64).copy()
        self._variance_sum = np.asarray(state.tensors["variance_sum"], np.float64).copy()
        self._steps = int(state.number("steps"))
