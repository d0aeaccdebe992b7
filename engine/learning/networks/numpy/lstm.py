"""The LSTMs of T networks side by side in numpy, with their backward pass written out.

Shapes: B rows in S sequences, N agents, H inputs, U units, M = 2 U memory columns (hidden units, then the cell). Rows
are in time order: the first of every sequence, the longest sequence first, then the second of all that have one, ...
Then each step is a slice, and nothing is padded. For the small networks of vector observations this takes two thirds of
torch's time with sequences of equal length, half with others (measured with 64 inputs, 32 units and 256 rows in two
networks: 1.1 ms). With 128 inputs, 64 units and 1024 rows torch takes two thirds of this (10 ms) with sequences of
equal length, but the sequences of episodes keep changing shape, and oneDNN spends 4 to 15 ms on each new one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from rl_tui.engine.learning.acting.lstm_step import gate_scale
from rl_tui.engine.learning.networks.numpy.dense import affine, multiply
from rl_tui.engine.specs import Float32, Int64

Cell: TypeAlias = tuple[Float32, Float32, Float32, Float32]  # f32[4 U, H], f32[4 U, U], f32[4 U] twice, as in torch


@dataclass(frozen=True, slots=True)
class TimeOrder:
    """rows: i64[B], packed rows in time order. ranks: i64[S], sequences, the longest first. counts: the number of
    sequences that have a first row, a second, ..."""

    rows: Int64
    ranks: Int64
    counts: list[int]

    @staticmethod
    def of(lengths: Int64) -> TimeOrder:
        """The order for packed sequences of these lengths i64[S]."""
        ranks = np.argsort(-lengths, kind="stable")
        starts = np.cumsum(lengths) - lengths
        steps = np.arange(int(lengths.max()))
        exists = steps[:, None] < lengths[ranks]
        rows = (starts[ranks] + steps[:, None])[exists]
        return TimeOrder(rows, ranks, exists.sum(1).tolist())

    def back(self, ordered: Float32) -> Float32:
        """Results for rows in time order, in the packed order."""
        packed = np.empty_like(ordered)
        packed[self.rows] = ordered
        return packed


class _Forward(NamedTuple):
    """Arrays of one `forward` for its `backward`. steps: the rows of each step. Others but memories: f32[B, T, ...]."""

    rows: Sequence[Float32]
    steps: list[slice]
    memories: Float32
    gates: Float32
    states: Float32  # the memories after each row
    tanh_cell: Float32  # tanh of the cells


class LSTM:
    """T layers at once. cells: views of the parameters. gradients: views that `backward` overwrites."""

    def __init__(self, cells: Sequence[Cell], gradients: Sequence[Cell]):
        self._cells = cells
        self._gradients = gradients
        self._units = cells[0][1].shape[1]
        self._dtype = cells[0][1].dtype
        self._last: _Forward
        self._scale = gate_scale(self._units)

    def forward(self, rows: Sequence[Float32], counts: list[int], memories: Float32) -> Float32:
        """f32[B, T, U] of T times f32[B, H] and f32[S, T, M], the memories in the order of ranks."""
        units, steps, most = self._units, _steps(counts), counts[0]
        gates = self._project(rows)
        weights = np.empty((len(rows), units, 4 * units), self._dtype)
        for index, (_, weight, _, _) in enumerate(self._cells):
            np.multiply(weight.T, self._scale, out=weights[index])
        scale = np.tile(self._scale, (most, len(rows), 1))  # as large as the gates: numpy broadcasts slowly
        shift = 1 - scale
        states, tanh_cell = (np.empty((*gates.shape[:2], columns), self._dtype) for columns in (2 * units, units))
        hidden, cells = states[..., :units], states[..., units:]
        recurrent, admitted = np.empty_like(scale, self._dtype), np.empty((*scale.shape[:2], units), self._dtype)
        parts = _by_gate(gates)
        before, cell = memories[..., :units], memories[..., units:]
        for step in steps:
            count, gate, after = step.stop - step.start, gates[step], cells[step]
            np.matmul(before[:count].swapaxes(0, 1), weights, out=recurrent[:count].swapaxes(0, 1))
            gate += recurrent[:count]
            np.tanh(gate, out=gate)
            gate *= scale[:count]
            gate += shift[:count]
            input_gate, forget_gate, candidate, output_gate = parts[:, step]
            np.multiply(forget_gate, cell[:count], out=after)
            after += np.multiply(input_gate, candidate, out=admitted[:count])
            np.tanh(after, out=tanh_cell[step])
            before, cell = np.multiply(output_gate, tanh_cell[step], out=hidden[step]), after
        self._last = _Forward(rows, steps, memories, gates, states, tanh_cell)
        return hidden

    def _project(self, rows: Sequence[Float32]) -> Float32:
        """f32[B, T, 4 U]: the gates' inputs by the rows, halved where a sigmoid follows."""
        gates = np.empty((len(rows[0]), len(rows), 4 * self._units), self._dtype)
        for index, (weight, _, bias, other_bias) in enumerate(self._cells):
            scaled = weight * self._scale[:, None]
            affine(rows[index], scaled, (bias + other_bias) * self._scale, gates[:, index])
        return gates

    def final_memories(self) -> Float32:
        """f32[S, T, M]: the memories after the last row of each sequence of the last `forward`."""
        _, steps, memories, _, states, _ = self._last
        counts = np.array([step.stop - step.start for step in steps])
        ranks = np.arange(len(memories))
        lengths = (counts[:, None] > ranks).sum(0)
        after: Float32 = states[np.array([step.start for step in steps])[lengths - 1] + ranks]
        return after

    def backward(self, gradient: Float32) -> list[Float32]:
        """Write the gradients of the last `forward`'s cells, given f32[B, T, U]; the gradients of its rows."""
        rows, steps, memories, gates, states, tanh_cell = self._last
        units = self._units
        before = _memories_before(states, memories, steps)
        slopes, through_cell = _slopes(gates, tanh_cell, before[..., units:])
        weights = np.stack([weight for _, weight, _, _ in self._cells])
        grad_hidden, grad_cell, room = (np.zeros((*memories.shape[:2], units), self._dtype) for _ in range(3))
        inner, last, forget_gate = _by_gate(slopes)[:3], _by_gate(slopes)[3], _by_gate(gates)[1]
        for step in reversed(steps):
            count = step.stop - step.start
            own, own_cell = grad_hidden[:count], grad_cell[:count]
            own += gradient[step]
            own_cell += np.multiply(own, through_cell[step], out=room[:count])
            inner[:, step] *= own_cell
            last[step] *= own
            own_cell *= forget_gate[step]
            np.matmul(slopes[step].swapaxes(0, 1), weights, out=own.swapaxes(0, 1))
        parts = zip(rows, before[..., :units].swapaxes(0, 1), slopes.swapaxes(0, 1), strict=True)
        return [self._backward_cell(index, *part) for index, part in enumerate(parts)]

    def _backward_cell(self, index: int, rows: Float32, before: Float32, slopes: Float32) -> Float32:
        """Write the gradients of one cell, given that of its gates' inputs f32[B, 4 U]; the gradient of its rows."""
        inputs, units, bias, other_bias = self._gradients[index]
        multiply(slopes.T, rows, inputs)
        multiply(slopes.T, before, units)
        np.matmul(np.ones(len(slopes), self._dtype), slopes, out=bias)  # a sum over rows, at the speed of BLAS
        other_bias[:] = bias
        return multiply(slopes, self._cells[index][0], np.empty(rows.shape, self._dtype))


def _steps(counts: list[int]) -> list[slice]:
    ends = np.cumsum(counts).tolist()
    return [slice(end - count, end) for count, end in zip(counts, ends, strict=True)]


def _by_gate(gates: Float32) -> Float32:
    """f32[4, B, T, U]: the gates one by one, a view."""
    return gates.reshape(*gates.shape[:2], 4, -1).transpose(2, 0, 1, 3)


def _memories_before(states: Float32, memories: Float32, steps: list[slice]) -> Float32:
    """f32[B, T, M]: the memories before each row, given those after it."""
    pairs = itertools.pairwise(steps)
    earlier = [np.arange(last.start, last.start + own.stop - own.start) for last, own in pairs]
    before = np.empty_like(states)
    before[: len(memories)] = memories
    rows = np.concatenate([np.empty(0, np.int64), *earlier])
    states.take(rows, 0, out=before[len(memories) :], mode="clip")  # "raise" would copy once more
    return before


def _slopes(gates: Float32, tanh_cell: Float32, before: Float32) -> tuple[Float32, Float32]:
    """The derivatives f32[B, T, 4 U] of the cell by the inputs of the first three gates and of the output by that of
    the last; and the derivative of the output by the cell, f32[B, T, U]."""
    input_gate, _, candidate, output_gate = _by_gate(gates)
    slopes = gates * (1 - gates)
    grad_input, grad_forget, grad_candidate, grad_output = _by_gate(slopes)
    grad_input *= candidate
    grad_forget *= before
    np.multiply(1 - candidate * candidate, input_gate, out=grad_candidate)
    grad_output *= tanh_cell
    return slopes, output_gate * (1 - tanh_cell * tanh_cell)
