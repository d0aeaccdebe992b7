"""Files of older versions of ML-Agents: read as today's, noted, and rewritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.legacy.upgrade import upgrade
from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.config.network import MemorySettings
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.support import list_warnings
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.learning.ppo.settings import PPOSettings
from rl_tui.engine.learning.rewards.settings import ExtrinsicSettings, GAILSettings
from rl_tui.engine.learning.sac.settings import SACSettings
from rl_tui.tui.cli import main

# The settings of ML-Agents 0.15 for SAC, all behaviors in one file.
SAC = """\
default:
    trainer: sac
    batch_size: 128
    buffer_size: 50000
    buffer_init_steps: 0
    hidden_units: 128
    init_entcoef: 1.0
    learning_rate: 3.0e-4
    learning_rate_schedule: constant
    max_steps: 5.0e5
    memory_size: 128
    normalize: false
    num_update: 1
    train_interval: 1
    num_layers: 2
    time_horizon: 64
    sequence_length: 64
    summary_freq: 10000
    tau: 0.005
    use_recurrent: false
    vis_encode_type: simple
    reward_signals:
        extrinsic:
            strength: 1.0
            gamma: 0.99

3DBall:
    normalize: true
    batch_size: 64
    buffer_size: 12000
    summary_freq: 12000
    time_horizon: 1000
    hidden_units: 64
    init_entcoef: 0.5
    num_update: 2

Crawler:
    train_interval: 2
    num_update: 4
    reward_signals:
        reward_signal_num_update: 8
        gail:
            strength: 0.02
            encoding_size: 64
            demo_path: demos/ExpertCrawler.demo

Hallway:
    sequence_length: 32
    memory_size: 256
    gamma: 0.95
    beta: 1.0e-2
    max_steps: 1e7
    use_recurrent: true

Tennis:
    pretraining:
        demo_path: demos/Tennis.demo
        steps: 10000
    self_play:
        window: 5
        play_against_current_self_ratio: 0.3
"""

# ML-Agents 0.6: before there were reward_signals.
CURIOUS = """\
PyramidsBrain:
    trainer: ppo
    use_curiosity: true
    curiosity_strength: 0.02
    curiosity_enc_size: 256
    gamma: 0.98
    num_epoch: 5
    use_recurrent: false
"""

# Between 0.16 and 0.17: flat behaviors under `behaviors`, samplers without sampler_parameters.
RANDOMIZED = """\
behaviors:
    3DBall:
        trainer: ppo
        batch_size: 64
        lambd: 0.99
        normalize: true
        use_recurrent: false
parameter_randomization:
    resampling-interval: 2000
    mass:
        sampler-type: "uniform"
        min_value: 0.5
        max_value: 10
    gravity:
        sampler-type: "multirange_uniform"
        intervals: [[7, 10], [15, 20]]
"""

# 0.17 and 0.18.
CURRICULUM = """\
behaviors:
  BigWallJump:
    trainer_type: ppo
curriculum:
  BigWallJump:
    measure: progress
    thresholds: [0.1, 0.3]
    min_lesson_length: 100
    parameters:
      big_wall_min_height: [0.0, 4, 6.0]
      big_wall_max_height: [4.0, 7.0, 8.0]
"""

# What ML-Agents' own converter makes of a curriculum.
NAMED_LESSONS = """\
environment_parameters:
  height:
    curriculum:
    - Lesson0:
        completion_criteria: {behavior: A, measure: progress, threshold: 0.1}
        value: 1.5
    - Lesson1:
        value: {sampler_type: uniform, sampler_parameters: {min_value: -2}}
behaviors: {A: {}}
"""

OLD_KEYS = """\
default_settings:
  trainer: sac
  framework: pytorch
behaviors:
  A:
    hyperparameters: {batch_size: 64, num_update: 4, train_interval: 2}
    use_recurrent: true
    memory_size: 32
    reward_signals:
      extrinsic: {}
      rnd: {encoding_size: 64}
  B:
    hyperparameters: {steps_per_update: 10, train_interval: 2, reward_signal_num_update: 5}
    network_settings: {normalize: true, use_recurrent: false, memory_size: 32}
"""

FILES = {
    "sac": SAC,
    "curious": CURIOUS,
    "randomized": RANDOMIZED,
    "curriculum": CURRICULUM,
    "named lessons": NAMED_LESSONS,
    "old keys": OLD_KEYS,
    "default alone": "default: {trainer: sac, tau: 0.01}\nenv_settings: {env: {A: 'gymnasium:Pendulum-v1'}}\n",
}


def parse(text: str, **overrides: object) -> RunConfig:
    return parse_config(text.encode(), "old.yaml", overrides)


def errors(text: str) -> list[str]:
    with pytest.raises(ConfigError) as error:
        parse(text)
    return str(error.value).split("\n")


def sac(behavior: BehaviorConfig) -> SACSettings:
    assert isinstance(behavior.hyperparameters, SACSettings)
    return behavior.hyperparameters


# What they mean


def test_every_flat_behavior_is_merged_over_default() -> None:
    behaviors = parse(SAC).behaviors
    assert list(behaviors) == ["3DBall", "Crawler", "Hallway", "Tennis"]
    ball = behaviors["3DBall"]
    assert (sac(ball).batch_size, sac(ball).buffer_size, sac(ball).init_entcoef, sac(ball).tau) == (
        64,
        12000,
        0.5,
        0.005,
    )
    assert (ball.network_settings.normalize, ball.network_settings.hidden_units) == (True, 64)
    assert (ball.summary_freq, ball.time_horizon, ball.max_steps) == (12000, 1000, 500000)
    assert ball.reward_signals == {"extrinsic": ExtrinsicSettings(strength=1.0, gamma=0.99)}
    assert ball.network_settings.memory is None


def test_updates_per_training_are_converted_to_steps_per_update() -> None:
    behaviors = parse(SAC).behaviors
    assert sac(behaviors["3DBall"]).steps_per_update == 0.5  # two updates at every step
    crawler = sac(behaviors["Crawler"])
    assert crawler.steps_per_update == 0.5  # four at every second
    assert crawler.reward_signal_steps_per_update == 0.25  # eight at every second
    assert sac(behaviors["Hallway"]).steps_per_update == 1.0


def test_reward_signals_of_a_flat_behavior_replace_those_of_default() -> None:
    signals = parse(SAC).behaviors["Crawler"].reward_signals
    assert list(signals) == ["gail"]
    assert isinstance(signals["gail"], GAILSettings)
    assert (signals["gail"].strength, signals["gail"].network_settings.hidden_units) == (0.02, 64)


def test_recurrent_network_gets_a_memory() -> None:
    hallway = parse(SAC).behaviors["Hallway"]
    assert hallway.network_settings.memory == MemorySettings(sequence_length=32, memory_size=256)
    assert hallway.max_steps == 10_000_000


def test_renamed_sections_and_keys_are_understood() -> None:
    tennis = parse(SAC).behaviors["Tennis"]
    assert tennis.behavioral_cloning is not None
    assert (tennis.behavioral_cloning.demo_path, tennis.behavioral_cloning.steps) == ("demos/Tennis.demo", 10000)
    assert tennis.self_play is not None
    assert (tennis.self_play.window, tennis.self_play.play_against_latest_model_ratio) == (5, 0.3)


def test_rewards_from_before_there_were_reward_signals() -> None:
    behavior = parse(CURIOUS).behaviors["PyramidsBrain"]
    curiosity = behavior.reward_signals["curiosity"]
    assert behavior.reward_signals["extrinsic"].gamma == curiosity.gamma == 0.98
    assert (curiosity.strength, curiosity.network_settings.hidden_units) == (0.02, 256)
    assert isinstance(behavior.hyperparameters, PPOSettings)
    assert behavior.hyperparameters.num_epoch == 5
    assert list(parse("A: {trainer: ppo, use_curiosity: false}").behaviors["A"].reward_signals) == ["extrinsic"]


def test_first_name_of_the_simple_encoder_is_understood() -> None:
    config = parse("A: {trainer: sac, vis_encode_type: default}\nB: {trainer: ppo, vis_encode_type: resnet}\n")
    encoders = {name: behavior.network_settings.vis_encode_type for name, behavior in config.behaviors.items()}
    assert encoders == {"A": "simple", "B": "resnet"}
    today = parse("behaviors: {A: {network_settings: {vis_encode_type: default}}}")
    assert today.behaviors["A"].network_settings.vis_encode_type == "simple"


def test_last_of_two_equal_keys_counts_in_a_flat_file_as_it_did_then() -> None:
    text = """\
A:
    trainer: sac
    batch_size: 64
    batch_size: 128
    reward_signals: {extrinsic: {gamma: 0.9}}
B: {trainer: ppo, max_steps: 5}
B:
    trainer: sac
    max_steps: 7
"""
    config = parse(text)
    assert config.behaviors["A"].hyperparameters.batch_size == 128
    assert (config.behaviors["B"].trainer_type, config.behaviors["B"].max_steps) == ("sac", 7)
    assert parse(upgrade(text.encode(), "old.yaml").content.decode()).behaviors == config.behaviors


def test_flat_behaviors_may_be_under_behaviors_already() -> None:
    config = parse(RANDOMIZED)
    ball = config.behaviors["3DBall"]
    assert isinstance(ball.hyperparameters, PPOSettings)
    assert (ball.hyperparameters.batch_size, ball.hyperparameters.lambd) == (64, 0.99)
    assert ball.network_settings.normalize
    mixed = "behaviors: {default: {trainer: sac, tau: 0.1}, A: {tau: 0.2}, B: {}, C: {trainer_type: ppo}}"
    behaviors = parse(mixed).behaviors
    assert [(name, behavior.trainer_type) for name, behavior in behaviors.items()] == [
        ("A", "sac"),
        ("B", "sac"),
        ("C", "ppo"),
    ]
    assert (sac(behaviors["A"]).tau, sac(behaviors["B"]).tau) == (0.2, 0.1)


def test_randomized_parameters_are_converted_to_environment_parameters() -> None:
    parameters = parse(RANDOMIZED).model_dump()["environment_parameters"]
    assert list(parameters) == ["mass", "gravity"]
    assert parameters["mass"]["sampler_parameters"] == {"min_value": 0.5, "max_value": 10.0, "seed": -1}
    assert parameters["gravity"]["sampler_type"] == "multirangeuniform"
    assert parameters["gravity"]["sampler_parameters"]["intervals"] == [[7.0, 10.0], [15.0, 20.0]]


def test_curriculum_is_converted_to_lessons_of_each_parameter() -> None:
    parameters = parse(CURRICULUM).model_dump()["environment_parameters"]
    assert list(parameters) == ["big_wall_min_height", "big_wall_max_height"]
    first, second, last = parameters["big_wall_min_height"]["curriculum"]
    assert [first["value"], second["value"], last["value"]] == [0.0, 4.0, 6.0]
    assert [first["name"], second["name"], last["name"]] == ["Lesson0", "Lesson1", "Lesson2"]
    assert second["completion_criteria"] == {
        "behavior": "BigWallJump",
        "measure": "progress",
        "min_lesson_length": 100,
        "signal_smoothing": False,
        "threshold": 0.3,
        "require_reset": False,
    }
    assert last["completion_criteria"] is None


def test_lessons_may_be_named_by_a_key() -> None:
    lessons = parse(NAMED_LESSONS).model_dump()["environment_parameters"]["height"]["curriculum"]
    assert [lesson["name"] for lesson in lessons] == ["Lesson0", "Lesson1"]
    assert lessons[0]["completion_criteria"]["threshold"] == 0.1


def test_old_keys_are_understood_in_a_file_of_today() -> None:
    config = parse(OLD_KEYS)
    a, b = config.behaviors["A"], config.behaviors["B"]
    assert (a.trainer_type, sac(a).batch_size, sac(a).steps_per_update) == ("sac", 64, 0.5)
    assert a.network_settings.memory == MemorySettings(memory_size=32, sequence_length=64)
    assert a.reward_signals["rnd"].network_settings.hidden_units == 64
    assert (sac(b).steps_per_update, sac(b).reward_signal_steps_per_update) == (10.0, 2.0)
    assert (b.network_settings.normalize, b.network_settings.memory) == (True, None)


def test_number_of_updates_among_the_hyperparameters_is_read_as_later_documentation_has_it() -> None:
    """There the name means steps; under reward_signals and in flat files it is a number of updates."""
    text = "behaviors: {A: {trainer_type: sac, hyperparameters: {steps_per_update: 10, reward_signal_num_update: 20}}}"
    assert sac(parse(text).behaviors["A"]).reward_signal_steps_per_update == 20.0
    text = "behaviors: {A: {trainer_type: sac, reward_signals: {reward_signal_num_update: 4, extrinsic: {}}}}"
    assert sac(parse(text).behaviors["A"]).reward_signal_steps_per_update == 0.25


def test_default_alone_holds_for_the_behaviors_of_the_environments() -> None:
    config = parse(FILES["default alone"])
    assert config.default_settings is not None
    assert sac(config.behaviors["A"]).tau == 0.01


def test_flags_reach_the_settings_of_an_old_file() -> None:
    config = parse(SAC, **{"behaviors.3DBall.max_steps": 7, "env_settings.env": "gymnasium:Pendulum-v1"})
    assert (config.behaviors["3DBall"].max_steps, config.behaviors["Crawler"].max_steps) == (7, 500000)


# What is said about them


def test_configuration_written_by_mlagents_is_no_legacy_file() -> None:
    """Each of them contains encoding_size: null."""
    assert list_warnings(parse("behaviors: {A: {reward_signals: {rnd: {encoding_size: null}}}}")) == []


# Rewriting them


@pytest.mark.parametrize("name", FILES)
def test_rewritten_file_means_the_same_and_needs_no_note(name: str) -> None:
    upgraded = upgrade(FILES[name].encode(), "old.yaml")
    assert upgraded.notes
    before, after = parse(FILES[name]), parse_config(upgraded.content, "new.yaml")
    assert after.model_dump() == before.model_dump()
    assert list_warnings(after) == []
    again = upgrade(upgraded.content, "new.yaml")
    assert (again.content, again.notes) == (upgraded.content, ())


def test_rewritten_file_has_the_written_keys_in_their_order() -> None:
    text = upgrade(CURIOUS.replace("gamma: 0.98", "max_steps: 5.0e5").encode(), "old.yaml").content.decode()
    assert text == (
        "behaviors:\n"
        "  PyramidsBrain:\n"
        "    trainer_type: ppo\n"
        "    hyperparameters:\n"
        "      num_epoch: 5\n"
        "    reward_signals:\n"
        "      extrinsic: {}\n"
        "      curiosity:\n"
        "        strength: 0.02\n"
        "        network_settings:\n"
        "          hidden_units: 256\n"
        "    max_steps: 500000\n"
    )


def test_command_writes_a_file_that_trains_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(SAC)
    assert main(["upgrade-config", str(old), str(new)]) == 0
    assert [line.partition(": ")[0] for line in capsys.readouterr().out.splitlines()] == [f"{old}:1:1", str(new)]
    assert parse_config(new.read_bytes(), "new.yaml").model_dump() == parse(SAC).model_dump()
    assert old.read_text() == SAC


def test_command_copies_a_file_of_today(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text("# kept\nbehaviors: {A: {}}\n")
    assert main(["upgrade-config", str(old), str(new)]) == 0
    assert capsys.readouterr().out.startswith(f"{new}: ")
    assert new.read_text() == "# kept\nbehaviors: {A: {}}\n"


def test_command_replaces_a_file_only_with_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "old.yaml"
    path.write_text(CURIOUS)
    assert main(["upgrade-config", str(path), str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"{path}: ")
    assert path.read_text() == CURIOUS
    assert main(["upgrade-config", str(path), str(path), "--force"]) == 0
    assert path.read_text().startswith("behaviors:\n")


def test_command_writes_nothing_for_an_invalid_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text("A: {trainer: sac, max_steps: 0}\n")
    assert main(["upgrade-config", str(old), str(new)]) == 2
    assert capsys.readouterr().err.startswith(f"{old}:1:30: A.max_steps: ")
    assert not new.exists()
    old.write_text(CURIOUS)
    assert main(["upgrade-config", str(old), str(tmp_path / "none/new.yaml")]) == 2
    assert capsys.readouterr().err.startswith(f"{tmp_path}/none/new.yaml: ")
    assert main(["upgrade-config", str(tmp_path / "none"), str(new)]) == 2
    assert capsys.readouterr().err.startswith(f"{tmp_path}/none: ")
