"""`python -m tests.benchmarks.simple_spread [--peer FOLDER]`: one policy for three agents, beside SuperSuit's.

FOLDER, or $SUPERSUIT_PEER, is a virtual environment with stable-baselines3, supersuit and mpe2. Both train PPO with
shared parameters and equal settings in eight copies of simple_spread_v3; rl-tui also MA-POCA, with what the agents of a
copy earn on average as the reward of their group. They take turns; seeds are 0, 1, 2, ...

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
PEER = "SB3, SuperSuit"
KEYS = ("mean_return", "steps_per_second", "outside")


def configuration(num_steps: int, seed: int, results: str, trainer: str) -> str:
    """The task as a configuration file of rl-tui."""
    from tests.benchmarks import spread_groups as groups
    from tests.benchmarks import spread_world as world

    behavior = {
        "trainer_type": trainer,
        "hyperparameters": {
            **groups.hyperparameters(),
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
        "summary_freq": groups.UPDATE_ROWS,
        "checkpoint_interval": num_steps,
        "threaded": False,
    }
    env: dict[str, object] = {"env": "tests.benchmarks.spread_world:make", "num_envs": world.COPIES, "seed": seed}
    if trainer == "poca":
        env["behaviors"] = {"Spread": {"agents": "*", "group": True, "common_reward": True}}
    checkpoints = {"run_id": "bench", "results_dir": results}
    return yaml.safe_dump(
        {
            "behaviors": {"Spread": behavior},
            "env_settings": env,
            "torch_settings": {"device": "cpu"},
            "checkpoint_settings": checkpoints,
        }
    )


def train(num_steps: int, seed: int, trainer: str) -> None:
    """One training of rl-tui in this process."""
    from rl_tui import train as train_run
    from tests.benchmarks import spread_world as world

    with TemporaryDirectory(prefix="rl-tui-bench-") as folder:
        file = Path(folder, "spread.yaml")
        file.write_text(configuration(num_steps, seed, folder, trainer))
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
    run = "tests.benchmarks.simple_spread_"
    commands: dict[str, list[str | Path]] = {
        name: [sys.executable, "-m", f"{run}run", trainer]
        for name, trainer in (("rl-tui, PPO", "ppo"), ("rl-tui, MA-POCA", "poca"))
    }
    if chosen.peer:
        python = Path(chosen.peer, "bin", "python")
        if fault := fault_of(python, "supersuit, stable_baselines3, mpe2"):
            parser.error(f"--peer: its bin/python {fault}")
        commands = {PEER: [python, "-m", f"{run}peer"], **commands}
    rounds = [
        {name: measured(command, chosen.steps, seed) for name, command in commands.items()}
        for seed in range(chosen.rounds)
    ]
    print(table(HEAD, [_row(name, [found[name] for found in rounds]) for name in commands]))
    for seed, found in enumerate(rounds):
        returns = [f"{each['mean_return']:.2f}" for each in found.values()]
        print(f"seed {seed}: returns {', '.join(returns)}")
    reached = []
    own, of_groups = list(commands)[-2:]
    for better, other in [(own, PEER), (of_groups, PEER), (of_groups, own)][0 if chosen.peer else 2 :]:
        gain = statistics.mean(found[better]["mean_return"] - found[other]["mean_return"] for found in rounds)
        reached.append(gain >= 0)
        print(f"return, {better} above {other}: {gain:+.2f}, mark {0:+.2f}: {verdict(reached[-1])}")
    if chosen.peer:
        speed = statistics.median(found[own]["outside"] / found[PEER]["outside"] for found in rounds)
        reached.append(speed >= SPEED_MARK)
        print(f"outside the environment, {own} beside {PEER}: {speed:.2f}, mark {SPEED_MARK}: {verdict(reached[-1])}")
    return 0 if all(reached) else 1


HEAD = ("", "return", "steps per second", "outside the environment")


def _row(name: str, found: Sequence[dict[str, float]]) -> tuple[str, ...]:
    mean = statistics.mean(each["mean_return"] for each in found)
    speeds = [statistics.median(each[key] for each in found) for key in KEYS[1:]]
    return name, f"{mean:.2f}", *(f"{speed:,.0f}" for speed in speeds)


if __name__ == "__main__":
    sys.exit(main())
