"""The layer whose weights goals make: against its formula row by row, and gradients against differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from rl_tui.engine.learning.acting.layers import Activation
from rl_tui.engine.learning.networks.body import ConditionedLayer

I, O, G = 2, 4, 3  # noqa: E741  # inputs, outputs, goal columns
GOLDEN = (1.261150, 1.213638)  # loss, length of its gradient


def layer(activation: Activation = "swish", twins: int | None = None) -> ConditionedLayer:
    """With base and biases that are not zero."""
    module = ConditionedLayer(np.random.default_rng(0), I, O, G, activation, twins).double()
    with torch.no_grad():
        for seed, parameter in enumerate([module.base, module.bias, *module.goal_layers.biases]):
            parameter.copy_(tensor(seed, *parameter.shape))
    return module


def tensor(seed: int, *shape: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def test_it_is_its_formula_for_every_row_and_its_goal() -> None:
    module, hidden, goals = layer(), tensor(7, 3, I), tensor(8, 3, G)
    first, second = module.goal_layers.weights
    first_bias, second_bias = module.goal_layers.biases
    expected = []
    for row, goal in zip(hidden, goals, strict=True):
        features = functional.silu(second @ functional.silu(first @ goal + first_bias) + second_bias)
        features = (features - features.mean()) / torch.sqrt(features.var(unbiased=False) + 1e-5)
        weights = torch.stack([features @ module.makers[:, i] for i in range(I * O)]).view(I, O) + module.base
        expected.append(functional.silu(row @ weights + module.bias[0]))
    torch.testing.assert_close(module(hidden, goals), torch.stack(expected))


@pytest.mark.parametrize("activation", ["swish", "tanh", "relu"])
def test_gradients_of_everything_are_those_of_differences(activation: Activation) -> None:
    cases = [(None, (3, I)), (2, (3, I)), (2, (2, 3, I))]  # without twins, twins behind one input, behind two
    for twins, shape in cases:
        module = layer(activation, twins)
        inputs = tensor(7, *shape).requires_grad_(), tensor(8, 3, G).requires_grad_()
        assert torch.autograd.gradcheck(
            lambda hidden, goals, *_, module=module: module(hidden, goals), (*inputs, *module.parameters())
        )


@pytest.mark.parametrize("hidden", [tensor(7, 3, I), tensor(7, 2, 3, I)])
def test_each_twin_is_a_layer_of_its_own(hidden: Tensor) -> None:
    both, goals = layer(twins=2), tensor(8, 3, G)
    each = []
    for twin in range(2):
        one = layer()
        with torch.no_grad():
            for mine, shared in zip(one.parameters(), both.parameters(), strict=True):
                mine.copy_(shared[twin])
        each.append(one(hidden if hidden.dim() == 2 else hidden[twin], goals))
    torch.testing.assert_close(both(hidden, goals), torch.stack(each))
    assert not torch.equal(each[0], each[1])


def test_parameters_are_those_counted_by_hand_and_begin_as_in_ml_agents() -> None:
    module = ConditionedLayer(np.random.default_rng(0), 30, 20, 7, "swish")
    goal_layers = (7 * 20 + 20) + (20 * 20 + 20)
    assert sum(p.numel() for p in module.parameters()) == goal_layers + 20 * (30 * 20) + 30 * 20 + 20
    bound = (1 / (20 * 30)) ** 0.5
    assert 0.99 * bound < float(module.makers.detach().abs().max()) <= bound
    assert float(module.makers.detach().std()) == pytest.approx(bound / 3**0.5, rel=0.02)
    assert float(module.makers.detach().mean()) == pytest.approx(0, abs=0.03 * bound)
    assert not module.base.any()
    assert not module.bias.any()


def test_golden_loss_and_gradient() -> None:
    module = layer(twins=2).float()
    loss = (module(tensor(7, 3, I).float(), tensor(8, 3, G).float()) - 1).square().mean()
    gradients = torch.autograd.grad(loss, list(module.parameters()))
    length = torch.cat([gradient.flatten() for gradient in gradients]).norm()
    assert (float(loss.detach()), float(length)) == pytest.approx(GOLDEN, rel=1e-4)
