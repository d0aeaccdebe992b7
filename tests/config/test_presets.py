"""The configurations that come with the program."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import get_args

import pytest

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.loading import load_config
from rl_tui.engine.config.presets import (
    preset_names,
    preset_path,
    presets_in,
    profile_name,
    read_preset,
    trainer_of_profile,
)
from rl_tui.engine.config.profiles import Profile, Trait, read_profile
from rl_tui.engine.config.support import find_unsupported, find_unused, list_warnings
from rl_tui.engine.config.types import read_settings
from rl_tui.engine.learning.ppo.settings import PPOSettings

CONFIG_FOLDER = Path(__file__).parents[2] / "config"


def test_every_file_under_config_is_a_preset() -> None:
    files = sorted(path.relative_to(CONFIG_FOLDER).as_posix() for path in CONFIG_FOLDER.rglob("*.yaml"))
    assert [f"{name}.yaml" for name in preset_names()] == files
    assert {"ppo/Pendulum", "sac/Pendulum"} <= set(preset_names())


def test_presets_of_one_name_differ_by_their_trainer() -> None:
    for trainer in ("ppo", "sac"):
        behaviors = load_config(preset_path(f"{trainer}/Pendulum")).behaviors
        assert [behavior.trainer_type for behavior in behaviors.values()] == [trainer]


@pytest.mark.parametrize("name", [name for name in preset_names() if not trainer_of_profile(name)])
def test_preset_loads_and_can_start_and_has_no_unused_key(name: str) -> None:
    config = load_config(preset_path(name))
    assert find_unsupported(config) == []
    assert find_unused(config) == []
    assert list_warnings(config) == []


def test_presets_of_an_environment_begin_with_those_of_ppo() -> None:
    pendulum = "gymnasium:Pendulum-v1"
    assert presets_in(pendulum) == ["ppo/Pendulum", "sac/Pendulum"]
    assert presets_in(pendulum, "sac") == ["sac/Pendulum"]
    assert presets_in("gymnasium:Pendulum-v0") == []
    assert presets_in("gymnasium:CartPole-v1") == ["ppo/CartPole", "sac/CartPole", "bc/CartPole"]
    assert presets_in("pettingzoo:classic/connect_four_v3") == ["ppo/ConnectFour", "ppo/ConnectFourSelfPlay"]


def test_ppo_and_sac_have_a_profile() -> None:
    for trainer in ("ppo", "sac"):
        assert trainer_of_profile(profile_name(trainer)) == trainer
        assert read_profile(trainer).default["trainer_type"] == trainer
    assert profile_name("poca") == trainer_of_profile("ppo/Pendulum") == trainer_of_profile("gymnasium") == ""
    assert read_profile("poca") == Profile({"trainer_type": "poca"}, {}, {})


@pytest.mark.parametrize("trainer", ["ppo", "sac"])
def test_settings_of_a_profile_are_valid_for_every_kind_of_behavior(trainer: str) -> None:
    profile, traits = read_profile(trainer), get_args(Trait)
    assert set(profile.where) <= set(traits)
    for chosen in (each for size in range(len(traits) + 1) for each in combinations(traits, size)):
        settings, wrong = read_settings(BehaviorConfig, profile.settings_for(chosen))
        assert (wrong, settings is None) == ([], False)


def test_profile_has_the_settings_that_users_of_other_libraries_know() -> None:
    config = BehaviorConfig.model_validate(read_profile("ppo").settings_for(["continuous_actions"]))
    hyper = config.hyperparameters
    assert isinstance(hyper, PPOSettings)
    num_envs = read_profile("ppo").env_settings["num_envs"]
    assert (num_envs, hyper.buffer_size, hyper.batch_size, hyper.num_epoch) == (8, 2048, 64, 10)
    assert num_envs * config.time_horizon == hyper.buffer_size
    assert (hyper.beta, config.normalize_reward, config.network_settings.normalize) == (0, True, False)
    other = BehaviorConfig.model_validate(read_profile("ppo").settings_for(["discrete_actions", "large_observations"]))
    assert (other.normalize_reward, other.network_settings.normalize) == (False, True)


def test_cartpole_has_the_settings_of_the_zoo() -> None:
    config = load_config(preset_path("ppo/CartPole"))
    behavior = config.behaviors["CartPole"]
    hyper = behavior.hyperparameters
    assert isinstance(hyper, PPOSettings)
    assert config.env_settings.env == "gymnasium:CartPole-v1"
    assert hyper.buffer_size == config.env_settings.num_envs * behavior.time_horizon == hyper.batch_size
    assert (hyper.learning_rate, hyper.learning_rate_schedule, hyper.epsilon_schedule) == (1e-3, "linear", "linear")
    assert (hyper.joint_ratio, hyper.normalize_advantage, hyper.value_clip) == (True, "minibatch", None)
    assert behavior.reward_signals["extrinsic"].gamma == 0.98
    assert behavior.network_settings.activation == "tanh"


def test_preset_is_read_with_its_comments() -> None:
    text = read_preset("ppo/CartPole")
    assert text == read_preset("ppo/CartPole.yaml") == (CONFIG_FOLDER / "ppo/CartPole.yaml").read_text("utf-8")
    assert text.startswith("# CartPole-v1")
