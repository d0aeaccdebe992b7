from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.learning.networks.exported import ExportedPolicy, input_names, output_names
from engine.learning.policies import VectorPolicy
from engine.specs import BehaviorSpec, DecisionSteps, Weights
from tests.weights import CARTPOLE, HOPPER, KINDS, MIXED, random_weights

ROWS = 20


def inputs_of(spec: BehaviorSpec, allowed: bool) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    observations = [torch.randn(ROWS, *o.shape, generator=generator) * 3 for o in spec.observations]
    masks = [torch.full((ROWS, spec.actions.mask_size), float(allowed))] if spec.actions.branches else []
    return [*observations, *masks]


def outputs_of(spec: BehaviorSpec, weights: Weights, inputs: list[Tensor]) -> dict[str, Tensor]:
    policy = ExportedPolicy(spec, "swish", weights.arrays)
    return dict(zip(output_names(spec.actions), policy(*inputs), strict=True))


def test_inputs_and_outputs_are_named_in_the_order_of_ml_agents() -> None:
    assert input_names(HOPPER) == ["obs_0"]
    assert input_names(MIXED) == ["obs_0", "obs_1", "obs_2", "action_masks"]
    continuous = ["continuous_actions", "continuous_action_output_shape", "deterministic_continuous_actions"]
    discrete = ["discrete_actions", "discrete_action_output_shape", "deterministic_discrete_actions"]
    assert output_names(HOPPER.actions) == ["version_number", "memory_size", *continuous]
    assert output_names(CARTPOLE.actions) == ["version_number", "memory_size", *discrete]
    assert output_names(MIXED.actions) == ["version_number", "memory_size", *continuous, *discrete]


@pytest.mark.parametrize("spec", KINDS, ids=lambda spec: spec.name)
@pytest.mark.parametrize("activation", ["swish", "tanh", "relu"])
@pytest.mark.parametrize("is_normalized", [False, True])
def test_it_acts_as_the_deterministic_policy(spec: BehaviorSpec, activation: str, is_normalized: bool) -> None:
    weights = random_weights(spec, is_normalized)
    inputs = inputs_of(spec, allowed=True)
    policy = VectorPolicy(spec.actions, activation, is_deterministic=True, seed=0)
    policy.load(weights)
    observations = tuple(tensor.numpy() for tensor in inputs[: len(spec.observations)])
    chosen = policy.act(DecisionSteps(np.arange(ROWS), observations, np.zeros(ROWS, np.float32))).actions

    outputs = dict(
        zip(output_names(spec.actions), ExportedPolicy(spec, activation, weights.arrays)(*inputs), strict=True)
    )

    if spec.actions.continuous:
        np.testing.assert_allclose(outputs["deterministic_continuous_actions"], chosen.continuous, rtol=0, atol=1e-5)
        assert np.ptp(chosen.continuous) > 0.5, "the comparison would also pass on constants"
    if spec.actions.branches:
        np.testing.assert_array_equal(outputs["deterministic_discrete_actions"], chosen.discrete)
        assert np.ptp(chosen.discrete) > 0, "the comparison would also pass on constants"


def test_constants_tell_version_memory_and_sizes_as_floats() -> None:
    outputs = outputs_of(MIXED, random_weights(MIXED), inputs_of(MIXED, allowed=True))
    constants = {name: outputs[name] for name in outputs if "actions" not in name}
    assert {name: tensor.tolist() for name, tensor in constants.items()} == {
        "version_number": [3.0],
        "memory_size": [0.0],
        "continuous_action_output_shape": [2.0],
        "discrete_action_output_shape": [[3.0, 2.0]],
    }
    assert {tensor.dtype for tensor in constants.values()} == {torch.float32}


def test_where_nothing_is_allowed_every_choice_is_equally_likely() -> None:
    policy = ExportedPolicy(MIXED, "swish", random_weights(MIXED).arrays)
    _, branches = policy.distributions(*inputs_of(MIXED, allowed=False))
    for logits, size in zip(branches, MIXED.actions.branches, strict=True):
        torch.testing.assert_close(logits.softmax(1), torch.full((ROWS, size), 1 / size))


def test_a_forbidden_choice_is_never_the_likeliest() -> None:
    inputs = inputs_of(CARTPOLE, allowed=True)
    inputs[-1][:, 0] = 0
    outputs = outputs_of(CARTPOLE, random_weights(CARTPOLE), inputs)
    assert outputs["deterministic_discrete_actions"].unique().tolist() == [1]


def test_it_holds_copies_of_the_weights() -> None:
    weights, inputs = random_weights(HOPPER, is_normalized=True), inputs_of(HOPPER, allowed=True)
    policy = ExportedPolicy(HOPPER, "swish", weights.arrays)
    before = policy(*inputs)
    for array in weights.arrays.values():
        array.fill(0)
    for one, other in zip(before, policy(*inputs), strict=True):
        torch.testing.assert_close(one, other)


def test_making_and_calling_it_draws_nothing_from_the_generator_of_the_process() -> None:
    before = torch.random.get_rng_state()
    outputs_of(MIXED, random_weights(MIXED), inputs_of(MIXED, allowed=True))
    assert torch.equal(before, torch.random.get_rng_state())
