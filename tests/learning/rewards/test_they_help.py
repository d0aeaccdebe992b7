"""Learned rewards find what the environment's own reward does not lead to, from fixed seeds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.demonstrations import Demonstrations
from rl_tui.engine.learning.trainer import Trainer
from rl_tui.engine.sampling.environments.base import Environment
from tests.learning.demonstrations import recorded
from tests.learning.experts import TASKS
from tests.learning.rewards.rooms import rooms, shown
from tests.learning.test_it_learns import mean_return, train

CPU = torch.device("cpu")
NETWORK = {"hidden_units": 64, "num_layers": 2}
GAIL = {"demo_path": "shown", "gamma": 0.9, "learning_rate": 1e-3, "use_actions": True, "ignore_dones": True}


def config(signals: Mapping[str, Mapping[str, object]], max_steps: int, **hyper: object) -> BehaviorConfig:
    """PPO with these signals, whose networks are as large as its own."""
    known = {"batch_size": 256, "buffer_size": 2048, "num_epoch": 4, "learning_rate": 1e-3, "beta": 0.01}
    own = {
        name: settings if name == "extrinsic" else {"network_settings": NETWORK, **settings}
        for name, settings in signals.items()
    }
    return BehaviorConfig.model_validate(
        {
            "hyperparameters": known | {"learning_rate_schedule": "constant"} | hyper,
            "network_settings": NETWORK,
            "reward_signals": own,
            "time_horizon": 128,
            "max_steps": max_steps,
        }
    )


def imitated(environments: list[Environment], demonstrations: Demonstrations, max_steps: int, seed: int) -> Trainer:
    """What was learned by GAIL alone, from these demonstrations."""
    return train(environments, config({"gail": GAIL}, max_steps), max_steps, seed, CPU, {"shown": demonstrations})


EXPLORING: dict[str, dict[str, dict[str, object]]] = {
    "extrinsic alone": {},
    "curiosity": {"curiosity": {"strength": 0.1, "learning_rate": 3e-3}},
    "rnd": {"rnd": {"strength": 0.1, "learning_rate": 3e-4}},
}


@pytest.mark.learning
@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("kind", EXPLORING)
def test_eight_rooms_are_crossed_only_by_those_who_are_curious(kind: str, seed: int) -> None:
    """200,000 steps. The only reward is 74 steps away, behind seven doors."""
    settings = config({"extrinsic": {}, **EXPLORING[kind]}, 200_000, buffer_size=1024)
    trainer = train(rooms(16, 8), settings, settings.max_steps, seed, CPU)
    found = mean_return(rooms(16, 8), trainer.make_policy(seed), 64, seed)
    assert found < 0.05 if kind == "extrinsic alone" else found > 0.9


@pytest.mark.learning
@pytest.mark.parametrize("kind", EXPLORING)
def test_four_rooms_are_crossed_only_by_those_who_are_curious(kind: str) -> None:
    settings = config({"extrinsic": {}, **EXPLORING[kind]}, 80_000, buffer_size=1024)
    trainer = train(rooms(16, 4), settings, settings.max_steps, 1, CPU)
    found = mean_return(rooms(16, 4), trainer.make_policy(1), 64, 1)
    assert found < 0.1 if kind == "extrinsic alone" else found > 0.9


@pytest.mark.learning
@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_gail_goes_through_four_rooms_as_ten_demonstrations_do(seed: int) -> None:
    """By its own reward alone, in 300,000 steps: without `ignore_dones`, staying alive would pay more than arriving."""
    trainer = imitated(rooms(16, 4), recorded(shown(4, 10)), 300_000, seed)
    assert mean_return(rooms(16, 4), trainer.make_policy(seed), 64, seed) > 0.9


@pytest.mark.learning
@pytest.mark.slow
def test_gail_from_a_random_policy_goes_nowhere() -> None:
    trainer = imitated(rooms(16, 4), recorded(shown(4, 10, is_random=True)), 100_000, 1)
    assert mean_return(rooms(16, 4), trainer.make_policy(1), 64, 1) < 0.3


@pytest.mark.learning
@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_gail_swings_the_arm_up_as_ten_demonstrations_do(seed: int, tmp_path: Path) -> None:
    """By its own reward alone: 0 is the return of chance, which never gets there, and 1 that of the expert."""
    task = TASKS["acrobot"]
    trainer = imitated(task.copies(16), task.record(task.expert, 10, tmp_path / "shown.demo"), 100_000, seed)
    assert task.score(trainer.make_policy(seed)) >= 0.9


@pytest.mark.learning
@pytest.mark.slow
def test_gail_from_chance_does_not_swing_the_arm_up(tmp_path: Path) -> None:
    task = TASKS["acrobot"]
    trainer = imitated(task.copies(16), task.record(task.by_chance(), 10, tmp_path / "shown.demo"), 100_000, 1)
    assert task.score(trainer.make_policy(1)) < 0.3
