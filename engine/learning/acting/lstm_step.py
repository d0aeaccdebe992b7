"""One step of an LSTM to act.

Shapes: N agents, H inputs, U units, M = 2 U memory columns (hidden units, then the cell).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rl_tui.engine.specs import Float32


class LSTMStep:
    """`Memory.step` to act, where a torch call costs as much as the whole step here."""

    def __init__(self, arrays: Mapping[str, Float32], cell: str):
        """arrays: the parameters of an `Actor` by name; cell: the prefix of this layer's."""
        inputs, units = arrays[f"{cell}weight_ih_l0"], arrays[f"{cell}weight_hh_l0"]
        self.units = units.shape[1]
        self._scale = gate_scale(self.units)
        self._shift = 1 - self._scale
        self._weight: Float32 = np.ascontiguousarray(np.concatenate([inputs, units], axis=1).T * self._scale)
        self._bias: Float32 = (arrays[f"{cell}bias_ih_l0"] + arrays[f"{cell}bias_hh_l0"]) * self._scale

    def __call__(self, rows: Float32, memories: Float32) -> tuple[Float32, Float32]:
        """The output f32[N, U] and the memories after it f32[N, M], of f32[N, H] and f32[N, M]."""
        units = self.units
        gates = np.concatenate([rows, memories[:, :units]], axis=1) @ self._weight
        gates += self._bias
        np.tanh(gates, out=gates)
        gates *= self._scale
        gates += self._shift
        input_gate, forget_gate, candidate, output_gate = (
            gates[:, begin : begin + units] for begin in range(0, 4 * units, units)
        )
        after = np.empty_like(memories)
        read, cell = after[:, :units], after[:, units:]
        np.multiply(forget_gate, memories[:, units:], out=cell)
        cell += input_gate * candidate
        np.tanh(cell, out=read)
        read *= output_gate
        return read, after


def gate_scale(units: int) -> Float32:
    """f32[4 U]: input, forget and output gate are sigmoid(x) = (1 + tanh(x / 2)) / 2, so that one tanh serves all."""
    return np.repeat(np.array([0.5, 0.5, 1, 0.5], np.float32), units)
