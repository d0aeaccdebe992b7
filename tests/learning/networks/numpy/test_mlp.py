"""A stack of layers and its gradients, written out, against autograd."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.nn import functional

from rl_tui.engine.learning.acting.layers import Activation
from rl_tui.engine.learning.networks.numpy.mlp import MLP

THEIRS = {"swish": functional.silu, "tanh": torch.tanh, "relu": torch.relu}


def layers(*widths: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Random weights and biases."""
    random = np.random.default_rng(seed)
    sizes = list(pairwise(widths))
    return [
        (random.standard_normal((o, i)).astype(np.float32), random.standard_normal(o).astype(np.float32))
        for i, o in sizes
    ]


@pytest.mark.parametrize("activate_last", [False, True])
@pytest.mark.parametrize("activation", THEIRS)
@pytest.mark.parametrize(("rows", "widths"), [(9, (4, 6, 5, 3)), (256, (4, 64, 96, 3))], ids=["small", "large"])
def test_gradients_of_layers_and_inputs_are_those_of_autograd(
    rows: int, widths: tuple[int, ...], activation: Activation, activate_last: bool
) -> None:
    ours = [(w / np.float32(w.shape[1] ** 0.5), b) for w, b in layers(*widths)]
    gradients = [(np.ones_like(w), np.ones_like(b)) for w, b in ours]
    inputs = np.random.default_rng(1).standard_normal((rows, 4)).astype(np.float32)
    upstream = np.random.default_rng(2).standard_normal((rows, 3)).astype(np.float32) / np.float32(rows)
    hidden = features = torch.from_numpy(inputs).requires_grad_()
    tensors = [torch.from_numpy(array.copy()).requires_grad_() for layer in ours for array in layer]
    for index in range(3):
        hidden = functional.linear(hidden, tensors[2 * index], tensors[2 * index + 1])
        hidden = THEIRS[activation](hidden) if activate_last or index < 2 else hidden
    expected = torch.autograd.grad(hidden, [features, *tensors], torch.from_numpy(upstream))
    mlp = MLP(ours, gradients, activation, activate_last)
    np.testing.assert_allclose(mlp.forward(inputs), hidden.detach(), rtol=1e-4, atol=1e-5)
    grad_inputs = mlp.backward(upstream.copy(), with_inputs=True)
    np.testing.assert_allclose(grad_inputs, expected[0], rtol=1e-4, atol=1e-4)
    for array, gradient in zip([array for layer in gradients for array in layer], expected[1:], strict=True):
        np.testing.assert_allclose(array, gradient, rtol=1e-4, atol=1e-4)


def test_rows_of_a_larger_batch_leave_no_trace_in_a_smaller_one() -> None:
    weights = layers(4, 6, 2)
    used, fresh = (MLP(weights, [(np.empty_like(w), np.empty_like(b)) for w, b in weights], "tanh") for _ in range(2))
    used.forward(np.full((50, 4), 3, np.float32))
    used.backward(np.full((50, 2), 3, np.float32))
    inputs = np.random.default_rng(1).standard_normal((8, 4)).astype(np.float32)
    np.testing.assert_array_equal(used.forward(inputs), fresh.forward(inputs))
    upstream = np.ones((8, 2), np.float32)
    ours, expected = used.backward(upstream.copy(), with_inputs=True), fresh.backward(upstream, with_inputs=True)
    assert ours is not None
    assert expected is not None
    np.testing.assert_array_equal(ours, expected)
