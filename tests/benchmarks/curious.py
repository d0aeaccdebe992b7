"""What learned reward signals cost: PPO on CartPole with each, beside the environment's reward alone.

python -m tests.benchmarks.curious [--rounds 3] [--steps 50176] [--peer FOLDER]

As in part a of `make bench`, with networks of 64 units for the signals; in turns, a seed for each round, and ratios are
of the same round. The floor is the arithmetic of curiosity's loss with nothing around it: forward and backward pass of
its networks for as many mini-batches, in torch.

FOLDER, or $MLAGENTS_RUN_PEER, is a virtual environment with mlagents 1.1.0, torch and gymnasium: both train the same
file, of ML-Agents' keys alone, with curiosity and in as many copies.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch
import yaml
from torch import nn

from tests.benchmarks.comparison import WITH_THESE_TESTS
from tests.benchmarks.peer_python import ask, fault_of
from tests.benchmarks.processes import run_python
from tests.benchmarks.runs import read_events, throughput
from tests.benchmarks.settings import WORKLOADS, Workload, configuration
from tests.benchmarks.tables import table, verdict

ALONE, MARK = "extrinsic alone", 2.2  # times as long with curiosity
PEER_MARK = 4.0  # times as fast as mlagents
UNITS = 64
NETWORK = {"hidden_units": UNITS, "num_layers": 2}
SIGNALS: Mapping[str, Mapping[str, Any]] = {
    ALONE: {},
    "curiosity": {"curiosity": {"strength": 0.01, "network_settings": NETWORK}},
    "rnd": {"rnd": {"strength": 0.01, "network_settings": NETWORK}},
}


def measure(workload: Workload, signals: Mapping[str, Any], seed: int) -> float:
    """Steps per second with these signals, too."""
    with TemporaryDirectory(prefix="rl-tui-bench-") as name:
        folder = Path(name)
        document = yaml.safe_load(configuration(workload, seed, folder / "results"))
        document["behaviors"][workload.behavior]["reward_signals"] |= signals
        return train(document, folder)


def train(document: Mapping[str, Any], folder: Path) -> float:
    """Steps per second of one run of the program."""
    (folder / "bench.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    run_python("-m", "rl_tui", str(folder / "bench.yaml"), "--no-ui", folder=folder, variables=WITH_THESE_TESTS)
    return throughput(read_events(folder))


def floor(workload: Workload) -> float:
    """Seconds of curiosity's networks alone for a step of the environment."""
    columns, choices, rows = 4, 2, workload.batch_size
    encoder = nn.Sequential(nn.Linear(columns, UNITS), nn.SiLU(), nn.Linear(UNITS, UNITS), nn.SiLU())
    inverse = nn.Sequential(nn.Linear(2 * UNITS, 256), nn.SiLU(), nn.Linear(256, choices))
    following = nn.Sequential(nn.Linear(UNITS + choices, 256), nn.SiLU(), nn.Linear(256, UNITS))
    seen, actions = torch.randn(2 * rows, columns), torch.randn(rows, choices)
    spent = []
    for _ in range(100):
        start = time.perf_counter()
        now, after = encoder(seen).chunk(2)
        error = (after - following(torch.cat([now, actions], 1))).square().sum(1).mean()
        loss = error + (inverse(torch.cat([now, after], 1)) - actions).square().sum(1).mean()
        loss.backward()
        spent.append(time.perf_counter() - start)
    return median(spent) * workload.num_epochs / workload.batch_size


def file_of_mlagents(workload: Workload) -> dict[str, Any]:
    """Both programs' behaviors."""
    hyperparameters = {
        "batch_size": workload.batch_size,
        "buffer_size": workload.rollout_steps,
        "num_epoch": workload.num_epochs,
        "learning_rate": 3e-4,
    }
    behavior = {
        "trainer_type": "ppo",
        "hyperparameters": hyperparameters,
        "network_settings": {"hidden_units": UNITS, "num_layers": 2},
        "reward_signals": {"extrinsic": {"gamma": 0.99}, **SIGNALS["curiosity"]},
        "max_steps": workload.total_steps,
        "time_horizon": workload.rollout_steps // workload.num_envs,
        "summary_freq": 10_000,
    }
    return {workload.behavior: behavior}


def beside_mlagents(workload: Workload, python: Path, rounds: int) -> None:
    """Print the steps per second of both, in turns."""
    behaviors, pairs = file_of_mlagents(workload), []
    for seed in range(1, rounds + 1):
        with TemporaryDirectory(prefix="rl-tui-bench-") as name:
            folder = Path(name)
            environment = {"env": f"gymnasium:{workload.environment}", "num_envs": workload.num_envs, "seed": seed}
            run = {"run_id": "bench", "results_dir": str(folder / "results")}
            document = {"behaviors": behaviors, "env_settings": environment, "checkpoint_settings": run}
            ours = train(document | {"torch_settings": {"device": "cpu"}}, folder)
        asked = {"behaviors": behaviors, "copies": workload.num_envs, "seed": seed}
        (answer,) = ask(python, Path(__file__).with_name("curious_peer.py"), [asked])
        pairs.append((ours, float(answer["steps_per_second"])))
    ratios = [ours / theirs for ours, theirs in pairs]
    rows = [
        (name, f"{median(speeds):,.0f}")
        for name, speeds in zip(("rl-tui", "mlagents"), zip(*pairs, strict=True), strict=True)
    ]
    print(table(("the same file with curiosity", "steps/s"), rows))
    reached = f"{median(ratios):.2f} times ({min(ratios):.2f} .. {max(ratios):.2f})"
    print(f"{reached}, mark {PEER_MARK}: {verdict(median(ratios) >= PEER_MARK)}")


def main(words: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.curious", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=49 * 1024)
    parser.add_argument("--peer", type=Path, default=os.environ.get("MLAGENTS_RUN_PEER"), help="$MLAGENTS_RUN_PEER")
    chosen = parser.parse_args(words)
    python = Path(chosen.peer or "", "bin", "python")
    if chosen.peer and (fault := fault_of(python, "mlagents.trainers, gymnasium")):
        parser.error(f"--peer: its bin/python {fault}")
    torch.set_num_threads(1)
    workload = WORKLOADS["a"]
    assert isinstance(workload, Workload)
    workload = replace(workload, total_steps=chosen.steps // workload.rollout_steps * workload.rollout_steps)
    speeds: dict[str, list[float]] = {name: [] for name in SIGNALS}
    for seed in range(1, chosen.rounds + 1):
        for name, signals in SIGNALS.items():
            speeds[name].append(measure(workload, signals, seed))
    rows = []
    for name, own in speeds.items():
        times = [base / speed for base, speed in zip(speeds[ALONE], own, strict=True)]
        bounds = f"{min(times):.2f} .. {max(times):.2f}"
        rows.append((name, f"{median(own):,.0f}", f"{1e6 / median(own):.1f}", f"{median(times):.2f}", bounds))
    print(table(("", "steps/s", "us a step", "times as long", "min .. max"), rows))
    alone = 1 / median(speeds[ALONE])
    print(f"floor of curiosity: {1e6 * floor(workload):.1f} us a step, {1 + floor(workload) / alone:.2f} times as long")
    print(f"mark: {MARK} times")
    if chosen.peer:
        beside_mlagents(workload, python, chosen.rounds)


if __name__ == "__main__":
    main()
