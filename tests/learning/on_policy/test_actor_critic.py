"""The networks in numpy against those in torch, and how both begin."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from rl_tui.engine.config.network import MemorySettings, NetworkSettings
from rl_tui.engine.learning.acting.layers import Activation
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.learning.networks.flat import views
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.learning.on_policy.actor_critic import (
    ActorCritic,
    NumpyActorCritic,
    Outputs,
    TorchActorCritic,
    make_actor_critic,
)
from rl_tui.engine.learning.on_policy.networks import ActorCriticModule
from rl_tui.engine.specs import ActionSpec, ObservationSpec

CPU = torch.device("cpu")
HYBRID = ActionSpec(2, (3, 2))
ACTIVATIONS: tuple[Activation, ...] = ("swish", "tanh", "relu")
LAYOUT = FeatureLayout((ObservationSpec("speed", (3,)), ObservationSpec("place", (2,))))
MEMORY = {"memory": MemorySettings(memory_size=6)}


def networks(
    is_shared: bool = False,
    seed: int = 0,
    actions: ActionSpec = HYBRID,
    layout: FeatureLayout = LAYOUT,
    streams: int = 2,
    **settings: Any,
) -> ActorCriticModule:
    network = NetworkSettings(**{"hidden_units": 11, **settings})
    return ActorCriticModule(np.random.default_rng(seed), layout, actions, network, streams, is_shared)


def pair(
    is_shared: bool = False, device: torch.device = CPU, **settings: Any
) -> tuple[NumpyActorCritic, TorchActorCritic]:
    """Both forms with the same random parameters, biases too."""
    activation = settings.get("activation", "swish")
    ours = NumpyActorCritic(networks(is_shared, **settings), activation)
    theirs = TorchActorCritic(networks(is_shared, **settings), device)
    ours.parameters += np.random.default_rng(1).standard_normal(len(ours.parameters)).astype(np.float32) * 0.3
    theirs.parameters.copy_(torch.from_numpy(ours.parameters))
    return ours, theirs


def on_cpu(array: Any) -> np.ndarray:
    """A copy as an array."""
    return np.array(array if isinstance(array, np.ndarray) else array.cpu().numpy())


def read(network: ActorCritic, lengths: list[int], columns: int) -> Sequences:
    """How that network reads sequences of these lengths."""
    memories = np.random.default_rng(4).standard_normal((len(lengths), columns)).astype(np.float32)
    return Sequences(np.array(lengths), network.place(memories))


def check_same(ours: NumpyActorCritic, theirs: TorchActorCritic, rows: int, sequences: list[Sequences | None]) -> None:
    """Results and gradients of both forms on random rows and for random gradients."""
    random = np.random.default_rng(rows)
    features = random.standard_normal((rows, 5)).astype(np.float32)
    found, expected = (
        network.forward((network.place(features),), way) for network, way in zip((ours, theirs), sequences, strict=True)
    )
    for one, other in ((found.head, expected.head), (found.values, expected.values)):
        np.testing.assert_allclose(one, on_cpu(other), rtol=1e-4, atol=1e-5)
    shapes = found.head.shape, found.values.shape, 2
    upstream = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    gradient = ours.backward(Outputs(*(array.copy() for array in upstream)))
    expected_gradient = on_cpu(theirs.backward(Outputs(*map(theirs.place, upstream))))
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("activation", "is_shared", "num_layers"), list(product(ACTIVATIONS, (False, True), (1, 2, 3)))
)
def test_numpy_computes_what_torch_computes(
    activation: Activation, is_shared: bool, num_layers: int, torch_device: torch.device
) -> None:
    """Batches shrink and grow, so rows of an earlier one lie in the memory that is reused."""
    ours, theirs = pair(is_shared, torch_device, activation=activation, num_layers=num_layers)
    for rows in (7, 64, 3, 1, 64, 100, 20):
        check_same(ours, theirs, rows, [None, None])
        features = np.random.default_rng(rows).standard_normal((rows, 5)).astype(np.float32)
        (found, _), (expected, _) = (network.values((network.place(features),)) for network in (ours, theirs))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_shared", [False, True])
def test_numpy_computes_what_torch_computes_with_memory(is_shared: bool, torch_device: torch.device) -> None:
    ours, theirs = pair(is_shared, torch_device, **MEMORY)
    for lengths in ([4, 4], [3, 1, 7, 2], [1], [5, 2, 5]):
        both = [read(network, lengths, 6 if is_shared else 12) for network in (ours, theirs)]
        check_same(ours, theirs, sum(lengths), both)
        features = np.random.default_rng(2).standard_normal((sum(lengths), 5)).astype(np.float32)
        found, expected = (
            network.values((network.place(features),), read(network, lengths, 6)) for network in (ours, theirs)
        )
        for one, other in zip(found, expected, strict=True):
            assert one is not None
            assert other is not None
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_values_are_a_copy_that_the_next_call_leaves_alone(torch_device: torch.device) -> None:
    features = np.ones((4, 5), np.float32)
    for network in pair(is_shared=True, device=torch_device):
        values, _ = network.values((network.place(features),))
        kept = values.copy()
        network.values((network.place(features * -3),))
        network.forward((network.place(features * 2),))
        np.testing.assert_array_equal(values, kept)


@pytest.mark.parametrize("is_shared", [False, True])
def test_parameters_changed_in_place_are_the_ones_that_compute(is_shared: bool, torch_device: torch.device) -> None:
    features, kinds = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32), (MEMORY, {})
    for settings in kinds:
        for network in pair(is_shared, torch_device, **settings):
            sequences = read(network, [4, 2], 6 if is_shared else 12) if settings else None
            before = on_cpu(network.forward((network.place(features),), sequences).head)
            network.parameters += 0.1
            outputs = network.forward((network.place(features),), sequences)
            changed = on_cpu(outputs.head)
            assert (np.abs(changed - before) > 1e-3).all()
            own = views(network.parameters, network.shapes)["actor.log_sigma"]
            np.testing.assert_array_equal(on_cpu(outputs.log_sigma), on_cpu(own))


@pytest.mark.parametrize("settings", [{}, MEMORY], ids=["plain", "memory"])
def test_both_forms_start_from_the_same_numbers_and_a_seed_repeats_them(
    settings: dict[str, Any], torch_device: torch.device
) -> None:
    for is_shared in (False, True):
        first, again, other = (
            NumpyActorCritic(networks(is_shared, seed, **settings), "swish").parameters for seed in (1, 1, 2)
        )
        np.testing.assert_array_equal(first, again)
        theirs = TorchActorCritic(networks(is_shared, 1, **settings), torch_device)
        np.testing.assert_array_equal(first, on_cpu(theirs.parameters))
        is_drawn = ~np.isin(first, (0, 1))
        assert (first[is_drawn] != other[is_drawn]).all()


def test_shapes_cover_the_flat_array_without_gaps() -> None:
    for is_shared, actions in product((False, True), (ActionSpec(3), ActionSpec(0, (2, 4)), ActionSpec(1, (3,)))):
        network = NumpyActorCritic(networks(is_shared, actions=actions, **MEMORY), "swish")
        flat = np.arange(len(network.parameters))
        covered = np.concatenate([view.reshape(-1) for view in views(flat, network.shapes).values()])
        np.testing.assert_array_equal(covered, flat)
        outputs = network.forward((np.zeros((1, 5), np.float32),), read(network, [1], 6 if is_shared else 12))
        assert ("actor.log_sigma" in network.shapes) == (actions.continuous > 0) == (outputs.log_sigma is not None)


@pytest.mark.parametrize("is_shared", [False, True])
def test_initial_parameters_have_the_distributions_of_ml_agents(is_shared: bool) -> None:
    """Hidden layers kaiming-normal, means a fifth and logits a tenth of that, value heads xavier-uniform."""
    wide = FeatureLayout((ObservationSpec("speed", (200,)),))
    made = networks(is_shared, actions=ActionSpec(40, (30, 20)), layout=wide, streams=60, hidden_units=300)
    found = {name: parameter.detach().numpy() for name, parameter in made.named_parameters()}
    for body, (index, width) in product(
        ("actor.body",) if is_shared else ("actor.body", "critic"), [(0, 200), (1, 300)]
    ):
        assert found[f"{body}.core.layers.weights.{index}"].std() == pytest.approx(width**-0.5, rel=0.02)
    head, value_head = found["actor.head.weight"], found["values.weight"]
    assert head[:40].std() == pytest.approx(0.2 * 300**-0.5, rel=0.03)
    assert head[40:].std() == pytest.approx(0.1 * 300**-0.5, rel=0.03)
    bound = (6 / (300 + 60)) ** 0.5
    assert bound * 0.999 < np.abs(value_head).max() <= bound
    assert value_head.std() == pytest.approx(bound / 3**0.5, rel=0.02)
    for name, array in found.items():
        assert "weight" in name or not array.any(), name
        assert abs(array.mean()) < 0.01, name


def test_numpy_computes_layers_over_vectors_and_torch_everything_else() -> None:
    camera = FeatureLayout((ObservationSpec("camera", (20, 20, 3), "uint8"),))
    goal = FeatureLayout((ObservationSpec("speed", (3,)), ObservationSpec("goal", (2,), is_goal=True)))
    cases = [
        (LAYOUT, {}, NumpyActorCritic),
        (LAYOUT, MEMORY, NumpyActorCritic),
        (goal, {"goal_conditioning_type": "none"}, NumpyActorCritic),
        (goal, {}, TorchActorCritic),
        (camera, {}, TorchActorCritic),
    ]
    for layout, settings, expected in cases:
        made = make_actor_critic(networks(layout=layout, **settings), layout, "swish", CPU)
        assert isinstance(made, expected)
