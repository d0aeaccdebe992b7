"""`python -m tests.benchmarks.self_play_speed --peer FOLDER`: whole runs of a two-sided game, beside `mlagents-learn`.

Both train the two players of a side on four pitches in each of four stand-in players by PPO with `self_play`, with the
settings below. FOLDER is that of unity_run.py. They take turns, and the median of the ratios of all rounds counts:

    steps per second    of the side that learns, which max_steps counts, from the start of the process to its end
    CPU per step        of the trainer, all its processes and their start, without the players
    players             their own CPU time per step
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.peer_python import fault_of
from tests.benchmarks.tables import table, verdict
from tests.benchmarks.unity_run import ROUNDS, Command, Cost, train

MARK = 4.0
PLAYER = "--task", "soccer"
CONFIGURATION = """
behaviors:
  Striker:
    trainer_type: ppo
    hyperparameters:
      batch_size: 512
      buffer_size: 5120
      learning_rate: 0.0003
      beta: 0.005
      epsilon: 0.2
      lambd: 0.95
      num_epoch: 3
      learning_rate_schedule: constant
    network_settings: {{normalize: false, hidden_units: 128, num_layers: 2}}
    reward_signals: {{extrinsic: {{gamma: 0.99, strength: 1.0}}}}
    keep_checkpoints: 5
    time_horizon: 1000
    summary_freq: 10000
    max_steps: {steps}
    self_play:
      save_steps: 5000
      team_change: 20000
      swap_steps: 2000
      window: 10
      play_against_latest_model_ratio: 0.5
      initial_elo: 1200.0
"""


def main() -> int:
    """Print the table; 1 if the mark is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.self_play_speed")
    parser.add_argument("--peer", type=Path, default=os.environ.get("MLAGENTS_RUN_PEER"), help="$MLAGENTS_RUN_PEER")
    parser.add_argument("--steps", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = parser.parse_args()
    if not chosen.peer:
        parser.error("--peer FOLDER is needed")
    python = Path(chosen.peer, "bin", "python")
    if fault := fault_of(python, "mlagents.trainers.learn"):
        parser.error(f"--peer: its bin/python {fault}")
    ours: Command = [sys.executable, "-m", "rl_tui", "--no-ui"]
    peer: Command = [python, Path(__file__).with_name("unity_run_peer.py")]
    text = CONFIGURATION.format(steps=chosen.steps)
    pairs = [
        (train(ours, chosen.steps, seed, PLAYER, text), train(peer, chosen.steps, seed, PLAYER, text))
        for seed in range(chosen.rounds)
    ]
    return report(*zip(*pairs, strict=True))


def report(own: Sequence[Cost], others: Sequence[Cost]) -> int:
    """Print the table; 1 if the mark is missed."""
    pairs = [*zip(own, others, strict=True)]
    speeds = [each.steps_per_second / other.steps_per_second for each, other in pairs]
    cpu = statistics.median(each.cpu_per_step / other.cpu_per_step for each, other in pairs)
    speed = statistics.median(speeds)
    ratio = f"{speed:.2f} ({min(speeds):.2f} to {max(speeds):.2f})"
    rows = [
        _row("rl-tui", own),
        _row("mlagents-learn", others),
        ("ratio", ratio, f"{cpu:.2f}", ""),
        ("mark", f"{MARK:.2f}: {verdict(speed >= MARK)}", "", ""),
    ]
    print(table(("", "steps per second", "CPU us per step", "players"), rows))
    return 0 if speed >= MARK else 1


def _row(name: str, costs: Sequence[Cost]) -> tuple[str, ...]:
    figures = zip(*((cost.steps_per_second, cost.cpu_per_step, cost.cpu_of_players) for cost in costs), strict=True)
    return (name, *(f"{statistics.median(each):,.0f}" for each in figures))


if __name__ == "__main__":
    sys.exit(main())
