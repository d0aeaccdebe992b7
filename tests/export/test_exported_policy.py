from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from rl_tui.engine.export.exported_policy import ExportedPolicy
from rl_tui.engine.export.graph_names import input_names, output_names
from rl_tui.engine.export.random_inputs import AgentInputs, InputGenerator
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.learning.policies import make_policy
from rl_tui.engine.specs import Weights
from tests.export.exporters import exported_actor
from tests.weights import CARTPOLE, HOPPER, KINDS, MIXED, Kind

MIXED_KIND = KINDS["ppo hybrid"]


def policy_of(kind: Kind, weights: Weights | None = None) -> ExportedPolicy:
    return exported_actor(kind.spec, kind.network, kind.is_squashed, weights or kind.weights())


def agent_inputs(kind: Kind) -> AgentInputs:
    return InputGenerator(
        kind.spec, FeatureLayout.of(kind.spec.observations, kind.network), kind.weights(), np.random.default_rng(1)
    ).mixed()


def inputs_of(kind: Kind, allowed: bool | None = None) -> list[Tensor]:
    """With `allowed`, everything or nothing is."""
    inputs = agent_inputs(kind).tensors(torch.empty(0, 0))
    return inputs if allowed is None else [*inputs[:-1], torch.full_like(inputs[-1], float(allowed))]


def outputs_of(kind: Kind, inputs: list[Tensor]) -> dict[str, Tensor]:
    policy = policy_of(kind)
    return dict(zip(policy.output_names, policy(*inputs), strict=True))


def test_inputs_and_outputs_are_named_in_the_order_of_ml_agents() -> None:
    assert input_names(HOPPER, 0) == ["obs_0"]
    assert input_names(MIXED, 8) == ["obs_0", "obs_1", "obs_2", "action_masks", "recurrent_in"]
    continuous = ["continuous_actions", "continuous_action_output_shape", "deterministic_continuous_actions"]
    discrete = ["discrete_actions", "discrete_action_output_shape", "deterministic_discrete_actions"]
    first, last = ["version_number", "memory_size"], ["recurrent_out"]
    assert list(output_names(HOPPER, 0, "unity")) == first + continuous
    assert list(output_names(CARTPOLE, 4, "unity")) == first + discrete + last
    assert list(output_names(MIXED, 8, "unity")) == first + continuous + discrete + last


def test_other_graphs_have_one_kind_of_actions_under_the_plain_names() -> None:
    plain = ["continuous_actions", "discrete_actions", "recurrent_out"]
    assert output_names(MIXED, 8, "stochastic") == {name: name for name in plain}
    assert output_names(MIXED, 8, "greedy") == {
        "continuous_actions": "deterministic_continuous_actions",
        "discrete_actions": "deterministic_discrete_actions",
        "recurrent_out": "recurrent_out",
    }
    assert output_names(HOPPER, 0, "greedy") == {"continuous_actions": "deterministic_continuous_actions"}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_it_acts_and_remembers_as_the_deterministic_policy(kind: Kind) -> None:
    weights, inputs = kind.weights(), agent_inputs(kind)
    network = kind.network.model_copy(update={"deterministic": True})
    policy = make_policy(kind.spec, network, kind.is_squashed, seed=0)
    policy.load(weights)
    shape = inputs.num_rows, policy.memory_size
    memories = np.random.default_rng(2).uniform(-1, 1, shape).astype(np.float32)
    choice = policy.act(inputs.decisions(), memories)
    ordinary = np.arange(inputs.num_rows) % 4 != 3  # rows of large numbers differ by what float32 rounds away

    exported = policy_of(kind, weights)
    outputs = dict(zip(exported.output_names, exported(*inputs.tensors(torch.from_numpy(memories))), strict=True))

    if kind.spec.actions.continuous:
        found = outputs["deterministic_continuous_actions"].numpy()
        np.testing.assert_allclose(found[ordinary], choice.actions.continuous[ordinary], rtol=0, atol=1e-5)
        assert np.ptp(choice.actions.continuous) > 0.5, "the comparison would also pass on constants"
    if kind.spec.actions.branches:
        found = outputs["deterministic_discrete_actions"].numpy()
        np.testing.assert_array_equal(found[ordinary], choice.actions.discrete[ordinary])
        assert np.ptp(choice.actions.discrete) > 0, "the comparison would also pass on constants"
    if choice.memories is not None:
        found = outputs["recurrent_out"][:, 0].numpy()
        np.testing.assert_allclose(found[ordinary], choice.memories[ordinary], rtol=0, atol=1e-5)


def test_squashed_actions_are_the_tangent_of_the_first_half_of_the_head() -> None:
    kind = KINDS["sac continuous normalized"]
    weights, (rows,) = kind.weights(), inputs_of(kind)
    arrays = {name: torch.tensor(array) for name, array in weights.arrays.items()}
    hidden = ((rows - arrays["normalizer.mean"]) * arrays["normalizer.scale"]).clamp(-5, 5)
    for layer in range(2):
        weight, bias = (arrays[f"body.core.layers.{part}.{layer}"] for part in ("weights", "biases"))
        hidden = torch.nn.functional.silu(hidden @ weight.T + bias)
    head = hidden @ arrays["head.weight"].T + arrays["head.bias"]

    mean, sigma, branches, _ = policy_of(kind).distribution(rows)

    assert branches == ()
    torch.testing.assert_close(mean, head[:, :3])
    torch.testing.assert_close(sigma, head[:, 3:].clamp(-20, 2).exp())
    torch.testing.assert_close(outputs_of(kind, [rows])["deterministic_continuous_actions"], head[:, :3].tanh())


@pytest.mark.parametrize("name", ["ppo continuous normalized", "sac continuous normalized"])
def test_bounds_can_be_undone_between_them(name: str) -> None:
    policy, actions = policy_of(KINDS[name]), torch.linspace(-0.99, 0.99, 9)
    torch.testing.assert_close(policy.module.bounded(policy.module.unbounded(actions)), actions)
    assert policy.module.bounded(torch.tensor([-1e9, 1e9])).tolist() == [-1, 1]


def test_constants_have_version_memory_and_sizes_as_floats() -> None:
    kind = KINDS["sac hybrid memory"]
    outputs = outputs_of(kind, [*inputs_of(kind), torch.zeros(60, 1, 8)])
    constants = {name: outputs[name] for name in outputs if "actions" not in name and "recurrent" not in name}
    assert {name: tensor.tolist() for name, tensor in constants.items()} == {
        "version_number": [3.0],
        "memory_size": [8.0],
        "continuous_action_output_shape": [2.0],
        "discrete_action_output_shape": [[3.0, 2.0]],
    }
    assert {tensor.dtype for tensor in constants.values()} == {torch.float32}


def test_where_nothing_is_allowed_every_choice_is_equally_likely() -> None:
    inputs = inputs_of(MIXED_KIND, allowed=False)
    for logits, size in zip(policy_of(MIXED_KIND).distribution(*inputs).branches, MIXED.actions.branches, strict=True):
        torch.testing.assert_close(logits.softmax(1), torch.full((60, size), 1 / size))


def test_a_forbidden_choice_is_never_the_likeliest() -> None:
    inputs = inputs_of(Kind(CARTPOLE), allowed=True)
    inputs[-1][:, 0] = 0
    outputs = outputs_of(Kind(CARTPOLE), inputs)
    assert outputs["deterministic_discrete_actions"].unique().tolist() == [1]


def test_it_holds_copies_of_the_weights() -> None:
    kind = KINDS["ppo continuous normalized"]
    weights, inputs = kind.weights(), inputs_of(kind)
    policy = policy_of(kind, weights)
    before = policy(*inputs)
    for array in weights.arrays.values():
        array.fill(0)
    for one, other in zip(before, policy(*inputs), strict=True):
        torch.testing.assert_close(one, other)


def test_making_and_calling_it_draws_nothing_from_the_generator_of_the_process() -> None:
    kind = KINDS["sac goal image memory"]
    before = torch.random.get_rng_state()
    outputs_of(kind, [*inputs_of(kind), torch.zeros(60, 1, 8)])
    assert torch.equal(before, torch.random.get_rng_state())
