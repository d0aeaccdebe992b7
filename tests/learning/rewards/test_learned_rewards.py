"""Curiosity, RND and GAIL: their formulas, what they see, and that their state is all they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from rl_tui.engine import registry
from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.trainer import Metrics, Trainer
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.specs import CUT, TERMINATED, TRUNCATED, ActionSpec, BehaviorSpec, ObservationSpec
from tests.fakes import RandomPolicy
from tests.learning.demonstrations import recorded
from tests.learning.rewards.test_learned_signals import TRAINERS, reloaded, same, signal_of
from tests.learning.rollouts import SPEC, Simulation, acted
from tests.pretended_device import DEVICE, PretendedDevice

CPU = torch.device("cpu")
KINDS: dict[str, tuple[str, dict[str, object]]] = {
    "curiosity": ("curiosity", {}),
    "rnd": ("rnd", {}),
    "gail": ("gail", {"demo_path": "shown"}),
    "gail with actions": ("gail", {"demo_path": "shown", "use_actions": True}),
    "vail": ("gail", {"demo_path": "shown", "use_actions": True, "use_vail": True}),
}
SEEN = ObservationSpec("speed", (3,))
EVERYTHING = (
    SEEN,
    ObservationSpec("camera", (20, 20, 3), "uint8"),
    ObservationSpec("map", (20, 24, 1)),
    ObservationSpec("things", (4, 5)),
    ObservationSpec("target", (2,), is_goal=True),
)


def trainer(
    name: str,
    kind: str,
    seed: int = 0,
    spec: BehaviorSpec = SPEC,
    network: Mapping[str, object] = {},
    device: torch.device = CPU,
    is_normalized: bool = True,
    **changes: object,
) -> Trainer:
    """With the environment's reward and half of that of a signal, which has demonstrations if it needs them."""
    layers = {"hidden_units": 8, "num_layers": 1}
    signal, settings = KINDS[kind]
    own = {"strength": 0.5, "network_settings": layers | {"normalize": is_normalized}, **settings, **changes}
    config = BehaviorConfig.model_validate(
        {
            "trainer_type": name,
            "hyperparameters": TRAINERS[name],
            "network_settings": layers | dict(network),
            "reward_signals": {"extrinsic": {}, signal: own},
            "time_horizon": 16,
        }
    )
    made: Trainer = registry.implementation("trainers", name)(spec, config, seed, device)
    made.use_demonstrations(
        {"shown": recorded(Simulation(RandomPolicy(spec.actions), spec, num_agents=2, horizon=6).run(18))}
    )
    return made


def fed(made: Trainer, count: int, start: int = 0) -> list[Metrics]:
    """What updates report that depend only on their number and on the policy."""
    found = []
    for number in range(start, start + count):
        made.add(acted(made.make_policy(number), np.random.default_rng(number), [12, 16, 4], SPEC, masked=True))
        found.append(made.update(32 * number))
    return found


def steps_of(made: Trainer, spec: BehaviorSpec = SPEC, seed: int = 1) -> Transitions:
    return Transitions.of(acted(made.make_policy(seed), np.random.default_rng(seed), [12, 8], spec))


def network_of(made: Trainer) -> dict[str, Tensor]:
    return dict(signal_of(made).network.state_dict())


def layer(networks: Mapping[str, Tensor], name: str, rows: Tensor) -> Tensor:
    return rows @ networks[f"{name}.weight"].T + networks[f"{name}.bias"]


def body(networks: Mapping[str, Tensor], name: str, rows: Tensor) -> Tensor:
    """The one layer of a core, or of one of curiosity's models."""
    weight, bias = networks[f"{name}.weights.0"], networks[f"{name}.biases.0"]
    return functional.silu(rows @ weight.T + bias)


def seen(steps: Transitions, following: bool = False) -> Tensor:
    return torch.from_numpy(np.concatenate(steps.next_observations if following else steps.observations, 1))


def number(reported: Any) -> float:
    return float(torch.as_tensor(reported).detach())


def action_columns(steps: Transitions, *, is_bounded: bool = False) -> Tensor:
    continuous = torch.from_numpy(steps.continuous_actions)
    chosen = torch.from_numpy(steps.discrete_actions)
    branches = [functional.one_hot(chosen[:, k], size) for k, size in enumerate(SPEC.actions.branches)]
    return torch.cat([continuous.clamp(-3, 3) / 3 if is_bounded else continuous, *branches], 1)


@pytest.mark.parametrize("name", TRAINERS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_it_has_learned_is_saved_and_learned_on_bit_for_bit(name: str, kind: str) -> None:
    straight, loaded = trainer(name, kind), trainer(name, kind, seed=9)
    fed(straight, 4)
    loaded.load(reloaded(straight.state()))
    if (replay := straight.replay()) is not None:
        loaded.load_replay(reloaded(replay))
    reported = [fed(each, 4, start=4) for each in (straight, loaded)]
    assert reported[0] == reported[1]
    assert same(straight.state(), loaded.state())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TRAINERS)
@pytest.mark.parametrize("actions", [ActionSpec(2), ActionSpec(0, (3, 2)), ActionSpec(1, (2,))], ids=str)
def test_it_sees_whatever_an_agent_observes_and_does(kind: str, name: str, actions: ActionSpec) -> None:
    """Vectors, images of bytes and of numbers, sets, goals; the policy has a memory."""
    spec = BehaviorSpec("Walker", EVERYTHING, actions)
    memory = {"memory": {"sequence_length": 4, "memory_size": 4}}
    made = trainer(name, kind, spec=spec, network=memory)
    before = {name: array.clone() for name, array in network_of(made).items()}
    simulation = Simulation(made.make_policy(0), spec, num_agents=4, horizon=8)
    for number in range(3):
        made.add(simulation.run(10))
        metrics = made.update(32 * number)
    signal = KINDS[kind][0]
    reported = {"curiosity": "Losses/Curiosity Forward Loss", "rnd": "Losses/RND Loss", "gail": "Losses/GAIL Loss"}
    assert np.isfinite(metrics[reported[signal]])
    trained = dict(signal_of(made).network.named_parameters())
    changed = {key for key, array in network_of(made).items() if not torch.equal(array, before[key])}
    never = {key for key in trained if "target" in key and signal == "rnd"}
    assert changed >= trained.keys() - never
    assert not changed & never


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TRAINERS)
def test_on_a_device_it_learns_the_same(kind: str, name: str) -> None:
    here = trainer(name, kind)
    fed(here, 2)
    with PretendedDevice().everywhere():
        there = trainer(name, kind, device=DEVICE)
        fed(there, 2)
        states = here.state(), there.state()
    part = f"reward_{KINDS[kind][0]}"
    own, other = (state.part(part) for state in states)
    for key, array in own.tensors.items():
        np.testing.assert_allclose(array, other.tensors[key], rtol=1e-4, atol=1e-6, err_msg=key)


def test_curiosity_pays_what_its_model_did_not_predict() -> None:
    made = trainer("ppo", "curiosity", is_normalized=False)
    steps, signal = steps_of(made), signal_of(made)
    assert not signal.evaluate_transitions(steps).any(), "it has learned nothing yet"
    signal.update(steps)
    networks, actions = network_of(made), action_columns(steps)
    now, after = (body(networks, "encoder.core.layers", seen(steps, following)) for following in (False, True))
    hidden = body(networks, "forward_model", torch.cat([now, actions], 1))
    error = 0.5 * (after - layer(networks, "next_encoding", hidden)).square().sum(1)
    np.testing.assert_allclose(signal.evaluate_transitions(steps), error.clamp(max=2.0), rtol=1e-5)
    assert error.max() > 0


def test_curiosity_pays_at_most_one_after_its_strength() -> None:
    made = trainer("ppo", "curiosity", strength=100.0)
    steps, signal = steps_of(made), signal_of(made)
    signal.update(steps)
    assert signal.evaluate_transitions(steps).max() == pytest.approx(0.01)


def test_curiosity_learns_both_models_with_the_gradients_of_their_losses() -> None:
    made = trainer("ppo", "curiosity", is_normalized=False)
    steps, signal = steps_of(made), signal_of(made)
    networks = {
        key: tensor.clone().requires_grad_() for key, tensor in network_of(made).items() if tensor.is_floating_point()
    }
    actions = action_columns(steps)
    now, after = (body(networks, "encoder.core.layers", seen(steps, following)) for following in (False, True))
    predicted = layer(networks, "next_encoding", body(networks, "forward_model", torch.cat([now, actions], 1)))
    forward = 0.5 * (after - predicted).square().sum(1).mean()
    guessed = layer(networks, "action", body(networks, "inverse", torch.cat([now, after], 1)))
    inverse = (actions[:, :2] - guessed[:, :2]).square().sum(1).mean()
    chosen = torch.from_numpy(steps.discrete_actions)
    inverse = inverse + functional.cross_entropy(guessed[:, 2:5], chosen[:, 0])
    inverse = inverse + functional.cross_entropy(guessed[:, 5:7], chosen[:, 1])
    loss, numbers = signal.loss(steps)
    assert number(numbers["Losses/Curiosity Forward Loss"]) == pytest.approx(float(forward.detach()), rel=1e-5)
    assert number(numbers["Losses/Curiosity Inverse Loss"]) == pytest.approx(float(inverse.detach()), rel=1e-5)
    expected = 10 * (0.2 * forward + 0.8 * inverse)
    expected.backward()
    loss.backward()
    for key, parameter in signal.network.named_parameters():
        np.testing.assert_allclose(parameter.grad, networks[key].grad, rtol=1e-4, atol=1e-6, err_msg=key)


def test_rnd_pays_the_distance_from_a_random_network() -> None:
    made = trainer("ppo", "rnd", is_normalized=False)
    steps, networks = steps_of(made), network_of(made)
    rows = seen(steps)
    target, predicted = (body(networks, f"{which}.core.layers", rows) for which in ("target", "predictor"))
    np.testing.assert_allclose(
        signal_of(made).evaluate_transitions(steps), (target - predicted).square().sum(1), rtol=1e-5
    )


@pytest.mark.parametrize("kind", ["gail", "gail with actions", "vail"])
@pytest.mark.parametrize("name", TRAINERS)
def test_gail_pays_for_what_its_discriminator_takes_to_be_demonstrated(kind: str, name: str) -> None:
    """Continuous actions as the environment gets them, and whether the episode has ended in any way."""
    made = trainer(name, kind, is_normalized=False)
    steps, networks = steps_of(made), network_of(made)
    columns = [seen(steps)]
    if kind != "gail":
        columns += [action_columns(steps, is_bounded=name == "ppo"), torch.from_numpy(steps.endings != CUT)[:, None]]
    hidden = body(networks, "core.layers", torch.cat(columns, 1))
    if kind == "vail":
        hidden = layer(networks, "code", hidden)
    probability = torch.sigmoid(layer(networks, "judge", hidden))[:, 0]
    expected = -torch.log(1 - probability * (1 - 1e-7))
    np.testing.assert_allclose(signal_of(made).evaluate_transitions(steps), expected, rtol=1e-5)


@pytest.mark.parametrize("ignores", [False, True])
def test_gail_sees_the_end_of_an_episode_after_which_nothing_counts_unless_it_is_ignored(ignores: bool) -> None:
    made = trainer("ppo", "gail with actions", ignore_dones=ignores)
    steps, signal = steps_of(made), signal_of(made)
    endings = [np.full(steps.num_rows, ending, np.int8) for ending in (CUT, TERMINATED, TRUNCATED)]
    going_on, terminated, truncated = (signal.evaluate_transitions(replace(steps, endings=each)) for each in endings)
    np.testing.assert_array_equal(terminated, truncated)
    assert not np.allclose(going_on, terminated)
    assert made._streams.masks_terminal.tolist() == [True, not ignores]  # type: ignore[attr-defined]  # every trainer has them


@pytest.mark.parametrize("kind", ["curiosity", "rnd"])
def test_curiosity_and_rnd_ignore_ends(kind: str) -> None:
    made = trainer("ppo", kind)
    assert made._streams.masks_terminal.tolist() == [True, False]  # type: ignore[attr-defined]  # every trainer has them


def test_gail_learns_to_distinguish_demonstrations_from_other_steps() -> None:
    """They are drawn with replacement, from all of them."""
    made = trainer("ppo", "gail with actions", learning_rate=0.01)
    signal = signal_of(made)
    shown = signal._demonstrations
    steps = steps_of(made)
    moved = replace(steps, observations=tuple(column + 1 for column in steps.observations))
    numbers = [signal.update(moved) for _ in range(150)]
    assert number(numbers[-1]["Policy/GAIL Expert Estimate"]) > 0.65
    assert number(numbers[-1]["Policy/GAIL Policy Estimate"]) < 0.35
    assert number(numbers[-1]["Losses/GAIL Loss"]) < number(numbers[0]["Losses/GAIL Loss"])
    assert {len(rows) for rows in shown.reads} == {steps.num_rows}
    assert set(np.concatenate(shown.reads).tolist()) == set(range(shown.num_steps))
    paid = signal.evaluate_transitions(shown.transitions(np.arange(shown.num_steps), with_next=False))
    assert paid.mean() > 3 * signal.evaluate_transitions(moved).mean()


def test_the_discriminators_gradient_is_kept_near_one() -> None:
    """Without the penalty, it would be as steep as it takes."""
    made = trainer("ppo", "gail", is_normalized=False, learning_rate=0.01)
    signal, steps = signal_of(made), steps_of(made)
    moved = replace(steps, observations=tuple(column + 0.2 for column in steps.observations))
    for _ in range(200):
        signal.update(moved)
    rows = seen(moved).requires_grad_()
    networks = network_of(made)
    estimate = torch.sigmoid(layer(networks, "judge", body(networks, "core.layers", rows))).sum()
    (gradient,) = torch.autograd.grad(estimate, rows)
    assert gradient.norm(dim=1).max() < 2


def test_vail_lets_information_cost_more_while_there_is_too_much() -> None:
    made = trainer("ppo", "vail", learning_rate=0.01)
    signal, steps = signal_of(made), steps_of(made)
    found: list[Mapping[str, Any]] = [signal.update(steps) for _ in range(100)]
    information = [number(each["Losses/GAIL KL Loss"]) for each in found]
    betas = [0.0, *(number(each["Policy/GAIL Beta"]) for each in found)]
    for before, after, nats in zip(betas, betas[1:], information, strict=False):
        assert after == pytest.approx(max(before + 5e-4 * (nats - 0.5), 0.0), abs=1e-8)
    assert float(network_of(made)["beta"]) == pytest.approx(betas[-1])
    assert max(betas) > 0


@pytest.mark.parametrize("kind", ["curiosity", "rnd"])
def test_what_was_seen_often_is_paid_less(kind: str) -> None:
    made = trainer("ppo", kind, learning_rate=0.01, is_normalized=False)
    steps, signal = steps_of(made), signal_of(made)
    other = replace(
        steps,
        observations=tuple(column + 3 for column in steps.observations),
        next_observations=tuple(-column - 3 for column in steps.next_observations),
    )
    signal.update(steps)
    before = signal.evaluate_transitions(steps).mean()
    for _ in range(200):
        signal.update(steps)
    assert signal.evaluate_transitions(steps).mean() < 0.5 * before
    assert signal.evaluate_transitions(other).mean() > 4 * signal.evaluate_transitions(steps).mean()
