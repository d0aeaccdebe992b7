"""From a file and flags to settings: what is accepted, what it means, and what every refusal says."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_tui.engine.config.behavior import BehaviorConfig, EvaluationSettings
from rl_tui.engine.config.environment_parameters import CurriculumSettings, MultiRangeUniformSampler, UniformSampler
from rl_tui.engine.config.loading import effective_yaml, load_config, parse_config
from rl_tui.engine.config.run import EnvSettings, RunConfig
from rl_tui.engine.config.schema import json_schema
from rl_tui.engine.config.support import find_unsupported, list_warnings
from rl_tui.engine.config.types import OFF
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.learning.ppo.settings import PPOSettings
from rl_tui.engine.learning.rewards.settings import GAILSettings, RNDSettings
from rl_tui.engine.learning.sac.settings import PrioritizedReplaySettings, SACSettings
from tests.packages import Packages

MLAGENTS = os.environ.get("MLAGENTS_DATA")
MLAGENTS_FILES = sorted(Path(MLAGENTS).rglob("*.yaml")) if MLAGENTS else []
MLAGENTS_SAC = (
    *("learning_rate", "learning_rate_schedule", "batch_size", "buffer_size", "buffer_init_steps", "tau"),
    *("steps_per_update", "save_replay_buffer", "init_entcoef", "reward_signal_steps_per_update"),
)
needs_mlagents = pytest.mark.skipif(not MLAGENTS, reason="MLAGENTS_DATA names no folder of ML-Agents' files")


def parse(text: str, overrides: Mapping[str, object] | None = None) -> RunConfig:
    return parse_config(text.encode(), "c.yaml", overrides)


def errors(text: str, overrides: Mapping[str, object] | None = None) -> list[str]:
    with pytest.raises(ConfigError) as error:
        parse(text, overrides)
    return str(error.value).split("\n")


def sac(config: RunConfig) -> SACSettings:
    hyperparameters = config.behaviors["A"].hyperparameters
    assert isinstance(hyperparameters, SACSettings)
    return hyperparameters


def ppo(config: RunConfig, name: str) -> PPOSettings:
    hyperparameters = config.behaviors[name].hyperparameters
    assert isinstance(hyperparameters, PPOSettings)
    return hyperparameters


# What a file means


@needs_mlagents
@pytest.mark.parametrize("path", MLAGENTS_FILES, ids=lambda path: "/".join(path.parts[-2:]))
def test_file_of_mlagents_loads_and_survives_being_written(path: Path) -> None:
    config = load_config(path)
    written = effective_yaml(config)
    again = parse(written)
    assert again.model_dump() == config.model_dump()
    assert effective_yaml(again) == written
    assert list_warnings(config) == []


@needs_mlagents
def test_effective_configuration_keeps_the_order_of_mlagents() -> None:
    """Without our additions, the text of a run's own configuration.yaml comes back line by line."""
    path = Path(str(MLAGENTS)) / "results/first3DBallRun/configuration.yaml"
    ours = effective_yaml(load_config(path)).replace("time_scale: 20.0", "time_scale: 20").splitlines()
    theirs = path.read_text("utf-8").splitlines()
    added = [line.split(":")[0].strip() for line in ours if line not in theirs]
    assert [line for line in ours if line in theirs] == theirs
    assert set(added) == {
        *("max_grad_norm", "value_coefficient", "value_clip", "target_kl", "joint_ratio", "normalize_advantage"),
        *("writers", "tensorboard"),
        *(
            "adam_epsilon",
            "activation",
            "precision",
            "encoder_settings",
            "normalize_reward",
            "evaluation",
            "export_interval",
            "checkpoint_seconds",
        ),
        *("export_policies", "throughput_interval", "env", "env_kwargs", "num_workers", "metrics", "resume_or_start"),
        *("training_analytics", "behaviors", "random_agents", "parameters", "wrappers"),
    }


def test_empty_behavior_has_the_defaults_of_mlagents() -> None:
    behavior = parse("behaviors: {A: {}}").behaviors["A"]
    assert behavior == BehaviorConfig()
    assert isinstance(behavior.hyperparameters, PPOSettings)
    assert (behavior.hyperparameters.batch_size, behavior.hyperparameters.buffer_size) == (1024, 10240)
    assert (behavior.max_steps, behavior.summary_freq, behavior.checkpoint_interval) == (500000, 50000, 500000)
    assert list(behavior.reward_signals) == ["extrinsic"]
    assert behavior.reward_signals["extrinsic"].gamma == 0.99
    assert (behavior.self_play, behavior.behavioral_cloning, behavior.network_settings.memory) == (None, None, None)


def test_trainer_type_chooses_the_hyperparameters() -> None:
    config = parse(
        "behaviors: {A: {trainer_type: sac, hyperparameters: {steps_per_update: 10}}, B: {trainer_type: sac}}"
    )
    sac = config.behaviors["A"].hyperparameters
    assert isinstance(sac, SACSettings)
    assert (sac.steps_per_update, sac.reward_signal_steps_per_update, sac.buffer_size) == (10.0, 10.0, 50000)
    assert isinstance(config.behaviors["B"].hyperparameters, SACSettings)


PLUG_IN = """
from typing import ClassVar
from rl_tui.engine.config.hyperparameters import Hyperparameters, Schedule

class OtherSettings(Hyperparameters):
    implementation: ClassVar = "other:Other"
    batch_size: int = 4
    buffer_size: int = 8
    learning_rate: float = 0.5
    learning_rate_schedule: Schedule = "constant"
    patience: int = 3
"""


def test_trainer_type_may_be_any_installed_trainer(packages: Packages) -> None:
    packages.install("other", PLUG_IN, trainers="other = other:OtherSettings")
    config = parse("behaviors: {A: {trainer_type: other, hyperparameters: {patience: 7}}}")
    assert config.behaviors["A"].hyperparameters.model_dump()["patience"] == 7
    assert parse(effective_yaml(config)).model_dump() == config.model_dump()
    assert not any("trainer other" in line for line in find_unsupported(config))
    wrong = "behaviors: {A: {trainer_type: other, hyperparameters: {patienc: 7}, patience: 1}}"
    assert [line.split(": ", 1)[1] for line in errors(wrong)] == [
        "behaviors.A.hyperparameters.patienc: unknown key. Did you mean patience?",
        "behaviors.A.patience: unknown key. Did you mean hyperparameters.patience?",
    ]
    definitions = json_schema()["$defs"]
    assert isinstance(definitions, dict)
    assert "OtherSettings" in definitions
    [line] = errors("behaviors: {A: {trainer_type: othr}}")
    assert line == (
        'c.yaml:1:31: behaviors.A.trainer_type: must be ppo, sac or other, got "othr". Did you mean other? '
        "`rl-tui plugins` lists what is installed"
    )


@pytest.mark.parametrize("trainer", ["ppo", "poca"])
def test_beta_and_epsilon_follow_the_schedule_of_the_learning_rate(trainer: str) -> None:
    text = "behaviors: {A: {trainer_type: %s, hyperparameters: {%s}}}"
    for written, expected in [
        ("", ("linear", "linear", "linear")),
        ("learning_rate_schedule: constant", ("constant", "constant", "constant")),
        ("learning_rate_schedule: constant, beta_schedule: linear", ("constant", "linear", "constant")),
        ("epsilon_schedule: constant", ("linear", "linear", "constant")),
    ]:
        hyper = parse(text % (trainer, written)).behaviors["A"].hyperparameters.model_dump()
        found = (hyper["learning_rate_schedule"], hyper["beta_schedule"], hyper["epsilon_schedule"])
        assert found == expected


def test_whole_numbers_may_be_written_as_floats() -> None:
    config = parse("behaviors: {A: {max_steps: 5.0e6, summary_freq: 1e5, keep_checkpoints: -1.0}}")
    behavior = config.behaviors["A"]
    assert (behavior.max_steps, behavior.summary_freq, behavior.keep_checkpoints) == (5_000_000, 100_000, -1)
    assert all(isinstance(value, int) for value in (behavior.max_steps, behavior.summary_freq))


def test_floats_may_be_written_as_whole_numbers() -> None:
    strength = parse("behaviors: {A: {reward_signals: {extrinsic: {strength: 2}}}}").behaviors["A"].reward_signals
    assert (strength["extrinsic"].strength, type(strength["extrinsic"].strength)) == (2.0, float)


def test_reward_signals_replace_the_default_and_keep_their_order() -> None:
    text = "behaviors: {A: {reward_signals: {rnd: {}, gail: {demo_path: d}, extrinsic: {}}}}"
    signals = parse(text).behaviors["A"].reward_signals
    assert list(signals) == ["rnd", "gail", "extrinsic"]
    assert isinstance(signals["gail"], GAILSettings)
    assert isinstance(signals["rnd"], RNDSettings)
    assert (signals["gail"].learning_rate, signals["rnd"].learning_rate) == (3e-4, 1e-4)
    assert list(parse("behaviors: {A: {reward_signals: {rnd: {}}}}").behaviors["A"].reward_signals) == ["rnd"]


def test_self_play_changes_teams_after_five_snapshots() -> None:
    self_play = parse("behaviors: {A: {self_play: {save_steps: 100}}}").behaviors["A"].self_play
    assert self_play is not None
    assert (self_play.team_change, self_play.initial_elo) == (500, 1200.0)


def test_even_checkpoints_divide_max_steps() -> None:
    text = "behaviors: {A: {even_checkpoints: true, max_steps: 1000, keep_checkpoints: 3, checkpoint_interval: 7}}"
    assert parse(text).behaviors["A"].checkpoint_interval == 333


def test_environment_parameters_are_numbers_samplers_or_curricula() -> None:
    text = """
environment_parameters:
  gravity: -9
  wind: {sampler_type: uniform, sampler_parameters: {min_value: 1, max_value: 2.5}}
  mass: {sampler_type: multirangeuniform, sampler_parameters: {intervals: [[1, 2], [3, 4.5]]}}
  tiles:
    curriculum:
      - {name: few, value: 2, completion_criteria: {behavior: A, measure: progress, threshold: 0.5}}
      - {name: many, value: {sampler_type: gaussian, sampler_parameters: {}}}
"""
    parameters = parse(text).environment_parameters
    assert parameters is not None
    assert (parameters["gravity"], type(parameters["gravity"])) == (-9.0, float)
    assert isinstance(parameters["wind"], UniformSampler)
    assert isinstance(parameters["mass"], MultiRangeUniformSampler)
    assert parameters["mass"].sampler_parameters.intervals == [[1.0, 2.0], [3.0, 4.5]]
    assert isinstance(parameters["tiles"], CurriculumSettings)
    assert parse(effective_yaml(parse(text))).environment_parameters == parameters


def test_additions_default_to_what_mlagents_does() -> None:
    config = parse("behaviors: {A: {}}")
    hyper = ppo(config, "A")
    assert (hyper.max_grad_norm, hyper.value_coefficient, hyper.value_clip, hyper.target_kl) == (None, 0.5, None, None)
    assert (hyper.joint_ratio, hyper.normalize_advantage, hyper.adam_epsilon) == (False, "buffer", 1e-8)
    assert config.behaviors["A"].normalize_reward is False
    assert config.behaviors["A"].network_settings.activation == "swish"
    assert (config.env_settings.env, config.env_settings.env_kwargs, config.env_settings.num_workers) == (None, {}, 0)


def test_additions_to_sac_are_off_unless_written() -> None:
    text = "behaviors: {A: {trainer_type: sac, hyperparameters: {%s}}}"
    plain = sac(parse(text % ""))
    assert (plain.target_q, plain.n_step, plain.prioritized_replay, plain.target_entropy) == (False, 1, None, None)
    assert (plain.max_grad_norm, plain.adam_epsilon) == (None, 1e-8)
    written = "target_q: true, n_step: 3, prioritized_replay: {beta: 0.5}, target_entropy: -2, max_grad_norm: 5"
    changed = sac(parse(text % written))
    assert changed.prioritized_replay == PrioritizedReplaySettings(alpha=0.6, beta=0.5)
    assert (changed.target_q, changed.n_step, changed.target_entropy, changed.max_grad_norm) == (True, 3, -2.0, 5.0)


def test_evaluations_and_exports_are_off_unless_written() -> None:
    plain = parse("behaviors: {A: {}}").behaviors["A"]
    assert (plain.evaluation, plain.export_interval, plain.export_policies) == (None, None, [])
    text = "behaviors: {A: {evaluation: {}, export_interval: 1e4, export_policies: [raw, greedy]}}"
    config = parse(text)
    written = config.behaviors["A"]
    assert written.evaluation == EvaluationSettings(interval=50000, episodes=10, deterministic=True)
    assert (written.export_interval, written.export_policies) == (10000, ["raw", "greedy"])
    assert parse(effective_yaml(config)).model_dump() == config.model_dump()


def test_checkpoints_may_be_left_to_the_end() -> None:
    by_clock = parse("behaviors:\n  A: {checkpoint_interval: -1}\n")
    assert by_clock.behaviors["A"].checkpoint_seconds == 600
    assert list_warnings(by_clock) == []
    config = parse("behaviors:\n  A: {checkpoint_interval: -1, checkpoint_seconds: -1}\n")
    assert config.behaviors["A"].checkpoint_interval == -1
    assert list_warnings(config) == [
        (
            "c.yaml:2:28: behaviors.A.checkpoint_interval: no checkpoint before the end: "
            "a crash or a power cut then loses everything since the start"
        )
    ]


INTERVALS = (
    "checkpoint_interval",
    "checkpoint_seconds",
    "summary_freq",
    "export_interval",
    "throughput_interval",
    "evaluation.interval",
)


@pytest.mark.parametrize("key", INTERVALS)
def test_every_interval_may_be_off_and_nothing_else_below_one(key: str) -> None:
    for interval in (OFF, 1, 1e5):
        written = parse("behaviors: {A: {evaluation: {}}}", {f"behaviors.A.{key}": interval})
        assert parse(effective_yaml(written)).model_dump() == written.model_dump()
    for interval in (0, -2):
        wrong = errors("behaviors: {A: {evaluation: {}}}", {f"behaviors.A.{key}": interval})
        assert wrong == [f"--set behaviors.A.{key}: must be at least 1, or -1 for never, got {interval}"]


def test_a_run_without_summaries_has_a_warning() -> None:
    text = "no summaries: curves of statistics stay empty, and no warning says that learning goes wrong"
    warnings = list_warnings(parse("behaviors:\n  A: {summary_freq: -1}\n"))
    assert warnings == [f"c.yaml:2:21: behaviors.A.summary_freq: {text}"]


def test_additions_follow_the_settings_of_mlagents_in_the_written_file() -> None:
    text = "behaviors: {A: {trainer_type: sac, evaluation: {}, hyperparameters: {prioritized_replay: {}}}}"
    behavior = parse(text).model_dump()["behaviors"]["A"]
    assert list(behavior)[-7:] == [
        "behavioral_cloning",
        "normalize_reward",
        "evaluation",
        "export_interval",
        "export_policies",
        "throughput_interval",
        "checkpoint_seconds",
    ]
    assert list(behavior["hyperparameters"])[9:] == [
        "reward_signal_steps_per_update",
        "target_q",
        "n_step",
        "prioritized_replay",
        "target_entropy",
        "max_grad_norm",
        "adam_epsilon",
    ]
    assert list(behavior["network_settings"])[-4:] == ["deterministic", "activation", "precision", "encoder_settings"]


@pytest.mark.parametrize(("written", "value"), [("epsilon", "epsilon"), ("null", None), ("1", 1.0), ("0.2", 0.2)])
def test_value_clip_is_the_policys_a_number_or_off(written: str, value: object) -> None:
    config = parse(f"behaviors: {{A: {{trainer_type: ppo, hyperparameters: {{value_clip: {written}}}}}}}")
    assert ppo(config, "A").value_clip == value


@pytest.mark.parametrize(
    "env",
    [
        "gymnasium:CartPole-v1",
        "gymnasium:ALE/Pong-v5",
        "gymnasium:my_package.envs:Thing-v0",
        "my_package.worlds:make",
        "worlds:Maze.small",
        "pettingzoo:mpe/simple_spread_v3",
        "unity:/opt/my player",
        "toy:cart-pole-positions",
    ],
)
def test_environment_is_a_scheme_or_a_factory(env: str) -> None:
    assert parse(f"env_settings: {{env: '{env}'}}").env_settings.env == env


@pytest.mark.parametrize(
    "env",
    [
        "builds/3DBall", "./3DBall.x86_64", "3DBall", "C:\\Games\\Ball.exe", "C:/Ball.exe", "/opt/my player",
        "~/Ball-v2", "./Ball-v1", "../Ball-v1", "builds/a:b",
    ],
)  # fmt: skip
def test_path_names_a_unity_player(env: str) -> None:
    settings = parse("behaviors: {A: {}}", {"env_settings.env": env}).env_settings
    assert settings.env == settings.environment == f"unity:{env}"
    assert parse(f"env_settings: {{env_path: '{env}'}}").env_settings.environment == f"unity:{env}"
    mapped = parse(f"behaviors: {{A: {{}}}}\nenv_settings: {{env: {{A: '{env}'}}}}").env_settings
    assert mapped.environment == {"A": f"unity:{env}"}


def test_editor_is_where_no_environment_is_named() -> None:
    assert parse("behaviors: {A: {}}").env_settings.environment == "unity:editor"
    assert parse("env_settings: {env: editor}").env_settings.environment == "unity:./editor"


@pytest.mark.parametrize("env", ["CartPole-v1", "ALE/Pong-v5", "Ball-v0"])
def test_what_may_be_a_gymnasium_id_or_a_path_is_refused_with_both(env: str) -> None:
    with pytest.raises(ConfigError, match=f"Did you mean gymnasium:{env}, or unity:{env} for a Unity player?"):
        parse("behaviors: {A: {}}", {"env_settings.env": env})


@pytest.mark.parametrize("env", ["env: 'unity:Ball'", "env: Ball", "env_path: Ball"])
def test_arguments_of_players_are_side_channels(env: str) -> None:
    text = "unknown key. Must be one of: side_channels. Other settings of players are in env_settings and engine_set"
    with pytest.raises(ConfigError, match=f"env_settings.env_kwargs.width: {text}"):
        parse(f"env_settings: {{{env}, env_kwargs: {{width: 3}}}}")
    kwargs = {"side_channels": ["a:b"]}
    assert parse(f"env_settings: {{{env}, env_kwargs: {kwargs}}}").env_settings.env_kwargs == kwargs
    assert parse(f"env_settings: {{{env}}}").env_settings.env_kwargs == {}


def test_arguments_of_players_in_a_mapping_are_side_channels() -> None:
    text = "behaviors: {A: {}, B: {}}\nenv_settings: {env: {A: Ball, B: a:b}, env_kwargs: {%s: {width: 3}}}"
    with pytest.raises(ConfigError, match=r"env_settings.env_kwargs.A.width: unknown key"):
        parse(text % "A")
    assert parse(text % "B").env_settings.env_kwargs == {"A": {}, "B": {"width": 3}}


def test_several_environments_are_mapped_by_behavior() -> None:
    text = """
behaviors: {A: {}, B: {}}
env_settings:
  env: {A: gymnasium:A-v1, B: pkg:make}
  env_kwargs: {B: {size: [1, 2], deep: {x: null}}}
"""
    config = parse(text)
    assert config.env_settings.env == {"A": "gymnasium:A-v1", "B": "pkg:make"}
    assert config.env_settings.env_kwargs == {"B": {"size": [1, 2], "deep": {"x": None}}}


def test_settings_are_frozen() -> None:
    config = parse("behaviors: {A: {}}")
    with pytest.raises(ValueError, match="frozen"):
        config.behaviors["A"].max_steps = 3  # type: ignore[misc] # that it is refused is the point


def test_file_may_leave_behaviors_out() -> None:
    assert parse("debug: true").behaviors == {}


# default_settings


DEFAULTS = """
default_settings:
  trainer_type: ppo
  hyperparameters: {batch_size: 64, learning_rate_schedule: constant}
  network_settings: {hidden_units: 32, memory: {memory_size: 64, sequence_length: 16}}
  reward_signals: {curiosity: {strength: 0.02}}
  max_steps: 1000
"""


def test_every_behavior_is_merged_over_the_defaults() -> None:
    config = parse(
        DEFAULTS
        + """
behaviors:
  A: {}
  B:
    hyperparameters: {learning_rate_schedule: linear, batch_size: 32}
    network_settings: {num_layers: 1, memory: {sequence_length: 8}}
    reward_signals: {extrinsic: {}}
  C: {network_settings: {memory: null}, max_steps: 5}
"""
    )
    a, b, c = (config.behaviors[name] for name in "ABC")
    assert a == config.default_settings
    assert (ppo(config, "B").batch_size, ppo(config, "B").learning_rate_schedule) == (32, "linear")
    assert (ppo(config, "B").beta_schedule, ppo(config, "B").epsilon_schedule) == ("constant", "constant")
    assert (b.network_settings.hidden_units, b.network_settings.num_layers) == (32, 1)
    assert b.network_settings.memory is not None
    assert (b.network_settings.memory.memory_size, b.network_settings.memory.sequence_length) == (64, 8)
    assert (list(b.reward_signals), b.reward_signals["curiosity"].strength) == (["curiosity", "extrinsic"], 0.02)
    assert (b.max_steps, c.max_steps, c.network_settings.memory) == (1000, 5, None)


def test_defaults_survive_being_written() -> None:
    config = parse(DEFAULTS + "behaviors: {A: {}, B: {max_steps: 5}}")
    assert parse(effective_yaml(config)).model_dump() == config.model_dump()


def test_behavior_that_only_the_environments_name_gets_the_defaults() -> None:
    config = parse(DEFAULTS + "env_settings: {env: {A: 'gymnasium:A-v1'}}")
    assert config.behaviors == {"A": config.default_settings}


def test_error_in_the_defaults_is_reported_once() -> None:
    text = "default_settings: {max_steps: 0}\nbehaviors: {A: {}, B: {time_horizon: 0}}\n"
    assert errors(text) == [
        "c.yaml:1:31: default_settings.max_steps: must be at least 1, got 0",
        "c.yaml:2:38: behaviors.B.time_horizon: must be at least 1, got 0",
    ]


def test_error_of_a_merged_behavior_is_reported_where_its_value_is_written() -> None:
    text = "default_settings:\n  network_settings: {memory: {}}\nbehaviors:\n  A:\n"
    text += "    trainer_type: ppo\n    hyperparameters: {batch_size: 8}\n"
    assert errors(text) == [
        "c.yaml:2:22: behaviors.A.network_settings.memory.sequence_length: must be at most batch_size (8), got 64"
    ]


def test_behavior_with_another_trainer_than_the_defaults_is_refused_once() -> None:
    assert errors("default_settings: {}\nbehaviors: {A: {trainer_type: sac, max_steps: 0}}\n") == [
        (
            "c.yaml:2:31: behaviors.A.trainer_type: must be ppo as in default_settings, whose hyperparameters it "
            "inherits, got sac"
        ),
        "c.yaml:2:47: behaviors.A.max_steps: must be at least 1, got 0",
    ]


# What a refusal says


BROKEN = """\
behaviors:
  Walker:
    trainer_type: ppo
    hyperparameters:
      learning_rte: 1e-3
      batch_size: 64.7
      buffer_size: "12"
      beta: -1
      epsilon: .inf
      value_clip: 0
      shared_critic: "false"
      batch_size: 3
      learning_rate_schedule: liner
    network_settings:
      vis_encoder_type: simple
      hidden_units: [1]
      memory: {memory_size: 3}
      activation: *x
    lambd: 0.9
    reward_signals:
      gail: {strength: 1}
      extrinsik: {}
    summary_freq: null
    self_play: !!map {}
  Runner?team=0: {}
env_settings:
  num_envs: 0
  env: CartPole-v1
  env_args: {}
checkpoint_settings:
  run_id: ../x
torch_settings: none
debug: 1
"""


def test_every_error_is_reported_at_once_with_its_place_and_what_must_be() -> None:
    hyper, network = "behaviors.Walker.hyperparameters", "behaviors.Walker.network_settings"
    assert errors(BROKEN) == [
        f"c.yaml:5:7: {hyper}.learning_rte: unknown key. Did you mean learning_rate?",
        f"c.yaml:6:19: {hyper}.batch_size: must be a whole number, got 64.7",
        f'c.yaml:7:20: {hyper}.buffer_size: must be a whole number, got "12". Remove the quotes',
        f"c.yaml:8:13: {hyper}.beta: must be at least 0, got -1",
        f"c.yaml:9:16: {hyper}.epsilon: must be a finite number, got .inf",
        f"c.yaml:10:19: {hyper}.value_clip: must be epsilon, a number greater than 0 or null, got 0",
        f'c.yaml:11:22: {hyper}.shared_critic: must be true or false, got "false". Remove the quotes',
        f"c.yaml:12:7: {hyper}.batch_size: duplicate key, first at line 6. Remove one of the two",
        (
            f'c.yaml:13:31: {hyper}.learning_rate_schedule: must be constant or linear, got "liner". '
            "Did you mean linear?"
        ),
        f"c.yaml:15:7: {network}.vis_encoder_type: unknown key. Did you mean vis_encode_type?",
        f"c.yaml:16:21: {network}.hidden_units: must be a whole number, got a list",
        f"c.yaml:17:29: {network}.memory.memory_size: must be even, got 3",
        f"c.yaml:18:19: {network}.activation: must be written out, got the alias *x",
        "c.yaml:19:5: behaviors.Walker.lambd: unknown key. Did you mean hyperparameters.lambd?",
        ("c.yaml:21:7: behaviors.Walker.reward_signals.gail: demo_path is missing: it has no default"),
        "c.yaml:22:7: behaviors.Walker.reward_signals.extrinsik: unknown key. Did you mean extrinsic?",
        "c.yaml:23:19: behaviors.Walker.summary_freq: must be a whole number, got null",
        "c.yaml:24:16: behaviors.Walker.self_play: must be a plain value, got the tag !!map",
        (
            "c.yaml:25:3: behaviors.Runner?team=0: must be a behavior's name, not empty and without ?team=N: "
            "teams share their settings"
        ),
        "c.yaml:27:13: env_settings.num_envs: must be at least 1, got 0",
        (
            "c.yaml:28:8: env_settings.env: must be gymnasium:ID, toy:NAME, pettingzoo:NAME, mlagents:module:factory, "
            'unity:PATH or package.module:factory, got "CartPole-v1". Did you mean gymnasium:CartPole-v1, or '
            "unity:CartPole-v1 for a Unity player?"
        ),
        "c.yaml:29:13: env_settings.env_args: must be a list, got an empty mapping",
        (
            "c.yaml:31:11: checkpoint_settings.run_id: must start with a letter or digit and have at most 64 letters, "
            'digits, dots, dashes and underscores, got "../x"'
        ),
        'c.yaml:32:17: torch_settings: must be a mapping, got "none"',
        "c.yaml:33:8: debug: must be true or false, got 1",
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "behaviors: {A: {hyperparameters: {batch_size: 3}}}",
            ("1:17: behaviors.A.hyperparameters: trainer_type is missing next to it, must be ppo or sac"),
        ),
        (
            "behaviors: {A: {trainer_type: pop, hyperparameters: {steps: 3}}}",
            '1:31: behaviors.A.trainer_type: must be ppo or sac, got "pop". Did you mean ppo?',
        ),
        (
            "behaviors: {A: {trainer_type: poca, hyperparameters: {shared_critic: true}}}",
            (
                "1:55: behaviors.A.hyperparameters.shared_critic: unknown key. Must be one of: batch_size, beta, "
                "beta_schedule, buffer_size, epsilon, epsilon_schedule, lambd, learning_rate, learning_rate_schedule "
                "or num_epoch"
            ),
        ),
        (
            "behaviors: {A: {trainer_type: sac, hyperparameters: {learning_starts: 1}}}",
            "1:54: behaviors.A.hyperparameters.learning_starts: unknown key. Did you mean buffer_init_steps?",
        ),
        (
            "behaviors: {A: {trainer_type: sac, hyperparameters: {batch_size: 60000}}}",
            "1:66: behaviors.A.hyperparameters.batch_size: must be at most buffer_size (50000), got 60000",
        ),
        (
            "behaviors: {A: {trainer_type: sac, hyperparameters: {buffer_size: 100}}}",
            "1:67: behaviors.A.hyperparameters.buffer_size: must be at least batch_size (128), got 100",
        ),
        (
            ("behaviors: {A: {trainer_type: sac, hyperparameters: {n_step: 3}, network_settings: {memory: {}}}}"),
            ("1:93: behaviors.A.network_settings.memory: must be null unless n_step is 1, got n_step: 3"),
        ),
        (
            (
                "behaviors: {A: {trainer_type: sac, hyperparameters: {prioritized_replay: {}}, "
                "network_settings: {memory: {}}}}"
            ),
            ("1:106: behaviors.A.network_settings.memory: must be null unless prioritized_replay is null"),
        ),
        (
            "behaviors: {A: {trainer_type: sac, hyperparameters: {prioritized_replay: {alpha: 2}}}}",
            "1:82: behaviors.A.hyperparameters.prioritized_replay.alpha: must be at most 1, got 2",
        ),
        (
            "behaviors: {A: {checkpoint_interval: 0}}",
            ("1:38: behaviors.A.checkpoint_interval: must be at least 1, or -1 for never, got 0"),
        ),
        (
            "behaviors: {A: {checkpoint_interval: -2}}",
            ("1:38: behaviors.A.checkpoint_interval: must be at least 1, or -1 for never, got -2"),
        ),
        (
            "behaviors: {A: {checkpoint_interval: no}}",
            "1:38: behaviors.A.checkpoint_interval: must be a whole",
        ),
        (
            "behaviors: {A: {export_policies: [greedy, gredy]}}",
            (
                '1:43: behaviors.A.export_policies[1]: must be stochastic, greedy or raw, got "gredy". '
                "Did you mean greedy?"
            ),
        ),
        (
            "behaviors: {A: {evaluation: {episodes: 0}}}",
            "1:40: behaviors.A.evaluation.episodes: must be at least 1",
        ),
        (
            "behaviors: {A: {network_settings: {precision: float16}}}",
            '1:47: behaviors.A.network_settings.precision: must be float32 or bfloat16, got "float16"',
        ),
        (
            "behaviors: {A: {network_settings: {memory_size: 4}}}",
            "1:36: behaviors.A.network_settings.memory_size: unknown key. Did you mean memory.memory_size?",
        ),
        ("behaviors:", "1:11: behaviors: must be a mapping, got null. Write {} for all defaults"),
        ("behaviors: {A: }", "1:16: behaviors.A: must be a mapping, got null. Write {} for all defaults"),
        ("behaviors: [A]", "1:12: behaviors: must be a mapping, got a list"),
        ("'': 1", '1:1: "": unknown key. Must be one of: behaviors, '),
        ("behaviors: {'': {}}", '1:13: behaviors."": must be a behavior\'s name'),
        ("behaviors: {A: {max_steps: yes}}", "1:28: behaviors.A.max_steps: must be a whole number, got true"),
        ("behaviors: {A: {max_steps: 1e300}}", "1:28: behaviors.A.max_steps: must be a whole number, got 1e+300"),
        ("debug: 'true'", '1:8: debug: must be true or false, got "true". Remove the quotes'),
        (
            "checkpoint_settings: {run_id: 7}",
            "1:31: checkpoint_settings.run_id: must be text, got 7. Write it in quotes",
        ),
        ("checkpoint_settings: {run_id: 'a\n\n'}", "1:31: checkpoint_settings.run_id: must start with a letter"),
        ("checkpoint_settings: {initialize_from: .}", "1:40: checkpoint_settings.initialize_from: must start"),
        (
            "checkpoint_settings: {results_dir: ''}",
            "1:36: checkpoint_settings.results_dir: must be at least one char",
        ),
        ("env_settings: {seed: -2}", "1:22: env_settings.seed: must be at least -1, got -2"),
        ("env_settings: {seed: 4294967296}", "1:22: env_settings.seed: must be at most 4294967295, got 4294967296"),
        (
            "env_settings: {num_envs: 2, num_workers: 3}",
            "1:42: env_settings.num_workers: must be at most num_envs (2), got 3",
        ),
        ("env_settings: {env: 'gym:CartPole-v1'}", "1:21: env_settings.env: must be gymnasium:ID"),
        ("env_settings: {env: 'gymnasium:'}", "1:21: env_settings.env: must be gymnasium:ID"),
        (
            "env_settings: {env: {}}",
            "1:21: env_settings.env: must be a mapping of behaviors to environments",
        ),
        (
            "env_settings: {env: [a]}",
            "1:21: env_settings.env: must be gymnasium:ID, toy:NAME, pettingzoo:NAME, mlagents:module:factory",
        ),
        (
            "behaviors: {Walker: {}}\nenv_settings:\n  env: {Walkr: 'gymnasium:A-v1'}",
            '3:16: env_settings.env.Walkr: must be a key under behaviors, got "Walkr". Did you mean Walker?',
        ),
        (
            "behaviors: {A: {}, B: {}, C: {}}\nenv_settings: {env: {A: 'gymnasium:A-v1'}}",
            "2:21: env_settings.env: must have an environment for each behavior, got none for B, C",
        ),
        (
            "behaviors: {A: {}}\nenv_settings: {env: {A: 'a:b'}, env_kwargs: {size: 3}}",
            ('2:52: env_settings.env_kwargs.size: must be a behavior of env, which is a mapping, got "size"'),
        ),
        (
            "behaviors: {A: {}}\nenv_settings: {env: {A: 'a:b'}, env_kwargs: {A: 3}}",
            "2:49: env_settings.env_kwargs.A: must be a mapping of arguments, got 3",
        ),
        (
            "behaviors: {A: {even_checkpoints: true, keep_checkpoints: 0}}",
            "1:35: behaviors.A.even_checkpoints: must be false where keep_checkpoints is less than 1",
        ),
        (
            "behaviors:\n  A:\n    network_settings: {memory: {sequence_length: 2000}}\n",
            "3:50: behaviors.A.network_settings.memory.sequence_length: must be at most batch_size (1024), got 2000",
        ),
        (
            "behaviors: {A: {reward_signals: {}}}",
            "1:33: behaviors.A.reward_signals: must have at least one",
        ),
        ("behaviors: {A: {reward_signals: 3}}", "1:33: behaviors.A.reward_signals: must be a mapping, got 3"),
        (
            "environment_parameters: {a: {sampler_type: unifrm}}",
            (
                "1:44: environment_parameters.a.sampler_type: must be uniform, gaussian, multirangeuniform or "
                'constant, got "unifrm". Did you mean uniform?'
            ),
        ),
        (
            "environment_parameters: {a: {sampler_type: uniform}}",
            "1:26: environment_parameters.a: sampler_parameters is missing",
        ),
        (
            "environment_parameters: {a: {curiculum: [{name: x, value: 1}]}}",
            "1:41: environment_parameters.a.curiculum: unknown key. Did you mean curriculum?",
        ),
        ("environment_parameters: {a: {b: 1}}", "1:29: environment_parameters.a: sampler_type is missing"),
        (
            "environment_parameters: {a: {sampler_type: uniform, sampler_parameters: {min_value: 3}}}",
            "1:85: environment_parameters.a.sampler_parameters.min_value: must be at most max_value (1.0), got 3.0",
        ),
        (
            (
                "environment_parameters: {a: {sampler_type: multirangeuniform, sampler_parameters: "
                "{intervals: [[0, 1], [2]]}}}"
            ),
            "1:104: environment_parameters.a.sampler_parameters.intervals[1]: must be [minimum, maximum], got [2.0]",
        ),
        (
            "environment_parameters: {a: {curriculum: [{name: x, value: 1}, {name: y, value: 2}]}}",
            "1:43: environment_parameters.a.curriculum[0]: completion_criteria is missing",
        ),
        (
            "environment_parameters: {a: {curriculum: []}}",
            "1:42: environment_parameters.a.curriculum: must be a list of",
        ),
        (
            (
                "environment_parameters: {a: {curriculum: [{name: x, value: 1, "
                "completion_criteria: {behavior: B, measure: Elo}}]}}"
            ),
            (
                "1:107: environment_parameters.a.curriculum[0].completion_criteria.measure: "
                'must be reward or progress, got "Elo"'
            ),
        ),
        (
            (
                "environment_parameters: {a: {curriculum: [{name: x, value: 1, "
                "completion_criteria: {behavior: B, measure: progress, threshold: 2}}]}}"
            ),
            (
                "1:128: environment_parameters.a.curriculum[0].completion_criteria.threshold: "
                "must be a number from 0 to 1 where progress is measured, got 2.0"
            ),
        ),
    ],
)
def test_error_is_reported_with_its_place(text: str, error: str) -> None:
    [line] = errors(text)
    assert line.startswith(f"c.yaml:{error}")


@pytest.mark.parametrize(
    "setting", ["checkpoint_settings.results_dir", "env_settings.env_path", "behaviors.A.init_path"]
)
def test_path_with_a_null_character_is_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match="U\\+0000"):
        parse("behaviors: {A: {}}", {setting: "a\0b"})


def test_key_one_level_too_high_is_refused_with_its_right_path() -> None:
    lines = errors("behaviors: {A: {hidden_units: 3, network: {}, sequence_length: 3, gamma: 1, tau: 1}}")
    assert [line.split("unknown key. ")[1] for line in lines] == [
        "Did you mean network_settings.hidden_units?",
        "Did you mean network_settings?",
        "Did you mean network_settings.memory.sequence_length?",
        "Did you mean reward_signals.extrinsic.gamma?",
        "Did you mean hyperparameters.tau?",
    ]


def test_escape_sequences_from_the_file_do_not_reach_the_terminal() -> None:
    lines = errors('"a\\e[2J\\u202e\\n": 1\ntorch_settings: {device: "cuda\\a\\x9b"}\ndebug: "\\0"\n')
    assert len(lines) == 3
    assert all(line.isprintable() and line.isascii() for line in lines)
    assert lines[0].startswith(r"c.yaml:1:1: a\x1b[2J\u202e\n: unknown key")


def test_endless_file_is_refused() -> None:
    with pytest.raises(ConfigError, match="/dev/zero: must be a configuration of at most 16 MiB"):
        load_config(Path("/dev/zero"))


def test_missing_file_is_named_with_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as error:
        load_config(Path("nowhere/a.yaml"))
    assert str(error.value) == f"{tmp_path}/nowhere/a.yaml: cannot be read: No such file or directory"
    with pytest.raises(ConfigError, match="Is a directory"):
        load_config(tmp_path)


# The command line


def test_flags_win_over_the_file() -> None:
    config = parse(
        "behaviors: {A: {}, B.c: {}}\nenv_settings: {num_envs: 2, env: {A: 'a:b'}}\n",
        {
            "env_settings.num_envs": 4,
            "env_settings.env": "gymnasium:X-v1",
            "checkpoint_settings.run_id": "a",
            "torch_settings.device": "cuda:1",
            "debug": True,
            "behaviors.A.max_steps": 1e6,
            "behaviors.B.c.network_settings.hidden_units": 5,
        },
    )
    assert (config.env_settings.num_envs, config.env_settings.env) == (4, "gymnasium:X-v1")
    assert (config.checkpoint_settings.run_id, config.torch_settings.device, config.debug) == ("a", "cuda:1", True)
    assert config.behaviors["A"].max_steps == 1_000_000
    assert config.behaviors["B.c"].network_settings.hidden_units == 5


def test_errors_of_flags_name_the_flag_and_come_first() -> None:
    overrides: dict[str, object] = {
        "env_settings.num_envs": 0,
        "checkpoint_settings.run_id": "a b",
        "torch_settings.device": "",
        "debug": 3,
        "env_settings.env": {"A": 3},
        "env_settings.env_kwargs": 3,
        "behaviors.A.max_step": 3,
        "behaviors.A.summary_freq": 10**400,
    }
    lines = errors("behaviors: {A: {max_steps: 0}}\nenv_settings: {num_envs: x}\n", overrides)
    assert sorted(line.split(": ")[0] for line in lines[:-1]) == [
        "--debug",
        "--env",
        "--num-envs",
        "--run-id",
        "--set behaviors.A.max_step",
        "--set behaviors.A.summary_freq",
        "--set env_settings.env_kwargs",
        "--torch-device",
    ]
    assert "--num-envs: must be at least 1, got 0" in lines
    assert lines[-1] == "c.yaml:1:28: behaviors.A.max_steps: must be at least 1, got 0"


@pytest.mark.parametrize(
    ("file", "typed", "resume", "initialize_from"),
    [
        ({"resume": "true", "initialize_from": "b"}, {}, True, None),
        ({"initialize_from": "b"}, {"resume": True}, True, None),
        ({"resume": "true"}, {"initialize_from": "b"}, False, "b"),
        ({}, {"resume": True, "initialize_from": "b"}, True, None),
        ({"resume": "true"}, {}, True, None),
    ],
)
def test_resume_and_initialize_from_settle_as_in_mlagents(
    file: dict[str, str], typed: dict[str, object], resume: bool, initialize_from: str | None
) -> None:
    section = ", ".join(f"{key}: {value}" for key, value in file.items())
    overrides = {f"checkpoint_settings.{key}": value for key, value in typed.items()}
    config = parse(f"checkpoint_settings: {{{section}}}", overrides)
    assert config.checkpoint_settings.resume is resume
    assert config.checkpoint_settings.initialize_from == initialize_from
    assert bool(list_warnings(config)) == (len({**file, **typed}) == 2)


@pytest.mark.parametrize(
    ("file", "typed", "kept", "has_note"),
    [
        ("resume_or_start", "", "resume_or_start", False),
        ("", "resume resume_or_start", "resume", True),
        ("resume resume_or_start", "", "resume", True),
        ("resume_or_start", "resume", "resume", False),
        ("resume", "resume_or_start", "resume_or_start", False),
        ("resume_or_start initialize_from", "", "resume_or_start initialize_from", False),
        ("resume_or_start", "initialize_from", "resume_or_start initialize_from", False),
        ("resume", "resume_or_start initialize_from", "resume_or_start initialize_from", False),
        ("resume_or_start initialize_from", "resume", "resume", True),
    ],
)
def test_resume_and_resume_or_start_settle_in_favor_of_the_flag(
    file: str, typed: str, kept: str, has_note: bool
) -> None:
    values = {"resume": True, "resume_or_start": True, "initialize_from": "b"}
    section = ", ".join(f"{key}: {str(values[key]).lower()}" for key in file.split())
    overrides = {f"checkpoint_settings.{key}": values[key] for key in typed.split()}
    config = parse(f"checkpoint_settings: {{{section}}}", overrides)
    assert {key for key in values if getattr(config.checkpoint_settings, key)} == set(kept.split())
    assert bool(list_warnings(config)) == has_note


# Writing and describing


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.text(min_size=1, max_size=20).filter(lambda name: "?" not in name and name.encode("utf-8", "ignore")))
def test_any_name_and_any_text_survive_being_written(text: str) -> None:
    text = text.encode("utf-8", "ignore").decode()
    behaviors = {text: BehaviorConfig()} if "?" not in text else {}
    config = RunConfig(behaviors=behaviors, env_settings=EnvSettings(env_kwargs={text: text}))
    assert parse(effective_yaml(config)).model_dump() == config.model_dump()


@pytest.mark.parametrize("text", ["\x85", "a\x85", "\u2028", "a\u2029b", "\n", "a\n\nb "])
def test_line_ends_in_a_name_survive_being_written(text: str) -> None:
    config = RunConfig(behaviors={text: BehaviorConfig()}, env_settings=EnvSettings(env_kwargs={text: text}))
    assert parse(effective_yaml(config)).model_dump() == config.model_dump()


@pytest.mark.parametrize(
    "word", ["1e5", "3e-4", "08", "0777", "1_0", "yes", "null", "~", "<<", "=", "*a", "1:30", ".inf"]
)
def test_text_that_looks_like_something_else_stays_text(word: str) -> None:
    config = RunConfig(behaviors={"A": BehaviorConfig(init_path=word)})
    assert parse(effective_yaml(config)).behaviors["A"].init_path == word


def test_schema_describes_every_section_and_refuses_unknown_keys() -> None:
    schema = json_schema()
    properties, definitions = schema["properties"], schema["$defs"]
    assert isinstance(properties, dict)
    assert isinstance(definitions, dict)
    assert list(properties) == list(RunConfig.model_fields)
    for name, definition in definitions.items():
        if isinstance(definition, dict) and definition.get("type") == "object":
            assert definition["additionalProperties"] is False, name
    behavior = definitions["BehaviorConfig"]
    assert isinstance(behavior, dict)
    assert "normalize_reward" in str(behavior["properties"])
    assert {"PPOSettings", "SACSettings", "POCASettings", "GAILSettings", "CurriculumSettings"} <= set(definitions)
    assert "{'const': -1}" in str(behavior["properties"]["checkpoint_interval"])
    for name in ("SACSettings", "EvaluationSettings", "PrioritizedReplaySettings"):
        described = definitions[name]["properties"]
        ours = [key for key in described if key not in MLAGENTS_SAC]
        assert ours
        assert all("description" in described[key] for key in ours), name


def test_page_of_the_configuration_has_every_key_that_mlagents_lacks() -> None:
    """Those are the ones that carry a description."""
    page = (Path(__file__).parents[2] / "docs/configuration.md").read_text()
    definitions = json_schema()["$defs"]
    assert isinstance(definitions, dict)
    ours = {
        key
        for definition in definitions.values()
        if isinstance(definition, dict)
        for key, described in definition.get("properties", {}).items()
        if "description" in described
    }
    assert {"target_q", "interval", "alpha", "precision", "value_clip", "num_workers"} <= ours
    assert [key for key in sorted(ours) if not re.search(rf"[`.{{]{key}[`:]", page)] == []


def test_long_file_is_read_in_well_under_50_ms() -> None:
    behavior = (
        "  B{}:\n    trainer_type: ppo\n    hyperparameters:\n"
        + "".join(f"      {key}: {value}\n" for key, value in PPOSettings().model_dump().items() if value is not None)
        + "    network_settings:\n      normalize: true\n      hidden_units: 128\n"
    )
    text = "behaviors:\n" + "".join(behavior.format(number) for number in range(58))
    assert text.count("\n") > 1200
    parse(text)
    seconds = []
    for _ in range(5):
        started = time.thread_time()
        parse(text)
        seconds.append(time.thread_time() - started)
    assert min(seconds) < 0.05


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("[speed, speed]", "env_settings.metrics\\[1\\]: must be named once, got .*speed.* twice"),
        ("['']", "env_settings.metrics\\[0\\]: must be a key of info, which is not empty"),
        ("[Cumulative Reward]", "is a statistic of rl-tui's own"),
        ("[Losses/Value Loss]", "is a statistic of rl-tui's own"),
        ("speed", "must be a list"),
        ("[3]", "text"),
    ],
)
def test_keys_that_cannot_be_statistics_are_refused(written: str, words: str) -> None:
    text = f"behaviors: {{A: {{}}}}\nenv_settings: {{env: 'toy:line', metrics: {written}}}\n"
    with pytest.raises(ConfigError, match=words):
        parse_config(text.encode(), "test.yaml")


def test_flag_for_a_behavior_that_there_is_not_is_refused_by_name() -> None:
    two = "behaviors: {CartPole: {}, Walker: {}}\n"
    (line,) = errors(two, {"behaviors.Cartpole.max_steps": 3})
    assert line == "--set behaviors.Cartpole.max_steps: no such behavior. Did you mean CartPole?"
    (line,) = errors(two, {"behaviors.Ant.network_settings.num_layers": 3})
    assert line == "--set behaviors.Ant.network_settings.num_layers: no such behavior. There are CartPole and Walker."
    for fits in ("default_settings: {}\n" + two, "behaviors: {}\n"):
        assert parse(fits, {"behaviors.Ant.max_steps": 3}).behaviors["Ant"].max_steps == 3
    everywhere = dict.fromkeys(("CartPole", "Walker", "Ant"), "toy:line")
    mapped: dict[str, object] = {"behaviors.Ant.max_steps": 3, "env_settings.env": everywhere}
    assert parse(two, mapped).behaviors["Ant"].max_steps == 3
    whole: dict[str, object] = {"behaviors.Ant": {}, "behaviors.Ant.max_steps": 3}
    assert parse(two, whole).behaviors["Ant"].max_steps == 3
