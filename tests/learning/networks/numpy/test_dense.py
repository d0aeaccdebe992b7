"""What numpy or torch computes of a layer, whichever it is, against torch's functions and products in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from rl_tui.engine.learning.networks.numpy.dense import (
    LARGE_ARRAY,
    Activation,
    activate,
    affine,
    is_in_place,
    multiply,
    multiply_by_slope,
)

THEIRS = {"swish": functional.silu, "tanh": torch.tanh, "relu": torch.relu}


@pytest.mark.parametrize("size", [1000, LARGE_ARRAY])
@pytest.mark.parametrize("activation", THEIRS)
def test_activations_and_slopes_are_those_of_torch_also_far_out(activation: Activation, size: int) -> None:
    x = np.concatenate([np.linspace(-9, 9, size + 1), [-1e30, -200, -30, 30, 200, 1e30]]).astype(np.float32)
    tensor = torch.from_numpy(x.copy()).requires_grad_()
    expected = THEIRS[activation](tensor)
    before, after = x.copy(), np.empty_like(x)
    if is_in_place(activation):
        after = before
    assert activate(activation, before, after) is after
    np.testing.assert_allclose(after, expected.detach(), rtol=1e-5, atol=1e-6)
    (slope,) = torch.autograd.grad(expected.sum(), tensor)
    gradient = np.ones_like(x)
    multiply_by_slope(activation, gradient, before, after, np.empty_like(x))
    np.testing.assert_allclose(gradient, slope, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 4, 5), (7, 1, 6), (200, 160, 200)])
def test_products_are_the_same_in_numpy_and_torch(shape: tuple[int, int, int]) -> None:
    rows, inner, columns = shape
    random = np.random.default_rng(0)
    left = random.standard_normal((inner, rows)).astype(np.float32).T
    right = random.standard_normal((inner, columns)).astype(np.float32)
    out = np.empty((rows, columns), np.float32)
    assert multiply(left, right, out) is out
    np.testing.assert_allclose(out, left.astype(np.float64) @ right, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("shape", [(1, 4, 5), (256, 4, 256), (256, 300, 1), (7, 300, 300)])
def test_a_layer_is_the_same_in_numpy_and_torch(shape: tuple[int, int, int]) -> None:
    rows, inputs, outputs = shape
    random = np.random.default_rng(0)
    x, weight = (random.standard_normal(s).astype(np.float32) for s in ((rows, inputs), (outputs, inputs)))
    bias = random.standard_normal(outputs).astype(np.float32)
    out = np.full((rows, 2, outputs), np.nan, np.float32)[:, 1]  # a view between others
    assert affine(x, weight, bias, out) is out
    np.testing.assert_allclose(out, x.astype(np.float64) @ weight.T + bias, rtol=1e-4, atol=1e-3)
