"""Presets in which several agents act are learned, from fixed seeds, in one thread."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from rl_tui.engine.config.adaptation import Adaptation
from rl_tui.engine.config.loading import load_config
from rl_tui.engine.running.environments import named_environments
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.pettingzoo.kind import loop_of
from tests.learning.test_it_learns import mean_return, toy_config, train
from tests.sampling.environments.pettingzoo.worlds import Nim

CONFIGS = Path(__file__).parents[2] / "config" / "ppo"


def earned(preset: str, max_steps: int, num_episodes: int, device: torch.device) -> tuple[float, float]:
    """The mean return before and after so many steps with the settings of a preset."""
    run = load_config(CONFIGS / f"{preset}.yaml")
    [named] = named_environments(run)
    config = run.behaviors[preset]

    def copies() -> list[Environment]:
        return named.source.make(0, run.env_settings.num_envs)

    before = train(copies(), config, 0, 1, device)
    after = train(copies(), config, max_steps, 1, device)
    return tuple(mean_return(copies(), ppo.make_policy(1), num_episodes, seed=2) for ppo in (before, after))


@pytest.mark.learning
def test_a_game_with_masks_is_won_against_a_random_player(torch_device: torch.device) -> None:
    """Who takes the last of seven stones has won: one that leaves four always does."""

    def copies() -> list[Environment]:
        return [loop_of("nim", "Nim", [Nim(7) for _ in range(16)], Adaptation(random_agents=["player_1"]))]

    before, after = (train(copies(), toy_config(), steps, 1, torch_device) for steps in (0, 3000))
    assert mean_return(copies(), before.make_policy(1), 200, seed=2) < 0.3
    assert mean_return(copies(), after.make_policy(1), 200, seed=2) > 0.6  # a move of the other costs 0.25


@pytest.mark.learning
@pytest.mark.faults
def test_connect_four_is_won_nine_times_of_ten_against_a_random_player(torch_device: torch.device) -> None:
    """Games won less games lost; draws are rare."""
    _, after = earned("ConnectFour", 100_000, 500, torch_device)
    assert after > 0.8


@pytest.mark.learning
@pytest.mark.faults
def test_three_agents_with_one_policy_learn_to_spread(torch_device: torch.device) -> None:
    before, after = earned("SimpleSpread", 100_000, 200, torch_device)
    assert before < -24
    assert after > -23
