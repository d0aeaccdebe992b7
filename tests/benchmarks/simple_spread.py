"""`python -m tests.benchmarks.simple_spread [--peer FOLDER]`: one policy for three agents, beside SuperSuit's.

FOLDER, or $SUPERSUIT_PEER, is a virtual environment with stable-baselines3, supersuit and mpe2. Both train PPO with
shared parameters and equal settings in eight copies of simple_spread_v3, and take turns; seeds are 0, 1, 2, ...

    return              of the last tenth of the episodes, the mean over agents
    steps per second    of agents, of the whole training, and without the time within the environment
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from tests.benchmarks.peer_python import fault_of
from tests.benchmarks.tables import table, verdict

ROOT = Path(__file__).parents[2]
SPEED_MARK = 2.0  # outside the environment
STEPS, ROUNDS = 245_760, 3  # 80 rollouts
KEYS = ("mean_return", "steps_per_second", "outside")


def configuration(num_steps: int, seed: int, results: str) -> str:
    """The task as a configuration file of rl-tui."""
    from tests.benchmarks import spread_world as world

    rollout = world.COPIES * world.AGENTS * world.ROLLOUT
    behavior = {
        "trainer_type": "ppo",
        "hyperparameters": {
            "batch_size": world.BATCH_SIZE,
            "buffer_size": rollout,
            "num_epoch": world.EPOCHS,
            "learning_rate": world.LEARNING_RATE,
            "learning_rate_schedule": "constant",
            "beta": world.ENTROPY,
            "epsilon": world.CLIP_RANGE,
            "lambd": world.LAMBDA,
            "value_coefficient": world.VALUE,
            "value_clip": None,
            "max_grad_norm": world.MAX_NORM,
            "adam_epsilon": world.ADAM_EPSILON,
            "joint_ratio": True,
            "normalize_advantage": "minibatch",
        },
        "network_settings": {"hidden_units": world.HIDDEN_UNITS, "num_layers": 2, "activation": "tanh"},
        "reward_signals": {"extrinsic": {"gamma": world.GAMMA}},
        "time_horizon": world.ROLLOUT,
        "max_steps": num_steps,
        "summary_freq": rollout,
        "checkpoint_interval": num_steps,
        "threaded": False,
    }
    env = {"env": "tests.benchmarks.spread_world:make", "num_envs": world.COPIES, "seed": seed}
    checkpoints = {"run_id": "bench", "results_dir": results}
    return yaml.safe_dump(
        {
            "behaviors": {"Spread": behavior},
            "env_settings": env,
            "torch_settings": {"device": "cpu"},
            "checkpoint_settings": checkpoints,
        }
    )


def train(num_steps: int, seed: int) -> None:
    """One training of rl-tui in this process."""
    from rl_tui import train as train_run
    from tests.benchmarks import spread_world as world

    with TemporaryDirectory(prefix="rl-tui-bench-") as folder:
        file = Path(folder, "spread.yaml")
        file.write_text(configuration(num_steps, seed, folder))
        world.forget()
        train_run(file, quiet=True)


def measured(command: Sequence[str | Path], num_steps: int, seed: int) -> dict[str, float]:
    """The last line of a process that trains. Raises RuntimeError with its output where it fails."""
    variables = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]), "OMP_NUM_THREADS": "1"}
    words = [*command, str(num_steps), str(seed)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT, env=variables)
    if ended.returncode:
        raise RuntimeError(ended.stdout + ended.stderr)
    found: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return found


def main() -> int:
    """Print the table; 1 if a mark is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.simple_spread")
    parser.add_argument("--peer", type=Path, default=os.environ.get("SUPERSUIT_PEER"), help="$SUPERSUIT_PEER")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = parser.parse_args()
    ours = [sys.executable, "-m", "tests.benchmarks.simple_spread_run"]
    if not chosen.peer:
        print(table(HEAD, [_row("rl-tui", [measured(ours, chosen.steps, seed) for seed in range(chosen.rounds)])]))
        return 0
    python = Path(chosen.peer, "bin", "python")
    if fault := fault_of(python, "supersuit, stable_baselines3, mpe2"):
        parser.error(f"--peer: its bin/python {fault}")
    peer = [python, "-m", "tests.benchmarks.simple_spread_peer"]
    pairs = [(measured(peer, chosen.steps, seed), measured(ours, chosen.steps, seed)) for seed in range(chosen.rounds)]
    theirs, own = zip(*pairs, strict=True)
    speed = statistics.median(mine["outside"] / other["outside"] for other, mine in pairs)
    gain = statistics.mean(mine["mean_return"] - other["mean_return"] for other, mine in pairs)
    marks = ("mark", f"{0:+.2f}: {verdict(gain >= 0)}", "", f"{SPEED_MARK:.2f}: {verdict(speed >= SPEED_MARK)}")
    rows = [
        _row("SB3, SuperSuit", theirs),
        _row("rl-tui", own),
        ("difference, ratio", f"{gain:+.2f}", "", f"{speed:.2f}"),
    ]
    print(table(HEAD, [*rows, marks]))
    for seed, (other, mine) in enumerate(pairs):
        print(f"seed {seed}: return {other['mean_return']:.2f} and {mine['mean_return']:.2f}")
    return 0 if speed >= SPEED_MARK and gain >= 0 else 1


HEAD = ("", "return", "steps per second", "outside the environment")


def _row(name: str, found: Sequence[dict[str, float]]) -> tuple[str, str, str, str]:
    mean = statistics.mean(each["mean_return"] for each in found)
    speeds = [statistics.median(each[key] for each in found) for key in KEYS[1:]]
    return name, f"{mean:.2f}", *(f"{speed:,.0f}" for speed in speeds)


if __name__ == "__main__":
    sys.exit(main())
