"""Stacked layers: their gradients against differences in float64, twins against one network at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from rl_tui.engine.learning.acting.layers import Activation
from rl_tui.engine.learning.networks.layers import Layers, linear, weight

THEIRS = {"swish": functional.silu, "tanh": torch.tanh, "relu": torch.relu}
GOLDEN = {  # loss, length of its gradient
    "swish": (2.575791, 2.581844),
    "tanh": (2.846246, 2.511314),
    "relu": (3.245578, 3.376413),
}


def layers(activation: Activation = "swish", ends_linear: bool = False, twins: int | None = None) -> Layers:
    """4 inputs, 3 outputs, with biases that are not zero."""
    module = Layers(np.random.default_rng(0), [4, 5, 3], activation, ends_linear, twins)
    with torch.no_grad():
        for bias in module.biases:
            bias.copy_(tensor(1, *bias.shape))
    return module


def tensor(seed: int, *shape: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


@pytest.mark.parametrize("shape", [(6, 4), (2, 6, 4)])
@pytest.mark.parametrize("ends_linear", [False, True])
@pytest.mark.parametrize("activation", THEIRS)
def test_gradients_are_those_of_differences(activation: Activation, ends_linear: bool, shape: tuple[int, ...]) -> None:
    twins = [2] if len(shape) == 3 else [None, 2]
    for count in twins:
        module = layers(activation, ends_linear, count).double()
        inputs = tensor(2, *shape).requires_grad_()
        assert torch.autograd.gradcheck(lambda rows, *_, module=module: module(rows), (inputs, *module.parameters()))


@pytest.mark.parametrize("ends_linear", [False, True])
@pytest.mark.parametrize("activation", THEIRS)
def test_layers_are_those_of_torch_with_and_without_gradients(activation: Activation, ends_linear: bool) -> None:
    module, inputs = layers(activation, ends_linear), tensor(2, 6, 4).float()
    hidden = THEIRS[activation](functional.linear(inputs, module.weights[0], module.biases[0]))
    expected = functional.linear(hidden, module.weights[1], module.biases[1])
    expected = expected if ends_linear else THEIRS[activation](expected)
    torch.testing.assert_close(module(inputs), expected)
    with torch.no_grad():
        torch.testing.assert_close(module(inputs), expected)


@pytest.mark.parametrize("inputs", [tensor(2, 6, 4), tensor(2, 2, 6, 4)])
def test_each_twin_is_a_network_of_its_own(inputs: Tensor) -> None:
    both = layers(twins=2).double()
    each = []
    for twin in range(2):
        one = layers().double()
        with torch.no_grad():
            for mine, shared in zip(one.parameters(), both.parameters(), strict=True):
                mine.copy_(shared[twin])
        each.append(one(inputs if inputs.dim() == 2 else inputs[twin]))
    torch.testing.assert_close(both(inputs), torch.stack(each))
    with torch.no_grad():
        torch.testing.assert_close(both(inputs), torch.stack(each))
    assert not torch.equal(each[0], each[1])


def test_frozen_layers_pass_gradients_on_and_get_none() -> None:
    module, inputs = layers(), tensor(2, 6, 4).float().requires_grad_()
    (expected,) = torch.autograd.grad(module(inputs).sum(), inputs)
    module.requires_grad_(False)
    module(inputs).sum().backward()
    assert inputs.grad is not None
    torch.testing.assert_close(inputs.grad, expected)
    assert all(parameter.grad is None for parameter in module.parameters())


@pytest.mark.parametrize("activation", THEIRS)
def test_golden_loss_and_gradient(activation: Activation) -> None:
    module = layers(activation, ends_linear=True, twins=2)
    loss = (module(tensor(2, 6, 4).float()) - 1).square().mean()
    gradients = torch.autograd.grad(loss, list(module.parameters()))
    length = torch.cat([gradient.flatten() for gradient in gradients]).norm()
    assert (float(loss.detach()), float(length)) == pytest.approx(GOLDEN[activation], rel=1e-4)


def test_initial_weights_have_the_deviation_that_was_requested_and_biases_are_zero() -> None:
    random = np.random.default_rng(0)
    assert float(weight(random, 300, 200, gain=0.2).std()) == pytest.approx(0.2 / math.sqrt(200), rel=0.02)
    bound = 0.5 * math.sqrt(6 / 500)
    xavier = weight(random, 300, 200, "xavier", gain=0.5)
    assert 0.99 * bound < float(xavier.abs().max()) <= bound
    assert float(xavier.std()) == pytest.approx(bound / math.sqrt(3), rel=0.02)
    assert not linear(random, 4, 3).bias.any()
    assert not any(bias.any() for bias in Layers(random, [4, 5, 3], "tanh").biases)


def test_only_the_given_generator_is_drawn_from() -> None:
    before = torch.get_rng_state()
    linear(np.random.default_rng(0), 4, 3)
    layers(twins=2)(tensor(2, 6, 4).float())
    assert torch.equal(before, torch.get_rng_state())
