"""What is learned in Unity players, by the real command line; a stand-in plays them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rl_tui.engine.session.messages import MetricsReported
from tests.end_to_end.program import ROOT, events_of, finish, start
from tests.unity_player.executable import make_player

pytestmark = [pytest.mark.slow, pytest.mark.learning, pytest.mark.timeout(2 * 250)]

STEPS_OF_AN_EPISODE = 200
BEST_RETURN = 0.1 * STEPS_OF_AN_EPISODE  # that of a policy that does nothing is 0.8
LONGEST_SECONDS = 240.0  # for what takes five seconds on an idle machine
PPO = """
behaviors:
  3DBall:
    trainer_type: ppo
    hyperparameters:
      {batch_size: 256, buffer_size: 2400, learning_rate: 3e-3, beta: 1e-3, lambd: 0.95, num_epoch: 6}
    network_settings: {normalize: true, hidden_units: 32, num_layers: 1}
    reward_signals: {extrinsic: {gamma: 0.95}}
    time_horizon: 200
    max_steps: 30000
    summary_freq: 5000
"""
SAC = """
behaviors:
  3DBall:
    trainer_type: sac
    hyperparameters:
      {batch_size: 64, buffer_size: 50000, learning_rate: 1e-3, steps_per_update: 10, init_entcoef: 0.1, tau: 0.01}
    network_settings: {normalize: true, hidden_units: 32, num_layers: 2}
    reward_signals: {extrinsic: {gamma: 0.95}}
    max_steps: 20000
    summary_freq: 2500
"""
WITHOUT_PLAYERS = [
    "--env=tests.unity_player.ball:make",
    f'--set=env_settings.env_kwargs={{"seed": 1, "max_steps": {STEPS_OF_AN_EPISODE}}}',
]


def training(folder: Path, run_id: str, *words: str) -> subprocess.Popen[str]:
    """A run that has begun to train in that folder."""
    words = "3DBall.yaml", "--no-ui", "--seed=1", f"--run-id={run_id}", *words
    return start(*words, folder=folder, more={"PYTHONPATH": str(ROOT)})


def in_players(folder: Path, configuration: str, num_players: int) -> subprocess.Popen[str]:
    """The run `players`, which has begun to train in so many."""
    (folder / "3DBall.yaml").write_text(configuration)
    make_player(folder, "--max-steps", str(STEPS_OF_AN_EPISODE))
    return training(folder, "players", "--env=./player", "--no-graphics", f"--num-envs={num_players}")


def end(*runs: subprocess.Popen[str]) -> None:
    """Wait until all of these have ended, and ended well."""
    for exit_code, stdout, stderr in [finish(run, LONGEST_SECONDS) for run in runs]:
        assert (exit_code, stderr) == (0, ""), stdout


def last_return(folder: Path) -> float:
    """The mean return in the last summary of the run `players` before which episodes ended."""
    events = events_of(folder / "results/players")
    returns = [event.mean_return for event in events if isinstance(event, MetricsReported)]
    return [value for value in returns if value is not None][-1]


def learned(folder: Path, run_id: str) -> bytes:
    """All that the trainer of a run has learned, and its optimizers and normalizers."""
    (tensors,) = folder.glob(f"results/{run_id}/3DBall/checkpoints/*/tensors.safetensors")
    return tensors.read_bytes()


@pytest.mark.parametrize(
    "configuration", [pytest.param(PPO, id="ppo"), pytest.param(SAC, id="sac", marks=pytest.mark.faults)]
)
def test_a_task_in_a_player_is_solved_by_the_same_weights_as_without_one(configuration: str, tmp_path: Path) -> None:
    """One player and a copy without one are each in step with their trainer: not a bit may differ."""
    end(in_players(tmp_path, configuration, 1), training(tmp_path, "without", *WITHOUT_PLAYERS))
    assert last_return(tmp_path) > 0.95 * BEST_RETURN
    assert learned(tmp_path, "players") == learned(tmp_path, "without")


@pytest.mark.faults
def test_a_task_in_several_players_is_solved(tmp_path: Path) -> None:
    """Which player answers first differs from run to run, and so does what is learned."""
    end(in_players(tmp_path, PPO, 2))
    assert last_return(tmp_path) > 0.5 * BEST_RETURN
