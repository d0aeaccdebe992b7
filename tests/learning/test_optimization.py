"""One step of the optimizer, against torch's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rl_tui.engine.learning.networks.flat import FlatParameters
from rl_tui.engine.learning.networks.layers import Layers
from rl_tui.engine.learning.optimization import GradientStep, Parameters
from rl_tui.engine.specs import Float32, State
from tests.devices import GPU, gpu

KINDS = ("numpy", "torch", GPU)


class Arrays:
    """Parameters in numpy."""

    def __init__(self, flat: FlatParameters):
        self.parameters: Float32 = flat.parameters.numpy()
        self.shapes = flat.shapes

    def place(self, array: Float32) -> Float32:
        """Where they are already."""
        return array


def network(kind: str, seed: int = 0) -> Parameters:
    device = gpu() if kind == "gpu" else torch.device("cpu")
    flat = FlatParameters(Layers(np.random.default_rng(seed), [4, 8, 8, 5], "tanh"), device)
    return Arrays(flat) if kind == "numpy" else flat


def gradients(count: int, size: int, seed: int = 1) -> list[np.ndarray]:
    """Some below and some above a norm of one half."""
    random = np.random.default_rng(seed)
    scales = np.exp(random.uniform(-6, 2, count))
    return [(random.standard_normal(size) * scale / size**0.5).astype(np.float32) for scale in scales]


def on_cpu(network: Parameters) -> np.ndarray:
    flat = network.parameters
    return np.array(flat if isinstance(flat, np.ndarray) else flat.cpu().numpy())


@pytest.mark.parametrize("max_norm", [None, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_fifty_steps_are_those_of_torch_adam_with_clip_grad_norm(kind: str, max_norm: float | None) -> None:
    ours = network(kind)
    step = GradientStep(ours, 1e-5, max_norm)
    theirs = torch.nn.Parameter(torch.from_numpy(on_cpu(ours).copy()))
    adam = torch.optim.Adam([theirs], eps=1e-5)
    for index, gradient in enumerate(gradients(50, step.num_parameters)):
        learning_rate = 1e-2 * (1 - index / 60)
        step(ours.place(gradient.copy()), learning_rate)
        theirs.grad = torch.from_numpy(gradient.copy())
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_([theirs], max_norm)
        adam.param_groups[0]["lr"] = learning_rate
        adam.step()
        np.testing.assert_allclose(on_cpu(ours), theirs.detach(), rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_snapshot_undoes_everything(kind: str) -> None:
    ours = network(kind)
    step = GradientStep(ours, 1e-8, 0.5)
    early, late = gradients(4, step.num_parameters), gradients(4, step.num_parameters, seed=2)
    for gradient in early:
        step(ours.place(gradient), 1e-2)
    snapshot, state, parameters = step.snapshot(), step.state(), ours.parameters
    for gradient in late:
        step(ours.place(gradient), 1e-2)
    step(ours.place(np.full(step.num_parameters, np.nan, np.float32)), 1e-2)
    assert not step.is_finite
    step.restore(snapshot)
    assert step.is_finite
    assert ours.parameters is parameters, "the network computes with another array now"
    check_same(step.state(), state)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
@pytest.mark.parametrize("ablated", [None, "parameters", "adam_mean", "adam_variance", "adam_steps"])
def test_a_loaded_state_continues_as_the_saved_one(kind: str, other: str, ablated: str | None) -> None:
    """Also on another device than it was saved on; and each part of the state matters."""
    networks = network(kind, 0), network(other, 5)
    first, second = (GradientStep(n, 1e-8, 0.5) for n in networks)
    fresh = second.state()
    for gradient in gradients(4, first.num_parameters):
        first(networks[0].place(gradient.copy()), 1e-2)
    state = first.state()
    tensors = {
        name: (fresh if ablated and name.startswith(f"{ablated}.") else state).tensors[name] for name in state.tensors
    }
    second.load(State(tensors, (fresh if ablated == "adam_steps" else state).values))
    for gradient in gradients(4, first.num_parameters, seed=3):
        for n, step in zip(networks, (first, second), strict=True):
            step(n.place(gradient.copy()), 1e-2)
    is_same = np.allclose(*(on_cpu(n) for n in networks), rtol=1e-5, atol=1e-6)
    assert is_same == (ablated is None)
    if kind == other:
        assert np.array_equal(*(on_cpu(n) for n in networks)) == (ablated is None)


def check_same(first: State, second: State) -> None:
    """Bit for bit."""
    assert first.values == second.values
    assert first.tensors.keys() == second.tensors.keys()
    for name, array in first.tensors.items():
        np.testing.assert_array_equal(array, second.tensors[name], err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_a_moment_that_overflows_is_reported(kind: str) -> None:
    """Its parameter is still finite, and would never move again."""
    ours = network(kind)
    step = GradientStep(ours, 1e-8, None)
    with np.errstate(over="ignore"):
        step(ours.place(np.full(step.num_parameters, 1e25, np.float32)), 1e-2)
    assert np.isfinite(on_cpu(ours)).all()
    assert not step.is_finite


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_one_parameter_that_is_not_finite_is_found(kind: str, wrong: float) -> None:
    step = GradientStep(network(kind), 1e-8, None)
    assert step.is_finite
    (first, *_), moments = step.opened().parameters.values(), step.opened().exp_avg.values()
    for tensor in (first, *moments):
        flat, kept = tensor.reshape(-1), tensor.clone()
        flat[-1] = wrong
        assert not step.is_finite
        tensor.copy_(kept)
    assert step.is_finite


@pytest.mark.parametrize("kind", KINDS)
def test_state_and_parameters_are_copies(kind: str) -> None:
    ours = network(kind)
    step = GradientStep(ours, 1e-8, None)
    state, parameters = step.state(), step.parameters()
    kept = {name: array.copy() for name, array in state.tensors.items()}
    step(ours.place(gradients(1, step.num_parameters)[0]), 1e-1)
    check_same(state, State(kept, {"adam_steps": 0}))
    assert (parameters != step.parameters()).any()
