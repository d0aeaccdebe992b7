"""A game of Atari from a file to a policy, where the extra `atari` is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_tui.engine.sampling.environments.factory import make_environments
from rl_tui.tui.cli import main

pytest.importorskip("ale_py", reason="the extra atari is not installed")

PONG = "gymnasium:ale_py:ALE/Pong-v5"
CONFIG = f"""
behaviors:
  Pong:
    trainer_type: ppo
    hyperparameters: {{batch_size: 16, buffer_size: 32, num_epoch: 1}}
    network_settings: {{hidden_units: 8, num_layers: 1, vis_encode_type: simple}}
    max_steps: 64
env_settings:
  env: {PONG}
  env_kwargs: {{obs_type: grayscale, max_num_frames_per_episode: 60}}
  num_envs: 2
  wrappers:
    - gymnasium.wrappers:FrameStackObservation: {{stack_size: 4}}
"""


def test_stacked_frames_are_trained_exported_and_evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pong.yaml").write_text(CONFIG)
    assert main(["pong.yaml", "--no-ui", "--run-id", "pong"]) == 0
    assert (tmp_path / "results/pong/Pong.onnx").is_file()
    assert main(["evaluate", "pong", "--episodes", "1", "--onnx", "--deterministic"]) == 0
    assert "mean length           15\nepisodes               1" in capsys.readouterr().out


def test_number_of_copies_does_not_change_what_is_observed() -> None:
    """Gymnasium's vectorized form of the same id has other images."""
    specs = [make_environments(PONG, "B", range(count), {})[0].specs for count in (1, 3)]
    assert specs[0]["B"].observations[0].shape == (210, 160, 3)
    assert specs[0] == specs[1]
