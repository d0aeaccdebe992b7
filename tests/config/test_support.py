"""What of a valid configuration is refused at start, ignored, or warned of."""

from __future__ import annotations

import os
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
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.preflight import refusals

MLAGENTS = os.environ.get("MLAGENTS_DATA")
CARTPOLE = {"env_settings.env": "gymnasium:CartPole-v1"}

# What keeps each file of ML-Agents from starting in an environment: path and line.
EXPECTED = {
    "imitation/Hallway": [("reward_signals.gail", 25)],
    "imitation/PushBlock": [("reward_signals.gail", 22), ("behavioral_cloning", 38)],
    "poca/PushBlockCollab": [("trainer_type", 3)],
    "poca/SoccerTwos": [("trainer_type", 3), ("self_play", 26)],
    "ppo/PyramidsRND": [("reward_signals.rnd", 22)],
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


def test_everything_unsupported_is_named_with_its_place() -> None:
    text = """\
behaviors:
  A:
    trainer_type: poca
    reward_signals: {extrinsic: {}, curiosity: {}, gail: {demo_path: d}, rnd: {}}
    self_play: {}
    behavioral_cloning: {demo_path: d}
    init_path: old/checkpoint.pt
environment_parameters: {gravity: 3}
env_settings:
  env: gymnasium:CartPole-v1
  env_path: ./player
"""
    later = "is not supported yet"
    assert find_unsupported(parse(text)) == [
        f"c.yaml:3:19: behaviors.A.trainer_type: trainer poca {later}",
        f"c.yaml:4:37: behaviors.A.reward_signals.curiosity: reward signal curiosity {later}",
        f"c.yaml:4:52: behaviors.A.reward_signals.gail: reward signal gail {later}",
        f"c.yaml:4:74: behaviors.A.reward_signals.rnd: reward signal rnd {later}",
        f"c.yaml:5:5: behaviors.A.self_play: self-play {later}",
        f"c.yaml:6:5: behaviors.A.behavioral_cloning: behavioral cloning {later}",
        f"c.yaml:7:16: behaviors.A.init_path: starting from a PyTorch file (.pt) {later}",
    ]


def test_inherited_setting_is_named_where_the_defaults_are_written() -> None:
    text = "default_settings: {self_play: {}}\nbehaviors: {A: {}}\nenv_settings: {env: 'a:b'}\n"
    assert find_unsupported(parse(text)) == ["c.yaml:1:20: behaviors.A.self_play: self-play is not supported yet"]


def test_flag_that_is_not_supported_is_named() -> None:
    config = parse_config(b"behaviors: {A: {}}", "c.yaml", {"behaviors.A.trainer_type": "poca"})
    assert "trainer poca is not supported yet" in find_unsupported(config)[0]


def test_run_needs_an_environment_and_a_behavior() -> None:
    assert find_unsupported(parse("debug: false")) == [
        "c.yaml:1:1: behaviors: must have a key for each behavior, got none",
    ]


def test_another_environment_takes_the_place_of_a_unity_player() -> None:
    text = "behaviors: {A: {}}\nenv_settings: {env_path: builds/3DBall, base_port: 6000}\n"
    config = parse(text, **CARTPOLE)
    assert find_unsupported(config) == []
    assert find_unused(config) == [
        (
            "no effect: c.yaml:2:16: env_settings.env_path (env names the environment);"
            " c.yaml:2:41: env_settings.base_port (used only with Unity players)"
        )
    ]


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
    assert find_unsupported(parse(text % "gymnasium:X-v1")) == [
        (
            "c.yaml:3:8: env_settings.env: must map each of the 2 behaviors to an environment; "
            "gymnasium:X-v1 has only one behavior"
        )
    ]
    assert find_unsupported(parse(text % "package.module:factory")) == []
    assert find_unsupported(parse(text % "{A: 'gymnasium:X-v1', B: 'gymnasium:Y-v1'}")) == []


def test_configuration_built_in_code_is_checked_without_places() -> None:
    config = RunConfig(behaviors={"A": BehaviorConfig(trainer_type="poca")})
    assert find_unsupported(config)[0] == "behaviors.A.trainer_type: trainer poca is not supported yet"
    assert find_unused(config) == []


def test_all_written_keys_without_effect_are_named_in_one_line() -> None:
    text = """\
behaviors:
  A:
    checkpoint_interval: 10
    even_checkpoints: true
    max_steps: 1000
    reward_signals: {extrinsic: {network_settings: {hidden_units: 3}}}
env_settings: {env: "gymnasium:X-v1", base_port: 5004, restarts_rate_limit_n: 2}
engine_settings: {width: 3, height: 84}
checkpoint_settings: {train_model: true}
"""
    assert find_unused(parse(text)) == [
        (
            "no effect: c.yaml:3:5: behaviors.A.checkpoint_interval (even_checkpoints makes it 200);"
            " c.yaml:6:34: behaviors.A.reward_signals.extrinsic.network_settings (extrinsic rewards need no network);"
            " c.yaml:7:39: env_settings.base_port, c.yaml:8:19: engine_settings.width (used only with Unity players);"
            " c.yaml:7:56: env_settings.restarts_rate_limit_n (only worker processes are restarted (num_workers));"
            " c.yaml:9:23: checkpoint_settings.train_model (training is the default)"
        )
    ]
    assert find_unused(parse("behaviors: {A: {}}")) == []
    workers = 'env_settings: {env: "gymnasium:X-v1", num_workers: 1, restarts_rate_limit_n: 2}'
    assert find_unused(parse(f"behaviors: {{A: {{}}}}\n{workers}")) == []


def test_flags_without_effect_are_named_as_keys_are() -> None:
    typed = {
        **CARTPOLE,
        "engine_settings.time_scale": 1.0,
        "engine_settings.no_graphics": True,
        "env_settings.base_port": 6000,
        "env_settings.env_args": ["-x"],
        "env_settings.max_lifetime_restarts": 3,
        "env_settings.num_envs": 2,
    }
    config = parse("behaviors: {A: {}}\nengine_settings: {width: 3}\n", **typed)
    assert find_unused(config) == [
        (
            "no effect: --env-args, --base-port, --time-scale, --no-graphics, c.yaml:2:19: engine_settings.width"
            " (used only with Unity players);"
            " --max-lifetime-restarts (only worker processes are restarted (num_workers))"
        )
    ]


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
    assert find_unused(parse(text, **flags)) == ["no effect: --time-scale (used only with Unity players)"]


def test_pace_of_the_reward_signals_has_no_effect_on_sac_with_only_the_environments_reward() -> None:
    text = """\
behaviors:
  A:
    trainer_type: sac
    hyperparameters: {reward_signal_steps_per_update: 4}
    reward_signals: {%s: {}}
env_settings: {env: "gymnasium:X-v1"}
"""
    assert find_unused(parse(text % "extrinsic")) == [
        (
            "no effect: c.yaml:4:23: behaviors.A.hyperparameters.reward_signal_steps_per_update"
            " (no reward signal of this behavior learns)"
        )
    ]
    assert find_unused(parse(text % "rnd")) == []


def test_force_and_inference_exclude_each_other() -> None:
    text = 'behaviors: {A: {}}\nenv_settings: {env: "toy:line"}\n'
    flags = {"checkpoint_settings.force": True, "checkpoint_settings.inference": True}
    reason = "cannot be combined with --inference, which changes no file of the run"
    assert find_unsupported(parse(text, **flags)) == [f"--force: {reason}"]
    section = "checkpoint_settings: {force: true, inference: true}\n"
    assert find_unsupported(parse(text + section)) == [f"c.yaml:3:30: checkpoint_settings.force: {reason}"]


def test_resume_or_start_and_inference_exclude_each_other() -> None:
    text = 'behaviors: {A: {}}\nenv_settings: {env: "toy:line"}\n'
    flags = {"checkpoint_settings.resume_or_start": True, "checkpoint_settings.inference": True}
    reason = "cannot be combined with --inference, which needs a run that has learned: use --resume"
    assert find_unsupported(parse(text, **flags)) == [f"--resume-or-start: {reason}"]


@pytest.mark.parametrize("start", ["resume", "resume_or_start"])
def test_force_has_no_effect_on_a_run_that_is_resumed(start: str) -> None:
    flags = {"checkpoint_settings.force": True, f"checkpoint_settings.{start}": True}
    assert find_unused(parse("behaviors: {A: {}}", **flags)) == [f"no effect: --force ({start} replaces nothing)"]
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
    advice = "Add --resume, --initialize-from or an init_path"
    expected = f"c.yaml:4:34: checkpoint_settings.inference: {untrained} will act untrained. {advice}"
    assert list_warnings(parse(text)) == ([] if untrained is None else [expected])


def test_suspicious_settings_are_accepted_with_a_warning() -> None:
    text = """\
behaviors:
  A:
    reward_signals:
      curiosity: {network_settings: {hidden_units: 32, memory: {memory_size: 4}}}
    self_play: {play_against_latest_model_ratio: 1.5}
  B:
    trainer_type: sac
    hyperparameters: {buffer_init_steps: 60000, n_step: 80}
    max_steps: 1e6
  C:
    network_settings: {memory: {sequence_length: 65}}
  D:
    checkpoint_interval: -1
    checkpoint_seconds: -1
  E:
    trainer_type: sac
    hyperparameters: {buffer_init_steps: 1000}
    max_steps: 1000
environment_parameters:
  size:
    curriculum:
      - {name: one, value: 1, completion_criteria: {behavior: F}}
      - {name: two, value: 2, completion_criteria: {behavior: A}}
"""
    config = parse(text)
    assert config.behaviors["A"].reward_signals["curiosity"].network_settings.memory is None
    hyper, lessons = "behaviors.B.hyperparameters", "environment_parameters.size.curriculum"
    assert [line.removeprefix("c.yaml:") for line in list_warnings(config)] == [
        (
            "4:56: behaviors.A.reward_signals.curiosity.network_settings.memory: "
            "ignored: a reward signal's network has no memory"
        ),
        "5:50: behaviors.A.self_play.play_against_latest_model_ratio: should be from 0 to 1, got 1.5",
        f"8:42: {hyper}.buffer_init_steps: should be at most buffer_size (50000), got 60000",
        f"8:57: {hyper}.n_step: should be at most time_horizon (64), where sums end, got 80",
        (
            "11:50: behaviors.C.network_settings.memory.sequence_length: "
            "should be at most time_horizon (64), where sequences end, got 65"
        ),
        (
            "13:26: behaviors.D.checkpoint_interval: no checkpoint before the end: "
            "a crash or a power cut then loses everything since the start"
        ),
        (
            "17:42: behaviors.E.hyperparameters.buffer_init_steps: "
            "should be less than max_steps (1000), or nothing is learned, got 1000"
        ),
        f"22:63: {lessons}[0].completion_criteria.behavior: not a key under behaviors, the lesson never ends.",
        f"23:31: {lessons}[1].completion_criteria: ignored: nothing follows the last lesson",
    ]


def test_editor_is_one_and_takes_no_settings_of_players() -> None:
    text = """\
behaviors: {A: {evaluation: {}}}
env_settings: {num_envs: 2, env_args: [a], base_port: 5006, timeout_wait: 9, num_areas: 2}
engine_settings: {no_graphics: true, time_scale: 2}
"""
    config = parse(text)
    refused = "must be 1 in the Unity Editor, got 2. Build a player for several: --env PATH"
    assert find_unsupported(config) == [f"c.yaml:2:26: env_settings.num_envs: {refused}"]
    assert find_unused(config) == [
        (
            "no effect: c.yaml:1:17: behaviors.A.evaluation"
            " (it needs an environment of its own, and there is one Unity Editor);"
            " c.yaml:2:29: env_settings.env_args, c.yaml:3:19: engine_settings.no_graphics"
            " (the Unity Editor is started by you);"
            " c.yaml:2:44: env_settings.base_port (the Unity Editor uses port 5004);"
            " c.yaml:2:61: env_settings.timeout_wait (the Unity Editor is waited for)"
        )
    ]
    assert editor_note(config) is not None
    assert editor_note(parse(text, **{"env_settings.env": "unity:editor"})) is None


def test_run_has_one_editor() -> None:
    text = "behaviors: {A: {}, B: {}, C: {}}\nenv_settings: {env: {A: 'unity:editor', B: Ball, C: 'unity:editor'}}\n"
    assert find_unsupported(parse(text)) == [
        (
            "c.yaml:2:53: env_settings.env.C: must be another environment than unity:editor: there is one Unity Editor"
            " in a run"
        )
    ]


def test_settings_of_players_have_an_effect_where_any_environment_is_one() -> None:
    text = """\
behaviors: {A: {}, B: {}}
env_settings: {env: {A: %s, B: Ball}, num_workers: 1, num_areas: 2, env_args: [a], base_port: 5006}
engine_settings: {time_scale: 2}
"""
    assert find_unused(parse(text % "'toy:line'")) == []
    assert find_unused(parse(text % "Ball")) == [
        "no effect: c.yaml:2:41: env_settings.num_workers (each Unity player has a worker process of its own)"
    ]


def test_what_players_without_graphics_do_not_use_is_named() -> None:
    text = """\
behaviors: {A: {}}
env_settings: {env: Ball, metrics: [score]}
engine_settings: {no_graphics: true, no_graphics_monitor: true, height: 3, time_scale: 2}
"""
    assert find_unused(parse(text)) == [
        (
            "no effect: c.yaml:2:27: env_settings.metrics (Unity players report statistics of their own);"
            " c.yaml:3:38: engine_settings.no_graphics_monitor, c.yaml:3:65: engine_settings.height"
            " (with no_graphics nothing is drawn)"
        )
    ]


def test_behaviors_may_be_left_to_a_player_where_there_are_defaults() -> None:
    defaults = "default_settings: {trainer_type: ppo}\n"
    assert find_unsupported(parse(defaults)) == []
    assert find_unsupported(parse(defaults, **{"env_settings.env": "builds/3DBall"})) == []
    none = "behaviors: must have a key for each behavior, got none"
    assert find_unsupported(parse(defaults, **{"env_settings.env": "mlagents:my_world:Walkers"})) == []
    assert find_unsupported(parse(defaults, **{"env_settings.env": "my_world:Walkers"})) == []
    one = "gymnasium:CartPole-v1 has one behavior, which the key names"
    assert find_unsupported(parse(defaults, **CARTPOLE)) == [f"c.yaml:1:1: {none}. {one}"]
    assert find_unsupported(parse("debug: false")) == [f"c.yaml:1:1: {none}"]


@pytest.mark.skipif(not MLAGENTS, reason="MLAGENTS_DATA names no folder of ML-Agents' files")
def test_every_file_of_mlagents_starts_in_a_player_where_its_trainer_exists(tmp_path: Path) -> None:
    player = tmp_path / "Ball.x86_64"
    player.write_text("#!/bin/sh\n")
    player.chmod(0o755)
    folder = Path(str(MLAGENTS)) / "config"
    starting = set()
    for path in folder.rglob("*.yaml"):
        overrides = {"env_settings.env": str(tmp_path / "Ball"), "checkpoint_settings.results_dir": str(tmp_path)}
        refused = refusals(load_config(path, overrides))
        assert [line for line in refused if "not supported yet" not in line] == [], path
        if not refused:
            starting.add(path.relative_to(folder).with_suffix("").as_posix())
    every = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml")}
    assert starting == every - (EXPECTED.keys() - {"ppo/WallJump"})


@pytest.mark.parametrize("env", ["toy:line", "unity:builds/Ball"])
def test_wrappers_are_refused_for_an_environment_that_can_have_none(env: str) -> None:
    text = f"behaviors: {{A: {{}}}}\nenv_settings:\n  env: {env}\n  wrappers: ['gymnasium.wrappers:TimeLimit']\n"
    (line,) = find_unsupported(parse(text))
    assert line.startswith(f"c.yaml:4:3: env_settings.wrappers: must be left out: {env} can have none, only ")
    for other in ("gymnasium:CartPole-v1", "my_world:Corridor", "pettingzoo:mpe2.simple_spread_v3"):
        assert "wrappers" not in "".join(find_unsupported(parse(text.replace(env, other))))


def test_wrapper_that_does_not_exist_is_refused_before_the_start() -> None:
    text = (
        "behaviors: {A: {}}\nenv_settings: {env: 'gymnasium:CartPole-v1', wrappers: ['gymnasium.wrappers:TimeLimi']}\n"
    )
    assert any("env_settings.wrappers: gymnasium.wrappers:TimeLimi: module" in line for line in refusals(parse(text)))


@pytest.mark.parametrize("wrapper", ["TimeLimit", "{'a:B': {}, 'c:D': {}}", "{'a:B': 3}"])
def test_wrapper_that_is_no_name_is_refused_with_its_place(wrapper: str) -> None:
    with pytest.raises(ConfigError, match=r"env_settings\.wrappers\[0\].*: must be "):
        parse(f"behaviors: {{A: {{}}}}\nenv_settings: {{env: 'gymnasium:CartPole-v1', wrappers: [{wrapper}]}}\n")


def test_few_updates_are_noted_by_their_number() -> None:
    text = """\
behaviors:
  A: {max_steps: 100000}
  B: {max_steps: 1e6}
  C: {trainer_type: sac, max_steps: 40, hyperparameters: {buffer_init_steps: 20, steps_per_update: 2}}
"""
    assert few_updates_note(parse(text)) == (
        "fewer than 20 updates: A makes 9 in 100,000 steps; C makes 10 in 40 steps."
        " Update more often (a lower buffer_size) or raise max_steps"
    )
    assert few_updates_note(parse("behaviors: {A: {max_steps: 204800}}")) is None
    assert few_updates_note(parse("default_settings: {max_steps: 1000}")) is not None
    playing = "checkpoint_settings: {inference: true, resume: true}\n"
    assert few_updates_note(parse(text + playing)) is None


def test_presets_for_the_environment_of_a_file_without_hyperparameters_are_named() -> None:
    plain = "behaviors: {A: {}}\nenv_settings: {env: 'gymnasium:MountainCarContinuous-v0'}\n"
    assert preset_note(parse(plain)) == (
        "hyperparameters are ML-Agents' defaults; for gymnasium:MountainCarContinuous-v0 try"
        " ppo/MountainCarContinuous or sac/MountainCarContinuous"
    )
    tuned = plain.replace("{A: {}}", "{A: {trainer_type: ppo, hyperparameters: {beta: 0.1}}}")
    elsewhere = plain.replace("MountainCarContinuous", "Blackjack")
    assert preset_note(parse(elsewhere)) == (
        "hyperparameters are ML-Agents' defaults; for gymnasium:Blackjack-v0 try ppo/gymnasium or sac/gymnasium"
    )
    player = plain.replace("gymnasium:MountainCarContinuous-v0", "builds/3DBall")
    for text in (tuned, player, plain + "checkpoint_settings: {inference: true, resume: true}\n"):
        assert preset_note(parse(text)) is None
