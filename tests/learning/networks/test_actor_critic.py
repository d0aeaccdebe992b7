"""The numpy networks against torch's, and how both begin."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from engine.learning.networks.actor_critic import Layout, NumpyActorCritic, TorchActorCritic, make_actor_critic
from engine.learning.networks.mlp import Activation
from engine.specs import ActionSpec

CPU = torch.device("cpu")
HYBRID = ActionSpec(2, (3, 2))
ACTIVATIONS: tuple[Activation, ...] = ("swish", "tanh", "relu")


def layout(
    activation: Activation = "swish",
    num_layers: int = 2,
    is_shared: bool = False,
    actions: ActionSpec = HYBRID,
    hidden_units: int = 11,
    inputs: int = 5,
    num_streams: int = 2,
) -> Layout:
    return Layout(inputs, actions, num_streams, hidden_units, num_layers, activation, is_shared)


def pair(of: Layout, seed: int = 0) -> tuple[NumpyActorCritic, TorchActorCritic]:
    """Both kinds of networks with the same random parameters, biases too."""
    parameters = of.initial(np.random.default_rng(seed))
    parameters += np.random.default_rng(seed + 1).standard_normal(len(parameters)).astype(np.float32) * 0.3
    return NumpyActorCritic(of, parameters.copy()), TorchActorCritic(of, parameters.copy(), CPU)


def on_cpu(array: np.ndarray | torch.Tensor) -> np.ndarray:
    """A copy as an array."""
    return np.array(array if isinstance(array, np.ndarray) else array.numpy())


@pytest.mark.parametrize(
    ("activation", "is_shared", "num_layers"), list(product(ACTIVATIONS, (False, True), (1, 2, 3)))
)
def test_numpy_computes_what_torch_computes(activation: Activation, is_shared: bool, num_layers: int) -> None:
    """Batches shrink and grow, so rows of an earlier one lie in the memory that is reused."""
    of = layout(activation, num_layers, is_shared)
    ours, theirs = pair(of)
    random = np.random.default_rng(2)
    for rows in (7, 64, 3, 1, 64, 100, 20):
        features = random.standard_normal((rows, of.inputs)).astype(np.float32)
        head, values = ours.forward(features)
        expected_head, expected_values = theirs.forward(torch.from_numpy(features))
        np.testing.assert_allclose(head, expected_head.numpy(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(values, expected_values.numpy(), rtol=1e-4, atol=1e-5)
        upstream = [random.standard_normal(shape).astype(np.float32) for shape in (head.shape, values.shape, 2)]
        gradient = ours.backward(*(array.copy() for array in upstream))
        expected = theirs.backward(*(torch.from_numpy(array) for array in upstream))
        np.testing.assert_allclose(gradient, expected.numpy(), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(ours.values(features), theirs.values(torch.from_numpy(features)), atol=1e-5)


def test_values_are_a_copy_that_the_next_call_leaves_alone() -> None:
    ours, theirs = pair(layout(is_shared=True))
    features = np.ones((4, 5), np.float32)
    for network in (ours, theirs):
        values = network.values(network.place(features))
        kept = values.copy()
        network.values(network.place(features * -3))
        network.forward(network.place(features * 2))
        np.testing.assert_array_equal(values, kept)


@pytest.mark.parametrize("is_shared", [False, True])
def test_parameters_changed_in_place_are_the_ones_that_compute(is_shared: bool) -> None:
    features = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)
    for network in pair(layout(is_shared=is_shared)):
        before = on_cpu(network.forward(network.place(features))[0])
        network.parameters += 0.1
        changed = on_cpu(network.forward(network.place(features))[0])
        assert (np.abs(changed - before) > 1e-3).all()
        fresh = NumpyActorCritic(network.layout, on_cpu(network.parameters))
        np.testing.assert_allclose(changed, fresh.forward(features)[0], rtol=1e-4, atol=1e-5)
        assert network.log_sigma is not None
        np.testing.assert_array_equal(on_cpu(network.log_sigma), on_cpu(network.parameters)[-2:])


def test_a_layout_covers_the_flat_array_without_gaps() -> None:
    for is_shared, actions in product((False, True), (ActionSpec(3), ActionSpec(0, (2, 4)), ActionSpec(1, (3,)))):
        of = layout(is_shared=is_shared, actions=actions)
        flat = np.arange(len(of.initial(np.random.default_rng(0))))
        covered = np.concatenate([view.reshape(-1) for view in of.views(flat).values()])
        np.testing.assert_array_equal(covered, flat)


@pytest.mark.parametrize("is_shared", [False, True])
def test_initial_parameters_have_the_distributions_of_ml_agents(is_shared: bool) -> None:
    """Hidden layers kaiming-normal, means a fifth and logits a tenth of that, value heads xavier-uniform."""
    of = layout(is_shared=is_shared, actions=ActionSpec(40, (30, 20)), hidden_units=300, inputs=200, num_streams=60)
    views = of.views(of.initial(np.random.default_rng(0)))
    bodies = ["body"] if is_shared else ["actor", "critic"]
    for body, (index, width) in product(bodies, enumerate((200, 300))):
        assert views[f"{body}.{index}.weight"].std() == pytest.approx(width**-0.5, rel=0.02)
    last = 0 if is_shared else 2
    head, value_head = views[f"actor.{last}.weight"], views[f"critic.{last}.weight"]
    assert head[:40].std() == pytest.approx(0.2 * 300**-0.5, rel=0.03)
    assert head[40:].std() == pytest.approx(0.1 * 300**-0.5, rel=0.03)
    bound = (6 / (300 + 60)) ** 0.5
    assert bound * 0.999 < np.abs(value_head).max() <= bound
    assert value_head.std() == pytest.approx(bound / 3**0.5, rel=0.02)
    for name, view in views.items():
        assert name.endswith("weight") or not view.any(), name
        assert abs(view.mean()) < 0.01, name


def test_a_seed_gives_the_same_parameters_again_and_another_seed_others() -> None:
    for is_shared in (False, True):
        of = layout(is_shared=is_shared)
        first, again, other = (make_actor_critic(of, np.random.default_rng(seed), CPU).parameters for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        weights = first != 0
        assert (first[weights] != other[weights]).all()
