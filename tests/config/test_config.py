"""From a file and flags to settings: what is accepted, what it means, and what every refusal says."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_tui.engine.config.behavior import BehaviorConfig, EvaluationSettings
from rl_tui.engine.config.environment_parameters import CurriculumSettings, MultiRangeUniformSampler, UniformSampler
from rl_tui.engine.config.loading import effective_yaml, load_config, parse_config
from rl_tui.engine.config.presets import preset_path
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
    text = effective_yaml(load_config(path)).replace("time_scale: 20.0", "time_scale: 20")
    ours = text.replace("device: auto", "device: null").splitlines()
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
        *("training_analytics", "behaviors", "random_agents", "parameters", "wrappers", "act_in", "shares"),
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
    definitions = json_schema()["$defs"]
    assert isinstance(definitions, dict)
    assert "OtherSettings" in definitions


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
    assert len(list_warnings(config)) == 1


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
        assert [(line.partition(": ")[0], line.rpartition(" ")[2]) for line in wrong] == [
            (f"--set behaviors.A.{key}", str(interval))
        ]


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
    [line] = errors("behaviors: {A: {}}", {"env_settings.env": env})
    assert f" gymnasium:{env}, " in line
    assert f" unity:{env} " in line


@pytest.mark.parametrize("env", ["env: 'unity:Ball'", "env: Ball", "env_path: Ball"])
def test_arguments_of_players_are_side_channels(env: str) -> None:
    kwargs = {"side_channels": ["a:b"]}
    assert parse(f"env_settings: {{{env}, env_kwargs: {kwargs}}}").env_settings.env_kwargs == kwargs
    assert parse(f"env_settings: {{{env}}}").env_settings.env_kwargs == {}


def test_arguments_of_players_in_a_mapping_are_side_channels() -> None:
    text = "behaviors: {A: {}, B: {}}\nenv_settings: {env: {A: Ball, B: a:b}, env_kwargs: {%s: {width: 3}}}"
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


# What a refusal says


def test_escape_sequences_from_the_file_do_not_reach_the_terminal() -> None:
    lines = errors('"a\\e[2J\\u202e\\n": 1\ntorch_settings: {device: "cuda\\a\\x9b"}\ndebug: "\\0"\n')
    assert len(lines) == 3
    assert all(line.isprintable() and line.isascii() for line in lines)
    assert lines[0].startswith(r"c.yaml:1:1: a\x1b[2J\u202e\n: ")


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


def test_flag_may_be_for_a_behavior_that_the_defaults_or_the_environments_have() -> None:
    two = "behaviors: {CartPole: {}, Walker: {}}\n"
    for fits in ("default_settings: {}\n" + two, "behaviors: {}\n"):
        assert parse(fits, {"behaviors.Ant.max_steps": 3}).behaviors["Ant"].max_steps == 3
    everywhere = dict.fromkeys(("CartPole", "Walker", "Ant"), "toy:line")
    mapped: dict[str, object] = {"behaviors.Ant.max_steps": 3, "env_settings.env": everywhere}
    assert parse(two, mapped).behaviors["Ant"].max_steps == 3
    whole: dict[str, object] = {"behaviors.Ant": {}, "behaviors.Ant.max_steps": 3}
    assert parse(two, whole).behaviors["Ant"].max_steps == 3


CURRICULUM = """\
environment_parameters:
  length:
    curriculum:
      - {name: short, value: 4, completion_criteria: {behavior: A, threshold: 0.5}}
      - {name: long, value: 8}
env_settings: {metrics: [speed, height]}
"""


def test_flag_sets_an_entry_of_a_list_by_its_position() -> None:
    lessons = "environment_parameters.length.curriculum"
    config = parse(
        CURRICULUM,
        {
            f"{lessons}.0.completion_criteria.threshold": 0.8,
            f"{lessons}.1": {"name": "full", "value": 4},
            f"{lessons}.1.value": 16,
            "env_settings.metrics.1": "width",
        },
    )
    curriculum = (config.environment_parameters or {})["length"]
    assert isinstance(curriculum, CurriculumSettings)
    first, last = curriculum.curriculum
    assert first.completion_criteria is not None
    assert (first.name, first.completion_criteria.threshold) == ("short", 0.8)
    assert (last.name, last.value) == ("full", 16)
    assert config.env_settings.metrics == ["speed", "width"]


@pytest.mark.parametrize("position", ["2", "-1", "short", "", "9" * 5000])
def test_flag_for_an_entry_that_a_list_does_not_have_is_refused(position: str) -> None:
    (line,) = errors(CURRICULUM, {f"environment_parameters.length.curriculum.{position}.value": 3})
    assert line.endswith(": its entries are 0 to 1")
    assert "curriculum has no entry" in line


def test_flag_for_a_setting_inside_a_value_is_refused() -> None:
    (line,) = errors("behaviors: {A: {max_steps: 5}}", {"behaviors.A.max_steps.most": 3})
    assert line == "--set behaviors.A.max_steps.most: max_steps is 5, which has no setting most"


def test_origins_say_where_each_setting_was_written() -> None:
    text = """\
default_settings: {max_steps: 10, hyperparameters: {batch_size: 8}, trainer_type: ppo}
behaviors: {A: {max_steps: 20}, B: {}}
environment_parameters: {length: {curriculum: [{name: x, value: 1}]}}
"""
    flags: dict[str, object] = {
        "behaviors.A.summary_freq": 5,
        "env_settings.num_envs": 2,
        "environment_parameters.length.curriculum.0.value": 3,
        "behaviors.B.network_settings": {"num_layers": 1},
    }
    origins = parse(text, flags).source.origins
    lesson = ("environment_parameters", "length", "curriculum", "0")
    expected = {
        ("behaviors", "A", "max_steps"): "file",
        ("behaviors", "B", "max_steps"): "file",
        ("behaviors", "A", "hyperparameters", "batch_size"): "file",
        ("behaviors", "A", "summary_freq"): "--set",
        ("behaviors", "B", "network_settings", "num_layers"): "--set",
        ("env_settings", "num_envs"): "--num-envs",
        (*lesson, "name"): "file",
        (*lesson, "value"): "--set",
    }
    assert {path: origins.get(path) for path in expected} == expected
    for default in (("behaviors", "A", "time_horizon"), ("behaviors", "B", "summary_freq"), ("env_settings", "seed")):
        assert default not in origins


def test_origins_of_a_preset_and_of_nothing_written() -> None:
    origins = load_config(preset_path("ppo/CartPole")).source.origins
    assert {*origins.values()} == {"preset"}
    assert not parse("behaviors: {}").source.origins.get(("env_settings", "seed"))
    acting = parse("behaviors: {A: {}}").acting_deterministically("--deterministic").source.origins
    assert acting["behaviors", "A", "network_settings", "deterministic"] == "--deterministic"
