"""What of a valid configuration is refused at start, ignored, or warned of."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.loading import load_config, parse_config
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.support import (
    editor_note,
    few_updates_note,
    find_unsupported,
    find_unused,
    list_warnings,
    preset_note,
)
from rl_tui.engine.running.preflight import refusals

MLAGENTS = os.environ.get("MLAGENTS_DATA")
CARTPOLE = {"env_settings.env": "gymnasium:CartPole-v1"}

# What keeps each file of ML-Agents from starting in an environment: path and line.
EXPECTED = {
    "ppo/WallJump": [("must map each of the 2 behaviors", 0)],
}


def parse(text: str, **overrides: object) -> RunConfig:
    return parse_config(text.encode(), "c.yaml", overrides)


@pytest.mark.skipif(not MLAGENTS, reason="MLAGENTS_DATA names no folder of ML-Agents' files")
def test_exactly_the_unsupported_parts_of_mlagents_files_are_refused() -> None:
    folder = Path(str(MLAGENTS)) / "config"
    for path in sorted(folder.rglob("*.yaml")):
        lines = find_unsupported(load_config(path, CARTPOLE))
        expected = EXPECTED.get(path.relative_to(folder).with_suffix("").as_posix(), [])
        assert len(lines) == len(expected), path
        for line, (part, number) in zip(lines, expected, strict=True):
            assert f"{part}: " in line or number == 0
            assert line.startswith(f"{path}:{number}:" if number else f"--env: {part}")


def test_another_environment_takes_the_place_of_a_unity_player() -> None:
    text = "behaviors: {A: {}}\nenv_settings: {env_path: builds/3DBall, base_port: 6000}\n"
    assert find_unsupported(parse(text, **CARTPOLE)) == []


@pytest.mark.parametrize("trainer", ["ppo", "sac"])
def test_memories_images_and_goals_are_supported_by_both_trainers(trainer: str) -> None:
    text = (
        "behaviors: {A: {trainer_type: %s, network_settings: {memory: {}, vis_encode_type: resnet, "
        "goal_conditioning_type: none, precision: bfloat16, deterministic: true}, threaded: true}}"
    )
    config = parse(text % trainer, **CARTPOLE)
    assert (find_unsupported(config), find_unused(config), list_warnings(config)) == ([], [], [])


def test_gymnasium_environment_has_one_behavior_and_a_factory_may_have_several() -> None:
    text = "behaviors: {A: {}, B: {}}\nenv_settings:\n  env: %s\n"
    assert len(find_unsupported(parse(text % "gymnasium:X-v1"))) == 1
    assert find_unsupported(parse(text % "package.module:factory")) == []
    assert find_unsupported(parse(text % "{A: 'gymnasium:X-v1', B: 'gymnasium:Y-v1'}")) == []


def test_configuration_built_in_code_is_checked_without_places() -> None:
    config = RunConfig(behaviors={"A": BehaviorConfig(init_path="old.pt")})
    assert find_unsupported(config)[0].startswith("behaviors.A.init_path: starting from a PyTorch file (.pt) ")
    assert find_unused(config) == []


def test_worker_processes_are_restarted_and_act() -> None:
    written = 'behaviors: {A: {}}\nenv_settings: {env: "gymnasium:X-v1", restarts_rate_limit_n: 2, act_in: main'
    for workers in ("1", "auto"):
        assert find_unused(parse(f"{written}, num_envs: 2, num_workers: {workers}}}")) == []
    (line,) = find_unused(parse(f"{written}}}"))
    assert "restarts_rate_limit_n (only worker processes are restarted" in line
    assert "act_in (only worker processes act" in line
    assert find_unused(parse("behaviors: {A: {}}")) == []


def test_values_that_are_the_default_are_not_named_as_in_what_mlagents_writes() -> None:
    """Its configuration.yaml has every key; with even_checkpoints, the interval that these make."""
    text = """\
behaviors:
  A:
    trainer_type: sac
    hyperparameters: {steps_per_update: 3, reward_signal_steps_per_update: 3}
    checkpoint_interval: 200
    even_checkpoints: true
    max_steps: 1000
    reward_signals:
      extrinsic:
        gamma: 0.9
        network_settings: {normalize: false, hidden_units: 128, num_layers: 2, vis_encode_type: simple, memory: null}
env_settings:
  env: "gymnasium:X-v1"
  env_path: null
  env_args: null
  base_port: 5005
  num_areas: 1
  max_lifetime_restarts: 10
  restarts_rate_limit_n: 1
  restarts_rate_limit_period_s: 60
engine_settings:
  width: 84
  height: 84
  quality_level: 5
  time_scale: 20
  target_frame_rate: -1
  capture_frame_rate: 60
  no_graphics: false
  no_graphics_monitor: false
checkpoint_settings: {load_model: false, train_model: false, force: false, inference: false}
"""
    assert find_unused(parse(text)) == []
    flags = {"engine_settings.time_scale": 3.0}
    assert len(find_unused(parse(text, **flags))) == 1


def test_pace_of_the_reward_signals_has_no_effect_on_sac_with_only_the_environments_reward() -> None:
    text = """\
behaviors:
  A:
    trainer_type: sac
    hyperparameters: {reward_signal_steps_per_update: 4}
    reward_signals: {%s: {}}
env_settings: {env: "gymnasium:X-v1"}
"""
    assert len(find_unused(parse(text % "extrinsic"))) == 1
    assert find_unused(parse(text % "rnd")) == []


@pytest.mark.parametrize("start", ["resume", "resume_or_start"])
def test_force_has_no_effect_on_a_run_that_is_resumed(start: str) -> None:
    flags = {"checkpoint_settings.force": True, f"checkpoint_settings.{start}": True}
    assert len(find_unused(parse("behaviors: {A: {}}", **flags))) == 1
    assert find_unused(parse(f"checkpoint_settings: {{force: false, {start}: true}}")) == []


@pytest.mark.parametrize(
    ("settings", "init_path", "untrained"),
    [
        ("inference: true", "", "A, B"),
        ("inference: true", "init_path: there", "B"),
        ("inference: true, resume: true, run_id: a", "", None),
        ("inference: true, initialize_from: a", "", None),
        ("inference: false", "", None),
    ],
)
def test_untrained_policy_that_plays_has_a_warning(settings: str, init_path: str, untrained: str | None) -> None:
    text = f"behaviors:\n  A: {{{init_path}}}\n  B: {{}}\ncheckpoint_settings: {{{settings}}}\n"
    warned = [] if untrained is None else [f"c.yaml:4:34: checkpoint_settings.inference: {untrained} will"]
    assert [line.partition(" act")[0] for line in list_warnings(parse(text))] == warned


def test_memory_of_a_reward_signal_is_left_out() -> None:
    network = "{hidden_units: 32, memory: {memory_size: 4}}"
    config = parse(f"behaviors: {{A: {{reward_signals: {{curiosity: {{network_settings: {network}}}}}}}}}")
    assert config.behaviors["A"].reward_signals["curiosity"].network_settings.memory is None


def test_editor_is_named_only_where_no_environment_is() -> None:
    assert editor_note(parse("behaviors: {A: {}}")) is not None
    assert editor_note(parse("behaviors: {A: {}}", **{"env_settings.env": "unity:editor"})) is None


def test_settings_of_players_have_an_effect_where_any_environment_is_one() -> None:
    text = """\
behaviors: {A: {}, B: {}}
env_settings: {env: {A: 'toy:line', B: Ball}, num_workers: 1, num_areas: 2, env_args: [a], base_port: 5006}
engine_settings: {time_scale: 2}
"""
    assert find_unused(parse(text)) == []


def test_behaviors_may_be_left_to_a_player_where_there_are_defaults() -> None:
    defaults = "default_settings: {trainer_type: ppo}\n"
    for environment in ("builds/3DBall", "mlagents:my_world:Walkers", "my_world:Walkers"):
        assert find_unsupported(parse(defaults, **{"env_settings.env": environment})) == []
    assert find_unsupported(parse(defaults)) == []


@pytest.mark.skipif(not MLAGENTS, reason="MLAGENTS_DATA names no folder of ML-Agents' files")
def test_every_file_of_mlagents_starts_in_a_player(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its demonstrations are looked for in the working folder."""
    monkeypatch.chdir(tmp_path)
    player = tmp_path / "Ball.x86_64"
    player.write_text("#!/bin/sh\n")
    player.chmod(0o755)
    folder = Path(str(MLAGENTS)) / "config"
    for path in folder.rglob("*.yaml"):
        for shown in re.findall(r"demo_path: (\S+)", path.read_text()):
            Path(shown).parent.mkdir(parents=True, exist_ok=True)
            Path(shown).touch()
        overrides = {"env_settings.env": str(tmp_path / "Ball"), "checkpoint_settings.results_dir": str(tmp_path)}
        assert refusals(load_config(path, overrides)) == [], path


@pytest.mark.parametrize("env", ["gymnasium:CartPole-v1", "my_world:Corridor", "pettingzoo:mpe2.simple_spread_v3"])
def test_environments_of_gymnasium_and_pettingzoo_may_have_wrappers(env: str) -> None:
    text = f"behaviors: {{A: {{}}}}\nenv_settings: {{env: '{env}', wrappers: ['gymnasium.wrappers:TimeLimit']}}\n"
    assert "wrappers" not in "".join(find_unsupported(parse(text)))


def test_wrapper_that_does_not_exist_is_refused_before_the_start() -> None:
    text = (
        "behaviors: {A: {}}\nenv_settings: {env: 'gymnasium:CartPole-v1', wrappers: ['gymnasium.wrappers:TimeLimi']}\n"
    )
    assert any("env_settings.wrappers: gymnasium.wrappers:TimeLimi: module" in line for line in refusals(parse(text)))


def test_few_updates_are_noted_by_their_number() -> None:
    text = """\
behaviors:
  A: {max_steps: 100000}
  B: {max_steps: 1e6}
  C: {trainer_type: sac, max_steps: 40, hyperparameters: {buffer_init_steps: 20, steps_per_update: 2}}
"""
    assert few_updates_note(parse(text)) is not None
    assert few_updates_note(parse("behaviors: {A: {max_steps: 204800}}")) is None
    assert few_updates_note(parse("default_settings: {max_steps: 1000}")) is not None
    cloning = "behaviors: {A: {trainer_type: bc, max_steps: 10000, hyperparameters: {%s: somewhere}}}"
    assert few_updates_note(parse(cloning % "teacher")) is not None
    assert few_updates_note(parse(cloning % "demo_path")) is None  # of ten steps it may make a thousand updates
    playing = "checkpoint_settings: {inference: true, resume: true}\n"
    assert few_updates_note(parse(text + playing)) is None


def test_presets_for_the_environment_of_a_file_without_hyperparameters_are_named() -> None:
    plain = "behaviors: {A: {}}\nenv_settings: {env: 'gymnasium:MountainCarContinuous-v0'}\n"
    assert str(preset_note(parse(plain))).endswith("ppo/MountainCarContinuous or sac/MountainCarContinuous")
    tuned = plain.replace("{A: {}}", "{A: {trainer_type: ppo, hyperparameters: {beta: 0.1}}}")
    elsewhere = plain.replace("MountainCarContinuous", "Blackjack")
    assert str(preset_note(parse(elsewhere))).endswith("ppo/gymnasium or sac/gymnasium")
    player = plain.replace("gymnasium:MountainCarContinuous-v0", "builds/3DBall")
    for text in (tuned, player, plain + "checkpoint_settings: {inference: true, resume: true}\n"):
        assert preset_note(parse(text)) is None
