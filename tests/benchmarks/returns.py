"""What SAC earns on Hopper after 50,000 steps, rl-tui beside Stable-Baselines3, seed by seed.

python -m tests.benchmarks.returns [--seeds 1,2,3] [--steps 50000] [--json PATH]

Both train one environment with an update per step, 256 x 256 units, mini-batches of 256 and twin target critics, as
Stable-Baselines3 has them by default. Then the deterministic policy plays episodes with seeds of which neither trained.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from tests.benchmarks.processes import run_python
from tests.benchmarks.tables import table

ENVIRONMENT, BEHAVIOR = "Hopper-v5", "Hopper"
EPISODES, FIRST_SEED = 50, 10_000
SB3, RL_TUI = "sb3", "rl-tui"
PEERS = (SB3, RL_TUI)
STARTS = 100  # steps before the first update: Stable-Baselines3's default


@dataclass(frozen=True, slots=True)
class Reached:
    """The mean return of EPISODES episodes after one training."""

    peer: str
    seed: int
    steps: int
    mean_return: float


def play(act: Callable[[Any], Any]) -> float:
    """The mean return of the episodes, the same ones for all."""
    import gymnasium

    env = gymnasium.make(ENVIRONMENT)
    earned = []
    for episode in range(EPISODES):
        observation, _ = env.reset(seed=FIRST_SEED + episode)
        total, is_over = 0.0, False
        while not is_over:
            observation, reward, terminated, truncated, _ = env.step(act(observation))
            total += float(reward)
            is_over = terminated or truncated
        earned.append(total)
    return mean(earned)


def train_sb3(seed: int, steps: int) -> float:
    """What Stable-Baselines3's SAC reaches with its defaults."""
    import torch
    from stable_baselines3 import SAC

    torch.set_num_threads(1)
    model = SAC("MlpPolicy", ENVIRONMENT, seed=seed, device="cpu")
    model.learn(steps)
    return play(lambda observation: model.predict(observation, deterministic=True)[0])


def train_rl_tui(seed: int, steps: int) -> float:
    """What the whole program reaches, by the file it exports for others."""
    import numpy as np

    from tests.benchmarks.evaluate import load_session

    with TemporaryDirectory(prefix="rl-tui-returns-") as folder:
        path = Path(folder) / "hopper.yaml"
        path.write_text(configuration(seed, steps))
        run_python("-m", "rl_tui", str(path), "--no-ui", folder=Path(folder))
        choose = load_session(str(Path(folder) / f"results/bench/{BEHAVIOR}.onnx"))
        return play(lambda observation: choose(np.asarray(observation, np.float32)))


def configuration(seed: int, steps: int) -> str:
    """The same task in the words of rl-tui."""
    behavior = {
        "trainer_type": "sac",
        "hyperparameters": {
            "batch_size": 256,
            "buffer_size": steps,
            "buffer_init_steps": STARTS,
            "learning_rate": 3e-4,
            "tau": 0.005,
            "steps_per_update": 1,
            "init_entcoef": 1.0,
            "target_q": True,
        },
        "network_settings": {"hidden_units": 256, "num_layers": 2, "activation": "relu"},
        "reward_signals": {"extrinsic": {"gamma": 0.99}},
        "max_steps": steps,
        "summary_freq": 5000,
        "checkpoint_interval": steps,
    }
    document = {
        "behaviors": {BEHAVIOR: behavior},
        "env_settings": {"env": f"gymnasium:{ENVIRONMENT}", "seed": seed},
        "torch_settings": {"device": "cpu"},
        "checkpoint_settings": {"run_id": "bench"},
    }
    return yaml.safe_dump(document, sort_keys=False)


def report(reached: Sequence[Reached]) -> str:
    """Mean and standard error of each, and whether rl-tui is no worse than one standard error of the difference."""
    rows, errors = [], {}
    for peer in PEERS:
        own = [r.mean_return for r in reached if r.peer == peer]
        errors[peer] = stdev(own) / math.sqrt(len(own)) if len(own) > 1 else math.nan
        rows.append((peer, *(f"{value:.0f}" for value in own), f"{mean(own):.0f} +- {errors[peer]:.0f}"))
    seeds = sorted({r.seed for r in reached})
    return table(("", *(f"seed {seed}" for seed in seeds), "mean +- standard error"), rows)


def main(words: Sequence[str] | None = None) -> None:
    """Train every peer with every seed, each in a process of its own, or one alone."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.returns", description=__doc__)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--json", type=Path, help="write the raw numbers there")
    parser.add_argument("--one", action="store_true", help="train the one peer and seed here and print it as JSON")
    arguments = parser.parse_args(words)
    peers, seeds = arguments.peers.split(","), [int(seed) for seed in arguments.seeds.split(",")]
    if arguments.one:
        train = train_sb3 if peers[0] == SB3 else train_rl_tui
        print(
            json.dumps(
                dataclasses.asdict(Reached(peers[0], seeds[0], arguments.steps, train(seeds[0], arguments.steps)))
            )
        )
        return
    reached = []
    for seed in seeds:
        for peer in peers:
            words = ["--one", "--peers", peer, "--seeds", str(seed), "--steps", str(arguments.steps)]
            said = run_python("-m", "tests.benchmarks.returns", *words, folder=Path.cwd())
            reached.append(Reached(**json.loads(said.splitlines()[-1])))
            print(reached[-1], file=sys.stderr, flush=True)
    print(report(reached))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([dataclasses.asdict(r) for r in reached], indent=1) + "\n")


if __name__ == "__main__":
    main()
