"""The defaults that a run's configuration is compared with."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_tui.engine.config.default_configuration import default_configuration
from rl_tui.engine.config.loading import effective_yaml, load_config, parse_config
from rl_tui.engine.config.presets import preset_names, profile_names, read_preset
from rl_tui.engine.config.yaml_document import read_yaml
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.learning.bc.settings import BCSettings

PLAIN = "behaviors:\n  A:\n    trainer_type: {trainer}\nenv_settings:\n  env: gymnasium:A-v0\n"
WITH_SECTIONS = """\
behaviors:
  A:
    trainer_type: sac
    network_settings:
      memory: {sequence_length: 32}
    self_play: {save_steps: 1000}
    evaluation: {interval: 1000}
    behavioral_cloning: {demo_path: a.demo, strength: 0.5}
    reward_signals:
      extrinsic: {gamma: 0.9}
      curiosity: {strength: 0.02}
      gail: {demo_path: b.demo, strength: 0.5}
env_settings:
  env: gymnasium:A-v0
  num_envs: 3
environment_parameters:
  gravity: 9.81
"""


def effective(text: str) -> str:
    """All settings of a file, as a run writes them."""
    return effective_yaml(parse_config(text.encode(), "the file"))


@pytest.mark.parametrize("trainer", ["ppo", "sac", "poca"])
def test_file_without_settings_is_its_own_default(trainer: str) -> None:
    text = effective(PLAIN.format(trainer=trainer))
    found = default_configuration(text)
    assert read_yaml(found.text.encode()).values == read_yaml(text.encode()).values
    assert found.added == ()


def test_demonstrations_that_a_trainer_needs_stay_in_its_defaults() -> None:
    of_bc = "behaviors:\n  A:\n    trainer_type: bc\n    hyperparameters: {demo_path: a.demo, batch_size: 3}\n"
    (behavior,) = parse_config(default_configuration(effective(of_bc)).text.encode(), "the defaults").behaviors.values()
    assert behavior.hyperparameters == BCSettings(demo_path="a.demo")


def test_optional_sections_have_their_own_defaults_and_are_named() -> None:
    found = default_configuration(effective(WITH_SECTIONS))
    behavior = parse_config(found.text.encode(), "the defaults").behaviors["A"]
    assert found.added == (
        ("behaviors", "A", "network_settings", "memory"),
        ("behaviors", "A", "self_play"),
        ("behaviors", "A", "behavioral_cloning"),
        ("behaviors", "A", "evaluation"),
        ("behaviors", "A", "reward_signals", "curiosity"),
        ("behaviors", "A", "reward_signals", "gail"),
    )
    assert behavior.network_settings.memory is not None
    assert behavior.network_settings.memory.sequence_length == 64
    assert behavior.self_play is not None
    assert behavior.self_play.save_steps == 20000
    assert behavior.evaluation is not None
    assert behavior.evaluation.interval == 50000
    assert behavior.behavioral_cloning is not None
    assert (behavior.behavioral_cloning.demo_path, behavior.behavioral_cloning.strength) == ("a.demo", 1.0)
    signals = {name: (signal.gamma, signal.strength) for name, signal in behavior.reward_signals.items()}
    assert signals == {"extrinsic": (0.99, 1.0), "curiosity": (0.99, 1.0), "gail": (0.99, 1.0)}


def test_what_the_run_is_about_stays() -> None:
    config = parse_config(default_configuration(effective(WITH_SECTIONS)).text.encode(), "the defaults")
    assert config.env_settings.env == "gymnasium:A-v0"
    assert config.env_settings.num_envs == 1
    assert config.environment_parameters is not None
    assert set(config.environment_parameters) == {"gravity"}


@pytest.mark.parametrize("name", [name for name in preset_names() if name not in profile_names()])
def test_every_preset_has_defaults(name: str, tmp_path: Path) -> None:
    path = tmp_path / "preset.yaml"
    path.write_bytes(read_preset(name).encode())
    config = load_config(path)
    found = parse_config(default_configuration(effective_yaml(config)).text.encode(), "the defaults")
    assert set(found.behaviors) == set(config.behaviors)


def test_trainer_that_is_not_installed_has_no_defaults() -> None:
    with pytest.raises(ConfigError, match="trainer_type"):
        default_configuration(PLAIN.format(trainer="mine"))
