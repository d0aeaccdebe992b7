"""Training analytics: the first player receives how it is trained, if the user and the player want that."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest

from tests.sampling.unity.playing import play, playing
from tests.unity_player.analytics import FIELDS
from tests.unity_player.log import notes

ENVIRONMENT: dict[str, Any] = {
    "mlagents_version": "rl-tui 1", "mlagents_envs_version": "1", "python_version": "3.11.7", "torch_version": "ü",
    "torch_device_type": "cpu", "num_envs": 300, "num_environment_parameters": 0, "run_options": "{}" * 100,
}  # fmt: skip
BEHAVIOR: dict[str, Any] = {
    "trainer_type": "ppo", "extrinsic_reward_enabled": True, "gail_reward_enabled": False,
    "curiosity_reward_enabled": False, "rnd_reward_enabled": True, "behavioral_cloning_enabled": False,
    "recurrent_enabled": True, "visual_encoder": "simple", "num_network_layers": 2, "config": "{}",
    "num_network_hidden_units": 128, "trainer_threaded": True, "self_play_enabled": False,
    "curriculum_enabled": True,
}  # fmt: skip
ANALYTICS = {"environment": ENVIRONMENT, "behaviors": {"Early": BEHAVIOR, "": {**BEHAVIOR, "trainer_type": "sac"}}}
CROWD = [
    {"name": "Early?team=0", "observations": [[2]], "continuous": 1},
    {"name": "Early?team=1", "observations": [[2]], "continuous": 1},
    {"name": "Late?team=0", "observations": [[4]], "branches": [5], "late": 3},
]


def received(folder: Path, *arguments: str, number: int = 0, **settings: object) -> tuple[list[dict[str, object]], str]:
    """What a player hears of the training, and the warnings."""
    with playing(folder, "--task", "crowd", "--spec", json.dumps(CROWD), *arguments, number=number, **settings) as made:
        play(made, 5)
        warnings = "\n".join(text for _, text in made.pop_notes())
    lines = notes(folder / "logs" / f"Player-{number}.log")
    return [line for line in lines if line.get("channel") == "training analytics"], warnings


def hashed(name: str) -> str:
    return hmac.new(b"unity.ml-agents", name.encode(), hashlib.sha256).hexdigest()  # as ML-Agents 1.1.0


def test_first_player_receives_the_run_and_once_each_behavior_that_appears(tmp_path: Path) -> None:
    messages, warnings = received(tmp_path, analytics=ANALYTICS)
    of_run = {"channel": "training analytics", "kind": "TrainingEnvironmentInitialized", **ENVIRONMENT}
    of_one = {"channel": "training analytics", "kind": "TrainingBehaviorInitialized", **BEHAVIOR}
    early = {**of_one, "behavior_name": hashed("Early")}
    late = {**of_one, "behavior_name": hashed("Late"), "trainer_type": "sac"}
    assert messages == [of_run, early, late]
    assert of_run.keys() | of_one.keys() >= {name for fields in FIELDS.values() for name, _ in fields.values()} - {
        "behavior_name"
    }
    assert warnings == ""


@pytest.mark.parametrize(
    ("arguments", "number", "analytics", "warning"),
    [
        ((), 0, None, ""),
        ((), 1, ANALYTICS, ""),
        (("--without", "trainingAnalytics"), 0, ANALYTICS, "training_analytics: the player does not support them"),
    ],
)
def test_player_receives_nothing(
    arguments: tuple[str, ...], number: int, analytics: object, warning: str, tmp_path: Path
) -> None:
    messages, warnings = received(tmp_path, *arguments, number=number, analytics=analytics)
    assert messages == []
    assert warnings.startswith(warning) if warning else warnings == ""
