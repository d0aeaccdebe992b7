"""The recurrent layer one step at a time, in numpy, for acting: a torch call costs as much as the whole step here.

Shapes: N agents, H inputs, U units, M = 2 U memory columns (hidden units, then the cell).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rl_tui.engine.specs import Float32


class MemoryStep:
    """What `Memory.step` computes, with sigmoid(x) = (1 + tanh(x / 2)) / 2 so that one tanh serves all gates."""

    def __init__(self, arrays: Mapping[str, Float32], cell: str):
        """arrays: the parameters of an `Actor` by name; cell: what the names of this layer's begin with."""
        inputs, units = arrays[f"{cell}weight_ih_l0"], arrays[f"{cell}weight_hh_l0"]
        self.units = units.shape[1]
        # the gates are input, forget, cell, output; that of the cell is a tanh
        self._scale = np.repeat(np.array([0.5, 0.5, 1, 0.5], np.float32), self.units)
        self._shift = 1 - self._scale
        self._weight: Float32 = np.ascontiguousarray(np.concatenate([inputs, units], axis=1).T * self._scale)
        self._bias: Float32 = (arrays[f"{cell}bias_ih_l0"] + arrays[f"{cell}bias_hh_l0"]) * self._scale

    def __call__(self, rows: Float32, memories: Float32) -> tuple[Float32, Float32]:
        """What is read f32[N, U] and the memories after it f32[N, M], of f32[N, H] and f32[N, M]."""
        units = self.units
        gates = np.concatenate([rows, memories[:, :units]], axis=1) @ self._weight
        gates += self._bias
        np.tanh(gates, out=gates)
        gates *= self._scale
        gates += self._shift
        admit, keep, new, show = (gates[:, begin : begin + units] for begin in range(0, 4 * units, units))
        after = np.empty_like(memories)
        read, cell = after[:, :units], after[:, units:]
        np.multiply(keep, memories[:, units:], out=cell)
        cell += admit * new
        np.tanh(cell, out=read)
        read *= show
        return read, after
