"""What every registered trainer and reward signal keeps to."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from rl_tui.engine import registry
from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.plugin_settings import supported_names
from rl_tui.engine.config.plugins import BASES
from rl_tui.engine.config.reward_signals import reward_signal_settings
from rl_tui.engine.errors import CheckpointError, PluginError
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.learning.rewards.base import RewardContext, RewardSignal
from rl_tui.engine.learning.trainer import Metrics, Trainer, always, make_trainer
from rl_tui.engine.specs import Ending, State, Trajectories
from tests.fakes import RandomPolicy
from tests.learning.demonstrations import random_demonstrations
from tests.learning.rollouts import SPEC, acted

CPU = torch.device("cpu")


def supported(kind: str) -> list[str]:
    """Every name that something implements."""
    return supported_names(kind, BASES[kind])


def trainer(name: str, seed: int = 0) -> Trainer:
    """A small one."""
    own = {"sac": {"buffer_size": 64, "save_replay_buffer": True}, "bc": {"demo_path": "walks.demo"}}
    config = BehaviorConfig.model_validate(
        {
            "trainer_type": name,
            "hyperparameters": {"batch_size": 16} | own.get(name, {"buffer_size": 64}),
            "network_settings": {"hidden_units": 8, "num_layers": 1, "normalize": True},
            "normalize_reward": True,
        }
    )
    made: Trainer = registry.implementation("trainers", name)(SPEC, config, seed, CPU)
    made.use_demonstrations({"walks.demo": random_demonstrations(SPEC, [20] * 6)})
    return made


def experience(of: Trainer, seed: int = 0) -> Trajectories:
    """More than enough for an update."""
    policy, lengths = of.make_policy(seed), [of.time_horizon] * (1 + 64 // of.time_horizon)
    return acted(policy, np.random.default_rng(seed), lengths, masked=True, ending=Ending.TERMINATED)


def same(first: State, second: State) -> bool:
    assert first.tensors.keys() == second.tensors.keys()
    tensors = all(np.array_equal(array, second.tensors[name]) for name, array in first.tensors.items())
    return tensors and first.values == second.values


@pytest.mark.parametrize("name", supported("trainers"))
def test_a_trainer_learns_when_it_is_ready_and_shows_numbers_by_tag(name: str) -> None:
    made = trainer(name)
    assert made.is_ready() == (name == "bc")  # which needs no experience
    assert made.num_parameters > 0
    assert made.replay_bytes >= 0
    samples = made.add(experience(made))
    assert all(samples.values())
    assert made.is_ready()
    metrics = made.update(100)
    assert made.num_updates == 1
    for tag, value in [*((tag, value) for tag, values in samples.items() for value in values), *metrics.items()]:
        kind, slash, rest = tag.partition("/")
        assert kind in ("Losses", "Policy", "Environment", "Time"), tag
        assert slash
        assert rest
        assert isinstance(value, float)
        assert np.isfinite(value), tag


@pytest.mark.parametrize("name", supported("trainers"))
def test_a_trainers_state_is_a_copy_that_another_continues_from(name: str) -> None:
    first, second = trainer(name, 0), trainer(name, 1)
    first.add(experience(first))
    first.update(100)
    state, replay = first.state(), first.replay()
    kept = through_a_file(state)
    assert not same(first.state(), second.state())
    second.load(kept)
    if replay is not None:
        second.load_replay(through_a_file(replay))
    assert same(first.state(), second.state())
    assert second.num_updates == 1
    block = experience(first, 3)
    for each in (first, second):
        each.add(block)
        each.update(200)
    assert same(first.state(), second.state())
    assert same(state, kept)
    assert not same(first.state(), kept)


def through_a_file(state: State) -> State:
    """As it comes back: a copy, and what JSON makes of the values."""
    tensors = {tensor: array.copy() for tensor, array in state.tensors.items()}
    return State(tensors, json.loads(json.dumps(state.values)))


@pytest.mark.parametrize("name", supported("trainers"))
def test_asking_for_the_loss_changes_nothing(name: str) -> None:
    queried, other = trainer(name), trainer(name)
    block = experience(queried)
    for each in (queried, other):
        each.add(block)
        each.update(100)
    state, more = through_a_file(queried.state()), experience(queried, 4)
    losses = queried.loss(more)
    assert losses == queried.loss(more)
    assert losses != queried.loss(block)
    assert ("Losses/Cloning Loss" if name == "bc" else "Losses/Policy Loss") in losses
    assert np.isfinite(list(losses.values())).all()
    assert same(queried.state(), state)
    for each in (queried, other):
        each.add(more)
        each.update(200)
    assert same(queried.state(), other.state())


@pytest.mark.parametrize("name", supported("trainers"))
def test_a_new_policy_acts_with_the_newest_weights(name: str) -> None:
    made = trainer(name)
    old = made.make_policy(0)
    made.add(experience(made))
    made.update(100)
    new, weights = made.make_policy(0), made.weights()
    assert old.version < new.version == weights.version
    assert all(array.dtype == np.float32 for array in weights.arrays.values())
    old.load(weights)
    old.load_state(new.state())
    block = [acted(policy, np.random.default_rng(1), [30]) for policy in (old, new)]
    np.testing.assert_array_equal(block[0].log_probs, block[1].log_probs)


@pytest.mark.parametrize("name", supported("reward_signals"))
@pytest.mark.parametrize("normalize", [False, True])
def test_a_reward_signal_gives_one_finite_reward_a_row_and_continues_from_its_state(name: str, normalize: bool) -> None:
    context = RewardContext(SPEC, BehaviorConfig.model_validate({"normalize_reward": normalize}), 0, CPU)
    kind = reward_signal_settings(name)
    settings = kind.model_validate({"demo_path": "a.demo"} if "demo_path" in kind.model_fields else {})
    first, second = (registry.implementation("reward_signals", name)(settings, context) for _ in range(2))
    assert isinstance(first, RewardSignal)
    block = acted(RandomPolicy(SPEC.actions), np.random.default_rng(0), [3, 1], SPEC)
    rewards = first.evaluate(block)
    assert rewards.shape == (4,)
    assert rewards.dtype == np.float32
    assert np.isfinite(rewards).all()
    state = first.state()
    second.load(State(state.tensors, json.loads(json.dumps(state.values))))
    np.testing.assert_array_equal(first.evaluate(block), second.evaluate(block))


@pytest.mark.parametrize(
    ("kind", "protocol"), [("trainers", Trainer), ("reward_signals", RewardSignal)], ids=["trainers", "reward_signals"]
)
def test_a_plug_in_has_every_method_of_its_protocol_with_the_same_arguments(kind: str, protocol: type) -> None:
    for name in supported(kind):
        found = registry.implementation(kind, name)
        for method, promised in inspect.getmembers(protocol, inspect.isfunction):
            if not method.startswith("_"):
                arguments = list(inspect.signature(promised).parameters)
                assert list(inspect.signature(getattr(found, method)).parameters) == arguments, f"{name}.{method}"


class Everything(PPOTrainer):
    """A trainer that is complete, of which others lack something."""


class Lacking(Everything):
    update = None  # type: ignore[assignment]


class Derived(Trainer):
    def __init__(self, *_: object) -> None:
        self.is_on_policy = True

    def is_ready(self) -> bool:
        return False

    def update(self, step: int, should_continue: Callable[[], bool] = always) -> Metrics:
        return {}


class WithoutNumbers(Everything):
    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        del self.time_horizon


@pytest.mark.parametrize(
    ("kind", "lacks"),
    [
        (Lacking, "update()"),
        (WithoutNumbers, "time_horizon"),
        (
            Derived,
            "add(), hyperparameters(), load(), loss(), make_policy(), set_hyperparameter(), state(), weights()",
        ),
    ],
)
def test_trainer_that_lacks_something_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, kind: type, lacks: str
) -> None:
    registered = registry.implementation
    monkeypatch.setattr(registry, "implementation", lambda *of: kind if of[0] == "trainers" else registered(*of))
    config = BehaviorConfig.model_validate({"trainer_type": "ppo"})
    with pytest.raises(PluginError) as refused:
        make_trainer(SPEC, config, 0, torch.device("cpu"))
    assert str(refused.value) == f"trainers: {kind.__module__}.{kind.__qualname__} must have {lacks}"


def test_trainer_without_a_replay_buffer_need_not_say_so() -> None:
    complete = type("Complete", (Derived,), dict.fromkeys(Trainer.__abstractmethods__))
    made = complete()
    assert (made.replay_bytes, made.replay()) == (0, None)
    with pytest.raises(CheckpointError, match="no replay buffer"):
        made.load_replay(State())
