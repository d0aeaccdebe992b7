"""Presets of tasks that ML-Agents' defaults do not solve are learned, from fixed seeds, in one thread."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from rl_tui.engine.config.loading import load_config
from rl_tui.engine.learning.bc.trainer import BCTrainer
from rl_tui.engine.running.environments import named_environments
from rl_tui.engine.running.imitated import opened_for
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.specs import BehaviorSpec
from tests.learning.test_it_learns import mean_return, train

CONFIGS = Path(__file__).parents[2] / "config"


def earned(preset: str, max_steps: int, num_episodes: int, device: torch.device) -> float:
    """The mean return after so many steps with the settings of a preset."""
    run = load_config(CONFIGS / f"{preset}.yaml")
    [named] = named_environments(run)
    [config] = run.behaviors.values()

    def copies() -> list[Environment]:
        return named.source.make(0, run.env_settings.num_envs)

    demonstrations = opened_for(_spec(copies()), config, _ignored)
    trained = train(copies(), config, max_steps, 1, device, demonstrations)
    return mean_return(copies(), trained.make_policy(1), num_episodes, seed=2)


def _spec(environments: list[Environment]) -> BehaviorSpec:
    [spec] = environments[0].specs.values()
    return spec


def _ignored(line: str) -> None:
    """A line of the log."""


@pytest.mark.slow
@pytest.mark.learning
def test_mountain_car_reaches_the_top_with_ppo(torch_device: torch.device) -> None:
    assert earned("ppo/MountainCarContinuous", 10_000, 48, torch_device) > 90


@pytest.mark.slow
@pytest.mark.learning
def test_mountain_car_reaches_the_top_with_sac(torch_device: torch.device) -> None:
    assert earned("sac/MountainCarContinuous", 3000, 30, torch_device) > 88


@pytest.mark.learning
@pytest.mark.faults
def test_the_slippery_lake_is_crossed_seven_times_of_ten(torch_device: torch.device) -> None:
    assert earned("ppo/FrozenLake", 300_000, 1008, torch_device) > 0.66


@pytest.mark.slow
@pytest.mark.learning
def test_curious_agents_get_through_the_rooms(torch_device: torch.device) -> None:
    assert earned("ppo/Rooms", 200_000, 64, torch_device) > 0.9


@pytest.mark.slow
@pytest.mark.learning
def test_agents_that_were_shown_the_way_get_through_the_rooms_without_a_reward(torch_device: torch.device) -> None:
    assert earned("ppo/RoomsGAIL", 300_000, 64, torch_device) > 0.9


@pytest.mark.learning
def test_cart_pole_balances_from_demonstrations_alone(torch_device: torch.device) -> None:
    run = load_config(CONFIGS / "bc" / "CartPole.yaml")
    [named] = named_environments(run)
    config, copies = run.behaviors["CartPole"], named.source.make(0, 10)
    spec = _spec(copies)
    bc = BCTrainer(spec, config, 1, torch_device)
    bc.use_demonstrations(opened_for(spec, config, _ignored))
    for step in range(0, config.max_steps, bc.rows_per_update):
        bc.update(step)
    assert mean_return(copies, bc.make_policy(1, is_greedy=True), 50, seed=2) > 475
