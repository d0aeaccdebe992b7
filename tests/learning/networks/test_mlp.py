"""Activations and their slopes, written out, against torch's."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.nn import functional

from engine.learning.networks.mlp import MLP, Activation, activate, multiply_by_slope

THEIRS = {"swish": functional.silu, "tanh": torch.tanh, "relu": torch.relu}


@pytest.mark.parametrize("activation", THEIRS)
def test_activations_and_slopes_are_those_of_torch_also_far_out(activation: Activation) -> None:
    x = np.concatenate([np.linspace(-9, 9, 1001), [-1e30, -200, -30, 30, 200, 1e30]]).astype(np.float32)
    tensor = torch.from_numpy(x.copy()).requires_grad_()
    expected = THEIRS[activation](tensor)
    after = activate(activation, x, np.empty_like(x))
    np.testing.assert_allclose(after, expected.detach(), rtol=1e-5, atol=1e-6)
    (slope,) = torch.autograd.grad(expected.sum(), tensor)
    gradient = np.ones_like(x)
    multiply_by_slope(activation, gradient, x, after, np.empty_like(x))
    np.testing.assert_allclose(gradient, slope, rtol=1e-4, atol=1e-5)


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
def test_gradients_of_layers_and_inputs_are_those_of_autograd(activation: Activation, activate_last: bool) -> None:
    ours, gradients = layers(4, 6, 5, 3), [(np.ones_like(w), np.ones_like(b)) for w, b in layers(4, 6, 5, 3)]
    inputs = np.random.default_rng(1).standard_normal((9, 4)).astype(np.float32)
    upstream = np.random.default_rng(2).standard_normal((9, 3)).astype(np.float32)
    hidden = features = torch.from_numpy(inputs).requires_grad_()
    tensors = [torch.from_numpy(array.copy()).requires_grad_() for layer in ours for array in layer]
    for index in range(3):
        hidden = functional.linear(hidden, tensors[2 * index], tensors[2 * index + 1])
        hidden = THEIRS[activation](hidden) if activate_last or index < 2 else hidden
    expected = torch.autograd.grad(hidden, [features, *tensors], torch.from_numpy(upstream))
    mlp = MLP(ours, gradients, activation, activate_last)
    np.testing.assert_allclose(mlp.forward(inputs), hidden.detach(), rtol=1e-4, atol=1e-5)
    by_inputs = mlp.backward(upstream.copy(), wants_inputs=True)
    np.testing.assert_allclose(by_inputs, expected[0], rtol=1e-4, atol=1e-4)
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
    ours, expected = used.backward(upstream.copy(), wants_inputs=True), fresh.backward(upstream, wants_inputs=True)
    assert ours is not None
    assert expected is not None
    np.testing.assert_array_equal(ours, expected)
