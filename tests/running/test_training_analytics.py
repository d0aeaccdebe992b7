"""What analytics receive of a training holds settings, and no word that the user chose."""

from __future__ import annotations

import json

from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.running.training_analytics import describe_training
from rl_tui.engine.sampling.environments.training_analytics import hashed

FILE = """\
behaviors:
  SECRET:
    trainer_type: sac
    network_settings: {hidden_units: 64, num_layers: 3, vis_encode_type: resnet, memory: {}}
    reward_signals: {extrinsic: {}, gail: {demo_path: a/SECRET}, rnd: {}}
    behavioral_cloning: {demo_path: SECRET.demo}
    init_path: SECRET.pt
    threaded: true
default_settings: {trainer_type: sac, self_play: {}, hyperparameters: {tau: 0.5}}
env_settings:
  env: {SECRET: SECRET/player}
  env_args: [--SECRET]
  env_kwargs: {SECRET: {side_channels: ["SECRET:Own"]}}
  num_envs: 3
  training_analytics: true
checkpoint_settings: {run_id: SECRET, results_dir: SECRET, initialize_from: SECRET}
environment_parameters:
  SECRET:
    curriculum:
      - {name: SECRET1, value: 1, completion_criteria: {behavior: SECRET, measure: reward, threshold: 1}}
      - {name: SECRET2, value: 2}
"""


def test_words_of_the_user_are_hashed_and_settings_are_not() -> None:
    sent = describe_training(parse_config(FILE.encode(), "c.yaml", {}), "cuda")
    assert "SECRET" not in json.dumps([sent.environment, *sent.behaviors.values()])
    options = json.loads(str(sent.environment["run_options"]))
    assert options["behaviors"].keys() == {hashed("SECRET")}
    assert options["environment_parameters"].keys() == options["env_settings"]["env"].keys() == {hashed("SECRET")}
    network = options["behaviors"][hashed("SECRET")]["network_settings"]
    assert (network["hidden_units"], network["vis_encode_type"]) == (64, "resnet")
    assert options["checkpoint_settings"]["run_id"] == hashed("SECRET")


def test_fields_say_how_each_behavior_is_trained() -> None:
    sent = describe_training(parse_config(FILE.encode(), "c.yaml", {}), "cuda")
    of_run = sent.environment
    assert (of_run["torch_device_type"], of_run["num_envs"], of_run["num_environment_parameters"]) == ("cuda", 3, 1)
    own, others = (dict(sent.behaviors[name]) for name in ("SECRET", ""))
    assert json.loads(str(own.pop("config")))["max_steps"] == 500000
    assert own == {
        "trainer_type": "sac",
        "extrinsic_reward_enabled": True,
        "gail_reward_enabled": True,
        "curiosity_reward_enabled": False,
        "rnd_reward_enabled": True,
        "behavioral_cloning_enabled": True,
        "recurrent_enabled": True,
        "visual_encoder": "resnet",
        "num_network_layers": 3,
        "num_network_hidden_units": 64,
        "trainer_threaded": True,
        "self_play_enabled": True,  # as by default
        "curriculum_enabled": True,
    }
    assert (others["recurrent_enabled"], others["self_play_enabled"], others["curriculum_enabled"]) == (
        False,
        True,
        False,
    )
