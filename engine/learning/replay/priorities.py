"""Rows drawn in proportion to a priority (Schaul et al. 2016).  Shapes: B rows drawn or updated."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.errors import NonFiniteError
from rl_tui.engine.specs import Float32, Int64

Float64 = NDArray[np.float64]
EPSILON = 1e-6  # added to errors, so that steps without error are still drawn (section 3.3)


class SumTree:
    """Numbers >= 0 of rows with the sums of pairs, pairs of pairs, ...: finds a row by a position in the total."""

    def __init__(self, num_rows: int):
        size = _num_leaves(num_rows)
        self._levels = [np.zeros(size >> level) for level in range(size.bit_length())]  # leaves first, the total last

    @staticmethod
    def bytes(num_rows: int) -> int:
        """Memory of a tree."""
        return 8 * (2 * _num_leaves(num_rows) - 1)

    @property
    def total(self) -> float:
        """The sum of all rows."""
        return float(self._levels[-1][0])

    def __getitem__(self, rows: Int64) -> Float64:
        """f64[B]: the numbers of these rows."""
        return self._levels[0].take(rows)

    def __setitem__(self, rows: Int64, values: Float64 | float) -> None:
        """Set these rows and update every sum that contains them."""
        self._levels[0][rows] = values
        nodes = rows
        for below, above in itertools.pairwise(self._levels):
            if len(above) <= len(nodes):  # updating the whole level is less work
                np.add(below[::2], below[1::2], out=above)
            else:
                nodes = nodes >> 1
                above[nodes] = below.take(2 * nodes) + below.take(2 * nodes + 1)

    def find(self, shares: Float64) -> Int64:
        """i64[B]: the row in which the running sum over rows first exceeds each share, f64[B] in [0, total)."""
        nodes = np.zeros(len(shares), np.int64)
        for level in reversed(self._levels[:-1]):
            nodes = 2 * nodes
            left = level.take(nodes)
            goes_right = shares >= left
            shares = shares - left * goes_right
            nodes = nodes + goes_right
        return nodes


def _num_leaves(num_rows: int) -> int:
    return 1 << (num_rows - 1).bit_length()


class Priorities:
    """The priority of every row of a replay buffer: 0 where no step begins."""

    def __init__(self, num_rows: int, alpha: float):
        self._alpha = alpha
        self._tree = SumTree(num_rows)
        self.largest = 1.0  # of all steps so far

    def __getitem__(self, rows: Int64) -> Float64:
        """f64[B]: the numbers of these rows."""
        return self._tree[rows]

    def __setitem__(self, rows: Int64, priorities: Float64 | float) -> None:
        self._tree[rows] = priorities

    def update(self, rows: Int64, errors: Float32) -> None:
        """Set them by these errors f32[B]: (|error| + epsilon) ** alpha. Raises NonFiniteError before it sets any."""
        if not np.isfinite(errors).all():
            raise NonFiniteError("an error that sets a replay priority is not finite")
        priorities = (np.abs(errors.astype(np.float64)) + EPSILON) ** self._alpha
        self.largest = max(self.largest, float(priorities.max()))
        self._tree[rows] = priorities

    def draw(self, count: int, random: np.random.Generator) -> Int64:
        """i64[B], one row from each of `count` equal parts of the total."""
        shares = (np.arange(count) + random.random(count)) * (self._tree.total / count)
        rows = self._tree.find(shares)
        while (missed := self._tree[rows] == 0).any():  # rounding moved a position past the last row of its part
            rows[missed] = self._tree.find(random.random(int(missed.sum())) * self._tree.total)
        return rows

    def weights(self, rows: Int64, num_steps: int, beta: float) -> Float32:
        """f32[B]: (num_steps * P(row)) ** -beta over the largest of them, which makes 1 the largest."""
        weights: Float64 = (self._tree[rows] * (num_steps / self._tree.total)) ** -beta
        weights /= weights.max()
        return weights.astype(np.float32)
