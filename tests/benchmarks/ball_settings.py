"""ML-Agents' own settings for 3DBall, whose numbers test_settings.py compares with its files."""

from __future__ import annotations

from typing import Any

import yaml

BEHAVIOR = "3DBall"
_SHARED = """
keep_checkpoints: 5
time_horizon: 1000
summary_freq: 12000
reward_signals:
  extrinsic: {gamma: 0.99, strength: 1.0}
"""
PPO = f"""
trainer_type: ppo
hyperparameters:
  batch_size: 64
  buffer_size: 12000
  learning_rate: 0.0003
  beta: 0.001
  epsilon: 0.2
  lambd: 0.99
  num_epoch: 3
  learning_rate_schedule: linear
network_settings: {{normalize: true, hidden_units: 128, num_layers: 2, vis_encode_type: simple}}
max_steps: 500000
{_SHARED}
"""
SAC = f"""
trainer_type: sac
hyperparameters:
  learning_rate: 0.0003
  learning_rate_schedule: constant
  batch_size: 64
  buffer_size: 200000
  buffer_init_steps: 0
  tau: 0.005
  steps_per_update: 10.0
  save_replay_buffer: false
  init_entcoef: 0.5
  reward_signal_steps_per_update: 10.0
network_settings: {{normalize: true, hidden_units: 64, num_layers: 2, vis_encode_type: simple}}
max_steps: 200000
{_SHARED}
"""
TRAINERS = {"ppo": PPO, "sac": SAC}


def settings(trainer: str) -> dict[str, Any]:
    """What ML-Agents' file says of the behavior."""
    found: dict[str, Any] = yaml.safe_load(TRAINERS[trainer])
    return found


def configuration(trainer: str, **changed: object) -> str:
    """The text of a file with these keys of the behavior changed."""
    return yaml.safe_dump({"behaviors": {BEHAVIOR: settings(trainer) | changed}})
