"""The settings of a run that are not the defaults."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rl_tui.engine.config.loading import effective_yaml, parse_config
from rl_tui.engine.storage.run_settings import changed_settings, settings_of_run

TEXT = """\
behaviors:
  Walker:
    trainer_type: sac
    hyperparameters: {learning_rate: 1.0e-3, steps_per_update: 3, learning_rate_schedule: constant}
    network_settings: {memory: {}, hidden_units: 128}
    reward_signals: {extrinsic: {gamma: 0.9}}
    checkpoint_interval: 500000
  Plain: {}
env_settings: {env: {Walker: "toy:line", Plain: "toy:line"}, num_envs: 4, seed: 7}
environment_parameters: {size: 3}
writers: {tensorboard: null}
checkpoint_settings: {run_id: a}
"""
MEMORY = {"sequence_length": 64, "memory_size": 128}
CHANGED = {
    "behaviors.Walker.trainer_type": "sac",
    "behaviors.Walker.hyperparameters.learning_rate": 1e-3,
    "behaviors.Walker.hyperparameters.steps_per_update": 3,
    "behaviors.Walker.network_settings.memory": MEMORY,
    "behaviors.Walker.reward_signals.extrinsic.gamma": 0.9,
    "behaviors.Plain": {},
    "env_settings.num_envs": 4,
    "env_settings.seed": 7,
    "env_settings.env": {"Walker": "toy:line", "Plain": "toy:line"},
    "writers": {"tensorboard": None},
}


def test_only_what_differs_is_named_also_where_every_default_is_written_out(tmp_path: Path) -> None:
    """What follows from another setting, such as the pace of reward signals, is a default."""
    config = parse_config(TEXT.encode(), "c.yaml")
    found = changed_settings(config)
    assert list(found.pop("environment_parameters")) == ["size"]  # type: ignore[arg-type] # a mapping
    assert found == CHANGED
    (tmp_path / "configuration.yaml").write_text(effective_yaml(config))
    of_run = settings_of_run(tmp_path)
    assert of_run is not None
    of_run.pop("environment_parameters")
    assert of_run == CHANGED
    assert changed_settings(parse_config(b"behaviors: {}", "c.yaml")) == {}


def test_what_a_trainer_needs_is_named_and_the_rest_only_where_it_differs() -> None:
    text = "behaviors: {A: {trainer_type: bc, hyperparameters: {demo_path: a.demo, batch_size: 3}}}"
    found = changed_settings(parse_config(text.encode(), "c.yaml"))
    assert found["behaviors.A.trainer_type"] == "bc"
    path = "behaviors.A.hyperparameters"
    assert {key for key in found if key.startswith(path)} == {f"{path}.demo_path", f"{path}.batch_size"}


@pytest.mark.parametrize("content", [None, "behaviors: {A: {trainer_type: gone}}", "a: [", "pipe"])
def test_settings_that_cannot_be_read_are_unknown(tmp_path: Path, content: str | None) -> None:
    """A list of runs waits for none of them, whatever is in the place of its file."""
    path = tmp_path / "configuration.yaml"
    if content == "pipe":
        os.mkfifo(path)
    elif content is not None:
        path.write_text(content)
    assert settings_of_run(tmp_path) is None
