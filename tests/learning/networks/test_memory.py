"""The recurrent layer in its three forms: over packed sequences in torch and in numpy, and step by step."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rl_tui.engine.learning.acting.lstm_step import LSTMStep
from rl_tui.engine.learning.networks.memory import Memory, Sequences
from rl_tui.engine.learning.networks.numpy.lstm import LSTM, Cell, TimeOrder

H, M = 5, 6
PARTS = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")


class Noisy(Memory):
    """One whose padding holds noise."""

    def _padding(self, rows: Tensor, count: int) -> Tensor:
        noise = np.random.default_rng(1).standard_normal((count, rows.shape[1])).astype(np.float32)
        return torch.from_numpy(noise * 50).to(rows.dtype)


def memory(kind: type[Memory] = Memory, seed: int = 0) -> Memory:
    """One with random biases too."""
    random = np.random.default_rng(seed)
    made = kind(random, H, M)
    with torch.no_grad():
        for name in PARTS[2:]:
            getattr(made.cell, name).add_(torch.from_numpy(random.standard_normal(2 * M).astype(np.float32)))
    return made


def problem(lengths: list[int], seed: int = 0, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Sequences, Tensor]:
    """Rows, how they are read, and a gradient by what is read."""
    random = np.random.default_rng(seed)
    rows, memories, gradient = (
        torch.from_numpy(random.standard_normal(shape)).to(dtype)
        for shape in ((sum(lengths), H), (len(lengths), M), (sum(lengths), M // 2))
    )
    return rows, Sequences(np.array(lengths), memories), gradient


def results(of: Memory, rows: Tensor, sequences: Sequences, gradient: Tensor) -> list[Tensor]:
    """What is read, then gradients by rows, memories and parameters."""
    inputs = [rows.clone().requires_grad_(), sequences.memories.clone().requires_grad_()]
    read = of(inputs[0], Sequences(sequences.lengths, inputs[1]))
    return [read.detach(), *torch.autograd.grad(read, [*inputs, *of.parameters()], gradient)]


def stepped(of: Memory, rows: Tensor, sequences: Sequences) -> tuple[Tensor, Tensor]:
    """Row by row, a sequence after the other."""
    read, after = [], []
    for part, before in zip(rows.split(sequences.lengths.tolist()), sequences.memories, strict=True):
        remembered = before[None]
        for row in part:
            shown, remembered = of.step(row[None], remembered)
            read.append(shown)
        after.append(remembered)
    return torch.cat(read), torch.cat(after)


LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=8)


@settings(deadline=None, max_examples=40, derandomize=True)
@given(lengths=LENGTHS, seed=st.integers(0, 9))
def test_a_batch_of_sequences_gives_what_each_gives_alone_and_step_by_step(lengths: list[int], seed: int) -> None:
    of, (rows, sequences, _) = memory(), problem(lengths, seed)
    expected, remembered = stepped(of, rows, sequences)
    torch.testing.assert_close(of(rows, sequences), expected)
    with torch.no_grad():
        read, after = of.read(rows, sequences)
    torch.testing.assert_close(read, expected.detach())
    torch.testing.assert_close(after, remembered.detach())


@pytest.mark.parametrize("lengths", [[3, 7, 1, 4], [5, 5, 5]])
def test_what_stands_in_padding_changes_neither_results_nor_gradients(lengths: list[int]) -> None:
    plain, noisy = memory(), memory(Noisy)
    for one, other in zip(results(plain, *problem(lengths)), results(noisy, *problem(lengths)), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_a_row_changes_nothing_before_it_nor_in_other_sequences() -> None:
    of, (rows, sequences, _) = memory(), problem([3, 4, 2])
    changed = rows.clone()
    changed[4] += 1  # the second row of the second sequence
    is_same = (of(rows, sequences) == of(changed, sequences)).all(1)
    assert is_same.tolist() == [True] * 4 + [False] * 3 + [True] * 2


def test_initial_weights_are_those_of_ml_agents() -> None:
    """Xavier-uniform by gate, biases of the forget gate 1 in both vectors and the others 0."""
    of = Memory(np.random.default_rng(0), 300, 400)
    for name, columns in ((PARTS[0], 300), (PARTS[1], 200)):
        weights, bound = getattr(of.cell, name).detach(), (6 / (columns + 200)) ** 0.5
        assert bound * 0.999 < weights.abs().max() <= bound
        assert weights.std().item() == pytest.approx(bound / 3**0.5, rel=0.02)
    for name in PARTS[2:]:
        bias = getattr(of.cell, name).detach().view(4, 200)
        assert bias.sum(1).tolist() == [0, 200, 0, 0]
        assert ((bias == 0) | (bias == 1)).all()


def cells(memories: list[Memory]) -> list[Cell]:
    """Their parameters as arrays."""
    return [tuple(getattr(m.cell, name).detach().numpy() for name in PARTS) for m in memories]  # type: ignore[misc]  # four


@settings(deadline=None, max_examples=40, derandomize=True)
@given(lengths=LENGTHS, seed=st.integers(0, 9), twins=st.integers(1, 2))
def test_numpy_computes_what_torch_computes_in_float64(lengths: list[int], seed: int, twins: int) -> None:
    memories = [memory(seed=seed + index) for index in range(twins)]
    gradients: list[Cell] = [tuple(np.ones_like(part) for part in cell) for cell in cells(memories)]  # type: ignore[misc]  # four
    problems = [problem(lengths, seed + index) for index in range(twins)]
    order = TimeOrder.of(np.array(lengths))
    ours = LSTM(cells(memories), gradients)
    remembered = np.stack([sequences.memories.numpy()[order.ranks] for _, sequences, _ in problems], 1)
    read = ours.forward([rows.numpy()[order.rows] for rows, _, _ in problems], order.counts, remembered)
    by_rows = ours.backward(np.stack([gradient.numpy()[order.rows] for _, _, gradient in problems], 1))
    for index, exact in enumerate(copy.deepcopy(m).double() for m in memories):
        rows, sequences, gradient = problem(lengths, seed + index, torch.float64)
        rounded = (rows.float().double(), Sequences(sequences.lengths, sequences.memories.float().double()))
        expected, by_row, _, *by_parameters = results(exact, *rounded, gradient.float().double())
        np.testing.assert_allclose(order.back(read[:, index]), expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(order.back(by_rows[index]), by_row, rtol=1e-3, atol=1e-4)
        for ours_, theirs in zip(gradients[index], by_parameters, strict=True):
            np.testing.assert_allclose(ours_, theirs, rtol=1e-3, atol=1e-4)
        _, after = stepped(exact, *rounded)
        np.testing.assert_allclose(ours.final_memories()[:, index], after.detach()[order.ranks], rtol=1e-4, atol=1e-5)


def test_one_step_in_numpy_is_one_step_in_torch() -> None:
    of, (rows, sequences, _) = memory(), problem([1] * 7)
    arrays = {f"memory.{name}": part for name, part in zip(PARTS, cells([of])[0], strict=True)}
    read, after = LSTMStep(arrays, "memory.")(rows.numpy(), sequences.memories.numpy())
    expected, remembered = of.step(rows, sequences.memories)
    np.testing.assert_allclose(read, expected.detach(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(after, remembered.detach(), rtol=1e-5, atol=1e-6)
