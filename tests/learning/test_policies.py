"""What a policy draws, and how likely it says that was."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.learning.buffers import flat_observations
from engine.learning.networks.actor_critic import Layout, NumpyActorCritic
from engine.learning.networks.mlp import Activation
from engine.learning.networks.normalizer import Normalizer
from engine.learning.policies import VectorPolicy
from engine.learning.surrogate import Batch, Coefficients, surrogate_loss
from engine.specs import ActionSpec, BehaviorSpec, DecisionSteps, ObservationSpec, State, Weights
from tests.learning.rollouts import decisions

KINDS = {
    "continuous": ActionSpec(3),
    "one branch": ActionSpec(0, (4,)),
    "branches": ActionSpec(0, (2, 5, 3)),
    "hybrid": ActionSpec(2, (3, 2)),
}
ACTIVATIONS: tuple[Activation, ...] = ("swish", "tanh", "relu")


def spec_of(kind: str) -> BehaviorSpec:
    return BehaviorSpec("Walker", (ObservationSpec("speed", (3,)), ObservationSpec("map", (2, 1))), KINDS[kind])


def network_of(kind: str, activation: Activation = "swish", is_shared: bool = False) -> NumpyActorCritic:
    """One whose choices are far from uniform."""
    layout = Layout(5, KINDS[kind], 1, 8, 2, activation, is_shared)
    random = np.random.default_rng(7)
    parameters = layout.initial(random)
    parameters += random.standard_normal(len(parameters)).astype(np.float32) * 0.5
    return NumpyActorCritic(layout, parameters)


def policy_of(
    network: NumpyActorCritic, normalizer: Normalizer | None = None, is_deterministic: bool = False, seed: int = 1
) -> VectorPolicy:
    """A policy with the network's weights."""
    layout = network.layout
    layers = [*layout.layers("body", network.parameters), *layout.layers("actor", network.parameters)]
    arrays = {f"layers.{i}.weight": weight for i, (weight, _) in enumerate(layers)}
    arrays |= {f"layers.{i}.bias": bias for i, (_, bias) in enumerate(layers)}
    if network.log_sigma is not None:
        arrays["log_sigma"] = network.log_sigma
    if normalizer is not None:
        arrays |= {"normalizer.mean": normalizer.mean, "normalizer.scale": normalizer.scale}
    policy = VectorPolicy(layout.actions, layout.activation, is_deterministic, seed)
    policy.load(Weights(5, arrays))
    return policy


def one_hot(chosen: np.ndarray, branches: tuple[int, ...]) -> np.ndarray:
    columns = [np.eye(size, dtype=np.float32)[chosen[:, k]] for k, size in enumerate(branches)]
    return np.concatenate(columns, 1) if columns else np.zeros((len(chosen), 0), np.float32)


@pytest.mark.parametrize(("kind", "masked", "activation"), list(product(KINDS, (False, True), ACTIVATIONS)))
def test_log_probabilities_are_those_the_loss_finds_for_the_same_weights(
    kind: str, masked: bool, activation: Activation
) -> None:
    """Then every ratio is one: no divergence, nothing clipped."""
    for is_shared in (False, True):
        network, normalizer = network_of(kind, activation, is_shared), Normalizer(5)
        seen = decisions(np.random.default_rng(0), 200, spec_of(kind), masked and kind != "continuous")
        features = flat_observations(seen.observations)
        normalizer.update(features * 3 + 1)
        choice = policy_of(network, normalizer).act(seen)
        assert choice.log_probs.shape == (200, KINDS[kind].num_columns)
        head, values = network.forward(normalizer(features))
        batch = Batch(
            continuous=choice.continuous,
            chosen=one_hot(choice.actions.discrete, KINDS[kind].branches),
            allowed=None if seen.action_mask is None else seen.action_mask.astype(np.float32),
            log_probs=choice.log_probs,
            advantage=np.ones(200, np.float32),
            returns=values,
            values=values,
        )
        weigh = Coefficients(1e-3, 0.0, 0.5, None, joint_ratio=False)
        loss = surrogate_loss(head, values, network.log_sigma, batch, KINDS[kind], weigh)
        assert loss.policy == pytest.approx(-1, abs=1e-5)
        assert abs(loss.divergence) < 1e-7
        assert loss.clipped == 0


def repeated(kind: str, count: int, mask: np.ndarray | None = None) -> DecisionSteps:
    """The same agent many times."""
    one = decisions(np.random.default_rng(3), 1, spec_of(kind))
    observations = tuple(np.repeat(column, count, axis=0) for column in one.observations)
    allowed = None if mask is None else np.repeat(mask[None], count, axis=0)
    return DecisionSteps(np.arange(count), observations, np.zeros(count, np.float32), allowed)


@pytest.mark.parametrize("masked", [False, True])
def test_choices_come_as_often_as_their_probabilities_say(masked: bool) -> None:
    """Chi-square of 60 000 draws, branch by branch and for pairs of branches, below the 99.9 % quantile."""
    mask = np.array([True, True, True, False, True, True, False, True, True, True]) if masked else None
    policy, count = policy_of(network_of("branches")), 60_000
    choice = policy.act(repeated("branches", count, mask))
    quantiles = {1: 10.8, 2: 13.8, 3: 16.3, 4: 18.5}
    frequent = []
    for branch, size in enumerate(KINDS["branches"].branches):
        chosen = choice.actions.discrete[:, branch]
        probabilities = np.zeros(size)
        for option in range(size):
            if (chosen == option).any():
                probabilities[option] = np.exp(choice.log_probs[chosen == option, branch].mean(dtype=np.float64))
        assert probabilities.sum() == pytest.approx(1, abs=1e-5)
        expected, observed = probabilities * count, np.bincount(chosen, minlength=size)
        seen = expected > 0
        assert ((observed - expected)[seen] ** 2 / expected[seen]).sum() < quantiles[int(seen.sum()) - 1]
        frequent.append((chosen == observed.argmax(), observed.max() / count))
    (first, p), (second, q) = frequent[:2]
    assert abs((first & second).mean() - p * q) < 4 * (p * q / count) ** 0.5, "branches are drawn independently"


def test_continuous_samples_have_the_mean_and_spread_of_the_network() -> None:
    network, seen = network_of("continuous"), repeated("continuous", 60_000)
    samples = policy_of(network).act(seen).continuous
    mean = policy_of(network, is_deterministic=True).act(seen).continuous[0]
    assert network.log_sigma is not None
    sigma = np.exp(network.log_sigma)
    np.testing.assert_allclose(samples.mean(0), mean, atol=float(4 * sigma.max() / 60_000**0.5))
    np.testing.assert_allclose(samples.std(0), sigma, rtol=0.02)
    assert np.abs(np.corrcoef(samples.T) - np.eye(3)).max() < 0.02


@settings(deadline=None, max_examples=150, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    branches=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    logits=st.sampled_from([0.0, 1.0, 30.0, 1e4]),
    is_deterministic=st.booleans(),
)
def test_a_forbidden_choice_is_never_taken(
    seed: int, branches: list[int], logits: float, is_deterministic: bool
) -> None:
    actions = ActionSpec(0, tuple(branches))
    spec = BehaviorSpec("Walker", (ObservationSpec("speed", (2,)),), actions)
    random = np.random.default_rng(seed)
    seen = decisions(random, 300, spec, masked=True)
    weight = random.standard_normal((actions.mask_size, 2)).astype(np.float32) * np.float32(logits)
    policy = VectorPolicy(actions, "tanh", is_deterministic, seed)
    policy.load(Weights(0, {"layers.0.weight": weight, "layers.0.bias": np.zeros(len(weight), np.float32)}))
    choice = policy.act(seen)
    assert seen.action_mask is not None
    assert (seen.action_mask * one_hot(choice.actions.discrete, actions.branches)).sum() == 300 * len(branches)
    assert np.isfinite(choice.log_probs).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_deterministic_policy_takes_the_mean_and_the_likeliest_choice(kind: str) -> None:
    network, seen = network_of(kind), decisions(np.random.default_rng(0), 50, spec_of(kind))
    policy = policy_of(network, is_deterministic=True)
    head, _ = network.forward(flat_observations(seen.observations))
    choice, columns = policy.act(seen), KINDS[kind].continuous
    np.testing.assert_allclose(choice.continuous, head[:, :columns], rtol=1e-5, atol=1e-6)
    start = columns
    for branch, size in enumerate(KINDS[kind].branches):
        likeliest = head[:, start : start + size].argmax(1)
        np.testing.assert_array_equal(choice.actions.discrete[:, branch], likeliest)
        start += size
    again = policy.act(seen)
    np.testing.assert_array_equal(again.continuous, choice.continuous)
    np.testing.assert_array_equal(again.actions.discrete, choice.actions.discrete)


def test_actions_are_samples_clipped_to_three_and_divided_by_three() -> None:
    network = network_of("hybrid")
    assert network.log_sigma is not None
    network.log_sigma[:] = 1.0
    choice = policy_of(network).act(decisions(np.random.default_rng(0), 1000, spec_of("hybrid")))
    assert (np.abs(choice.continuous) > 3).any(), "samples are not clipped"
    np.testing.assert_array_equal(choice.actions.continuous, np.clip(choice.continuous, -3, 3) / np.float32(3))
    assert choice.actions.continuous.dtype == choice.continuous.dtype == choice.log_probs.dtype == np.float32
    assert choice.actions.discrete.dtype == np.int64


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_generator_draws_on_as_the_saved_one(kind: str) -> None:
    network, random = network_of(kind), np.random.default_rng(0)
    first, second = policy_of(network, seed=1), policy_of(network, seed=2)
    first.act(decisions(random, 7, spec_of(kind)))  # an odd number of float32 draws leaves half a word over
    second.load_state(State({}, json.loads(json.dumps(first.state().values))))
    for _ in range(3):
        seen = decisions(random, 30, spec_of(kind))
        ours, theirs = first.act(seen), second.act(seen)
        np.testing.assert_array_equal(ours.continuous, theirs.continuous)
        np.testing.assert_array_equal(ours.actions.discrete, theirs.actions.discrete)


def test_another_seed_draws_otherwise() -> None:
    network, seen = network_of("hybrid"), decisions(np.random.default_rng(0), 30, spec_of("hybrid"))
    choices = [policy_of(network, seed=seed).act(seen).continuous for seed in (1, 1, 2)]
    np.testing.assert_array_equal(choices[0], choices[1])
    assert (choices[0] != choices[2]).all()


def test_a_policy_tells_the_version_it_acts_with() -> None:
    assert policy_of(network_of("hybrid")).version == 5
