"""Presets of tasks that ML-Agents' defaults do not solve are learned, from fixed seeds, in one thread."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from rl_tui.engine.config.loading import load_config
from rl_tui.engine.running.environments import named_environments
from rl_tui.engine.sampling.environments.base import Environment
from tests.learning.test_it_learns import mean_return, train

CONFIGS = Path(__file__).parents[2] / "config"


def earned(preset: str, max_steps: int, num_episodes: int, device: torch.device) -> float:
    """The mean return after so many steps with the settings of a preset."""
    run = load_config(CONFIGS / f"{preset}.yaml")
    [named] = named_environments(run)
    [config] = run.behaviors.values()

    def copies() -> list[Environment]:
        return named.source.make(0, run.env_settings.num_envs)

    return mean_return(copies(), train(copies(), config, max_steps, 1, device).make_policy(1), num_episodes, seed=2)


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
