"""The settings of a run without a file: chosen by what the environment's behaviors observe and do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import pytest

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.environment_name import short_name
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.errors import ConfigError, EnvironmentFailure
from rl_tui.engine.learning.ppo.settings import PPOSettings
from rl_tui.engine.running.profiles import profiled_config

HERE = __name__


class World(gymnasium.Env[Any, Any]):
    """Shows its step, and has these spaces."""

    def __init__(self, observation: gymnasium.Space[Any], action: gymnasium.Space[Any]) -> None:
        self.observation_space, self.action_space = observation, action

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.observation_space.sample(), 0.0, False, True, {}


CHOICE, NUMBERS = gymnasium.spaces.Discrete(2), gymnasium.spaces.Box(-1, 1, (2,))


def of_choices() -> World:
    return World(gymnasium.spaces.Discrete(500), gymnasium.spaces.MultiDiscrete([2, 3]))


def of_speeds() -> World:
    return World(gymnasium.spaces.Box(-np.inf, np.inf, (3,)), NUMBERS)


def of_pixels() -> World:
    return World(gymnasium.spaces.Box(0, 255, (40, 40, 3), np.uint8), CHOICE)


def of_few_pixels() -> World:
    return World(gymnasium.spaces.Box(0, 255, (30, 30, 3), np.uint8), CHOICE)


def unable() -> World:
    raise RuntimeError("no license")


def config_for(env: object, trainer: str = "ppo", **settings: object) -> RunConfig:
    further = {f"env_settings.{key}": value for key, value in settings.items()}
    return profiled_config(trainer, {"env_settings.env": env, **further})


def only(config: RunConfig) -> BehaviorConfig:
    (behavior,) = config.behaviors.values()
    return behavior


def summary(behavior: BehaviorConfig) -> tuple[float, bool, bool, str]:
    """Entropy bonus, normalized observations, normalized rewards, encoder of images."""
    assert isinstance(behavior.hyperparameters, PPOSettings)
    network = behavior.network_settings
    return behavior.hyperparameters.beta, network.normalize, behavior.normalize_reward, network.vis_encode_type


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        (f"{HERE}:of_choices", (0.01, False, False, "simple")),
        (f"{HERE}:of_speeds", (0, True, True, "simple")),
        (f"{HERE}:of_pixels", (0.01, False, False, "nature_cnn")),
        (f"{HERE}:of_few_pixels", (0.01, False, False, "simple")),
        ("gymnasium:CartPole-v1", (0.01, True, False, "simple")),
        ("gymnasium:Acrobot-v1", (0.01, True, False, "simple")),
        ("gymnasium:Pendulum-v1", (0, False, True, "simple")),
        ("toy:line", (0.01, True, False, "simple")),
    ],
)
def test_profile_follows_observations_and_actions(env: str, expected: tuple[float, bool, bool, str]) -> None:
    config = config_for(env)
    assert summary(only(config)) == expected
    assert config.env_settings.num_envs == 8
    assert list(config.behaviors) == [short_name(env)] == [config.source.run_name]


@pytest.mark.parametrize(
    ("env", "name"),
    [
        ("gymnasium:CartPole-v1", "CartPole"),
        ("gymnasium:ale_py:ALE/Pong-v5", "Pong"),
        ("gymnasium:my.Own-v12", "my.Own"),
        ("pettingzoo:classic/connect_four_v3", "connect_four"),
        ("pettingzoo:mpe2.simple_spread_v3", "simple_spread"),
        ("my.worlds:Corridor", "Corridor"),
        ("toy:one-step", "one-step"),
    ],
)
def test_behavior_is_named_after_its_environment_without_namespace_and_version(env: str, name: str) -> None:
    assert short_name(env) == name


def test_each_environment_of_a_mapping_has_its_own_settings() -> None:
    config = config_for({"Balance": "gymnasium:CartPole-v1", "Swing": "gymnasium:Pendulum-v1"})
    found = {name: summary(behavior)[1:3] for name, behavior in config.behaviors.items()}
    assert found == {"Balance": (True, False), "Swing": (False, True)}
    assert config.source.run_name == "Balance-Swing"


def test_behaviors_of_several_agents_are_those_of_the_environment() -> None:
    config = config_for("pettingzoo:mpe2.simple_speaker_listener_v4")
    assert sorted(config.behaviors) == ["listener", "speaker"]
    assert config.default_settings is not None  # for those that appear later
    assert summary(config.behaviors["speaker"])[1] is True


def test_flags_win_over_the_profile_and_reach_the_environment_that_is_looked_at() -> None:
    kwargs = {"continuous": True}
    overrides: Mapping[str, object] = {
        "env_settings.env": "gymnasium:LunarLander-v3",
        "env_settings.env_kwargs": kwargs,
        "env_settings.num_envs": 3,
        "behaviors.LunarLander.max_steps": 7000,
    }
    pytest.importorskip("Box2D", reason="the extra box2d is not installed")
    config = profiled_config("ppo", overrides)
    assert (config.env_settings.num_envs, config.env_settings.env_kwargs) == (3, kwargs)
    assert (only(config).max_steps, only(config).normalize_reward) == (7000, True)


def test_sac_has_a_profile_of_its_own() -> None:
    config = config_for("gymnasium:Pendulum-v1", "sac")
    assert (only(config).trainer_type, config.env_settings.num_envs) == ("sac", 1)


@pytest.mark.parametrize("env", ["unity:builds/3DBall", "unity:editor", "mlagents:my.worlds:make"])
def test_what_was_made_for_mlagents_keeps_its_defaults_and_is_not_started(env: str) -> None:
    config = config_for(env, "sac")
    assert config.default_settings == BehaviorConfig.model_validate({"trainer_type": "sac"})
    assert (config.behaviors, config.source.run_name) == ({}, "sac")
    with pytest.raises(ConfigError, match=r"ppo/gymnasium: is for environments of Gymnasium .* ML-Agents' defaults"):
        profiled_config("ppo", {"env_settings.env": env}, only_profiled=True)


def test_player_beside_another_environment_keeps_mlagents_defaults() -> None:
    config = config_for({"Ball": "builds/3DBall", "Swing": "gymnasium:Pendulum-v1"})
    assert config.behaviors["Ball"] == BehaviorConfig()
    assert (config.behaviors["Swing"].normalize_reward, config.env_settings.num_envs) == (True, 1)


@pytest.mark.parametrize(
    ("overrides", "error", "message"),
    [
        ({}, ConfigError, "ppo/gymnasium: needs the name of an environment"),
        ({"env_settings.env": "gymnasium:CartPol-v1"}, ConfigError, "Did you mean gymnasium:CartPole-v1"),
        ({"env_settings.env": f"{HERE}:unable"}, EnvironmentFailure, "RuntimeError: no license"),
        (
            {"env_settings.env": "gymnasium:CartPole-v1", "behaviors.My.max_steps": 5},
            ConfigError,
            "--set behaviors.My.max_steps: no such behavior. Must be CartPole",
        ),
    ],
)
def test_what_is_wrong_is_said_as_by_a_run(
    overrides: Mapping[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        profiled_config("ppo", overrides, only_profiled=True)
