"""What a policy draws, and how likely it says that was."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_tui.engine.config.network import MemorySettings, NetworkSettings
from rl_tui.engine.learning.acting.action_sampler import ActionSampler
from rl_tui.engine.learning.acting.layers import Activation
from rl_tui.engine.learning.acting.policy import ActorPolicy, NumpyPolicy
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.learning.networks.actor import Actor
from rl_tui.engine.learning.networks.flat import views
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.learning.networks.normalizer import Normalizer
from rl_tui.engine.learning.on_policy.actor_critic import NumpyActorCritic
from rl_tui.engine.learning.on_policy.clipping import Coefficients
from rl_tui.engine.learning.on_policy.networks import ActorCriticModule
from rl_tui.engine.learning.policies import TorchPolicy, make_policy
from rl_tui.engine.learning.ppo.trainer import ppo_loss
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, DecisionSteps, ObservationSpec, Policy, State, Weights
from tests.learning.rollouts import decisions

KINDS = {
    "continuous": ActionSpec(3),
    "one branch": ActionSpec(0, (4,)),
    "branches": ActionSpec(0, (2, 5, 3)),
    "hybrid": ActionSpec(2, (3, 2)),
}
ACTIVATIONS: tuple[Activation, ...] = ("swish", "tanh", "relu")


MEMORY = MemorySettings(sequence_length=4, memory_size=6)


def spec_of(kind: str) -> BehaviorSpec:
    return BehaviorSpec("Walker", (ObservationSpec("speed", (3,)), ObservationSpec("place", (2,))), KINDS[kind])


LAYOUT = FeatureLayout(spec_of("hybrid").observations)


def settings_of(
    activation: Activation = "swish", is_deterministic: bool = False, has_memory: bool = False
) -> NetworkSettings:
    memory = MEMORY if has_memory else None
    return NetworkSettings(hidden_units=8, activation=activation, deterministic=is_deterministic, memory=memory)


def network_of(
    kind: str, activation: Activation = "swish", is_shared: bool = False, has_memory: bool = False
) -> NumpyActorCritic:
    """One whose choices are far from uniform."""
    random = np.random.default_rng(7)
    settings = settings_of(activation, has_memory=has_memory)
    made = NumpyActorCritic(ActorCriticModule(random, LAYOUT, KINDS[kind], settings, 1, is_shared), activation)
    made.parameters += random.standard_normal(len(made.parameters)).astype(np.float32) * 0.5
    return made


def weights_of(network: NumpyActorCritic, normalizer: Normalizer | None = None) -> Weights:
    """Its actor's."""
    named = views(network.parameters, network.shapes)
    arrays = {name.removeprefix("actor."): array for name, array in named.items() if name.startswith("actor.")}
    if normalizer is not None:
        arrays |= {"normalizer.mean": normalizer.mean, "normalizer.scale": normalizer.scale}
    return Weights(5, arrays)


def policy_of(
    network: NumpyActorCritic,
    kind: str,
    normalizer: Normalizer | None = None,
    settings: NetworkSettings | None = None,
    seed: int = 1,
) -> Policy:
    """A policy with the network's weights."""
    policy = make_policy(spec_of(kind), settings or settings_of(), False, seed)
    assert isinstance(policy, NumpyPolicy)
    policy.load(weights_of(network, normalizer))
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
        features = LAYOUT.vectors(seen.observations)
        normalizer.update(features * 3 + 1)
        choice = policy_of(network, kind, normalizer, settings_of(activation)).act(seen)
        assert choice.log_probs.shape == (200, KINDS[kind].num_columns)
        outputs = network.forward((normalizer(features),))
        rows = {
            "continuous": choice.continuous,
            "chosen": one_hot(choice.actions.discrete, KINDS[kind].branches),
            "log_probs": choice.log_probs,
            "advantage": np.ones(200, np.float32),
            "returns": outputs.values,
            "values": outputs.values,
        }
        if seen.action_mask is not None:
            rows["allowed"] = seen.action_mask.astype(np.float32)
        terms = ppo_loss(outputs, rows, KINDS[kind], Coefficients(1e-3, 0.0, 0.5, None)).terms
        assert terms["Losses/Policy Loss"] == pytest.approx(-1, abs=1e-5)
        assert abs(terms["Policy/KL Divergence"]) < 1e-7
        assert terms["Policy/Clip Fraction"] == 0


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
    policy, count = policy_of(network_of("branches"), "branches"), 60_000
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
    samples = policy_of(network, "continuous").act(seen).continuous
    mean = policy_of(network, "continuous", settings=settings_of(is_deterministic=True)).act(seen).continuous[0]
    sigma = np.exp(views(network.parameters, network.shapes)["actor.log_sigma"])
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
    head = seen.observations[0] @ weight.T
    choice = ActionSampler(actions, False, is_deterministic, seed).choose(head, seen.action_mask)
    assert seen.action_mask is not None
    assert (seen.action_mask * one_hot(choice.actions.discrete, actions.branches)).sum() == 300 * len(branches)
    assert np.isfinite(choice.log_probs).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_deterministic_policy_takes_the_mean_and_the_likeliest_choice(kind: str) -> None:
    network, seen = network_of(kind), decisions(np.random.default_rng(0), 50, spec_of(kind))
    policy = policy_of(network, kind, settings=settings_of(is_deterministic=True))
    head = network.forward((LAYOUT.vectors(seen.observations),)).head
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
    views(network.parameters, network.shapes)["actor.log_sigma"][:] = 1.0
    choice = policy_of(network, "hybrid").act(decisions(np.random.default_rng(0), 1000, spec_of("hybrid")))
    assert (np.abs(choice.continuous) > 3).any(), "samples are not clipped"
    np.testing.assert_array_equal(choice.actions.continuous, np.clip(choice.continuous, -3, 3) / np.float32(3))
    assert choice.actions.continuous.dtype == choice.continuous.dtype == choice.log_probs.dtype == np.float32
    assert choice.actions.discrete.dtype == np.int64


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_generator_draws_on_as_the_saved_one(kind: str) -> None:
    network, random = network_of(kind), np.random.default_rng(0)
    first, second = policy_of(network, kind, seed=1), policy_of(network, kind, seed=2)
    first.act(decisions(random, 7, spec_of(kind)))  # an odd number of float32 draws leaves half a word over
    second.load_state(State({}, json.loads(json.dumps(first.state().values))))
    for _ in range(3):
        seen = decisions(random, 30, spec_of(kind))
        ours, theirs = first.act(seen), second.act(seen)
        np.testing.assert_array_equal(ours.continuous, theirs.continuous)
        np.testing.assert_array_equal(ours.actions.discrete, theirs.actions.discrete)


def test_another_seed_draws_otherwise() -> None:
    network, seen = network_of("hybrid"), decisions(np.random.default_rng(0), 30, spec_of("hybrid"))
    choices = [policy_of(network, "hybrid", seed=seed).act(seen).continuous for seed in (1, 1, 2)]
    np.testing.assert_array_equal(choices[0], choices[1])
    assert (choices[0] != choices[2]).all()


def test_a_policy_shows_the_version_it_acts_with() -> None:
    assert policy_of(network_of("hybrid"), "hybrid").version == 5


@pytest.mark.parametrize("kind", KINDS)
def test_numpy_remembers_what_the_module_remembers(kind: str) -> None:
    """Over several steps, also where an episode begins in between."""
    network, random = network_of(kind, has_memory=True), np.random.default_rng(0)
    settings, spec = settings_of(has_memory=True), spec_of(kind)
    policies = [
        policy_of(network, kind, settings=settings),
        TorchPolicy(LAYOUT, settings, ActionSampler(spec.actions, False, False, 1)),
    ]
    policies[1].load(weights_of(network))
    memories = [None, np.zeros((7, MEMORY.memory_size), np.float32)]
    for step in range(5):
        seen = decisions(random, 7, spec)
        choices = [policy.act(seen, remembered) for policy, remembered in zip(policies, memories, strict=True)]
        for ours, theirs in zip(*((c.continuous, c.log_probs, c.memories) for c in choices), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(choices[0].actions.discrete, choices[1].actions.discrete)
        memories = [choice.memories for choice in choices]
        assert memories[0] is not None
        assert np.abs(memories[0]).mean() > 0.05
        for remembered in memories:
            remembered[step] = 0  # type: ignore[index]  # both remember


def test_acting_step_by_step_is_what_learning_reads_in_one_go() -> None:
    """An episode longer than a sequence, from the memory that was stored where a sequence begins."""
    for is_shared in (False, True):
        network, random = network_of("hybrid", is_shared=is_shared, has_memory=True), np.random.default_rng(0)
        policy = policy_of(network, "hybrid", settings=settings_of(is_deterministic=True, has_memory=True))
        rows, means, stored = [], [], []
        memories = np.zeros((1, MEMORY.memory_size), np.float32)
        for _ in range(11):
            seen = decisions(random, 1, spec_of("hybrid"))
            choice = policy.act(seen, memories)
            rows.append(LAYOUT.vectors(seen.observations))
            means.append(choice.continuous)
            stored.append(memories)
            assert choice.memories is not None
            memories = choice.memories
        before = np.concatenate(stored)[[0, 4, 8]]
        read_with = before if is_shared else np.concatenate([before, before * 0], axis=1)
        sequences = Sequences(np.array([4, 4, 3]), network.place(read_with))
        head = network.forward((np.concatenate(rows),), sequences).head
        np.testing.assert_allclose(head[:, :2], np.concatenate(means), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("has_memory", [False, True])
@pytest.mark.parametrize("is_squashed", [False, True])
def test_policy_evaluates_its_own_actions_as_when_it_chose_them(kind: str, has_memory: bool, is_squashed: bool) -> None:
    settings, spec = settings_of(has_memory=has_memory), spec_of(kind)
    actor = Actor(np.random.default_rng(2), LAYOUT, spec.actions, settings, is_squashed)
    arrays = {name: parameter.detach().numpy() for name, parameter in actor.named_parameters()}
    policy = make_policy(spec, settings, is_squashed, seed=1)
    assert isinstance(policy, ActorPolicy)
    policy.load(Weights(0, arrays))
    seen = decisions(np.random.default_rng(0), 300, spec, masked=kind != "continuous")
    memories = np.random.default_rng(1).standard_normal((300, policy.memory_size)).astype(np.float32)
    before = memories if has_memory else None
    choice = policy.act(seen, before)
    exact = policy.evaluate(seen, choice.actions, before, choice.continuous)
    computed = policy.evaluate(seen, choice.actions, before)
    within = (abs(choice.continuous) < (0.99 if is_squashed else 3)).all(1)
    assert within.sum() > 100
    np.testing.assert_allclose(exact.log_probs[within], choice.log_probs[within], atol=2e-4)
    np.testing.assert_allclose(computed.log_probs[within], choice.log_probs[within], atol=2e-4)
    if "branch" in kind:
        np.testing.assert_array_equal(exact.log_probs, choice.log_probs)
    assert np.isfinite(computed.log_probs).all()
    assert (exact.memories is None) == (not has_memory)
    if exact.memories is not None:
        np.testing.assert_array_equal(exact.memories, choice.memories)
