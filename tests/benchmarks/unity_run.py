"""`python -m tests.benchmarks.unity_run [--peer FOLDER]`: whole runs in Unity players, beside `mlagents-learn`.

Without FOLDER beside our own with policies that act in the training process.

Both train 3DBall with ML-Agents' own PPO settings in the same four stand-in players; beside ours they have 8 agents
each. FOLDER, or $MLAGENTS_RUN_PEER, is
a virtual environment with mlagents 1.1.0 and torch, whose generated modules unity_generated.py has rewritten for
today's protobuf, so that both parse in C. They take turns, and the median of the ratios of all rounds counts:

    steps per second    of the whole run, from the start of the process to its end
    CPU per step        of the trainer, all its processes and their start, without the players
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import psutil

from tests.benchmarks.ball_settings import configuration
from tests.benchmarks.peer_python import fault_of
from tests.benchmarks.tables import table, verdict
from tests.unity_player.executable import ROOT, make_player

NUM_PLAYERS = 4
SMALL_PLAYER = ("--agents", "8")
ROUNDS = 3
SAMPLE_SECONDS = 0.1


Command: TypeAlias = "Sequence[str | Path]"


@dataclass(frozen=True)
class Cost:
    """Of one run. CPU times in microseconds."""

    steps_per_second: float
    cpu_per_step: float
    cpu_of_players: float = 0.0  # per step


MARKS_OF_PEER, MARKS_OF_MAIN = Cost(3.0, 1 / 3), Cost(1.3, 0.8)


def train(command: Command, steps: int, seed: int, player: Sequence[str] = (), text: str = "") -> Cost:
    """Train in a folder of its own. player: its arguments. text: of the file, 3DBall's without any.

    Raises RuntimeError with the output where that fails.
    """
    with TemporaryDirectory(prefix="rl-tui-bench-") as temporary:
        folder = Path(temporary)
        make_player(folder, *player)
        (folder / "run.yaml").write_text(text or configuration("ppo", max_steps=steps))
        words = [
            f"--base-port={free_ports()}",
            "run.yaml",
            "--env=./player",
            f"--num-envs={NUM_PLAYERS}",
            "--run-id=run",
            f"--seed={seed}",
        ]
        began = time.perf_counter()
        with (folder / "output").open("w+") as output:
            run = psutil.Popen(
                [*command, *words, "--no-graphics"],
                cwd=folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_variables(),
            )
            cpu, of_players = _cpu_seconds(run)
            seconds = time.perf_counter() - began
            if run.returncode:
                output.seek(0)
                raise RuntimeError(output.read())
    return Cost(steps / seconds, 1e6 * cpu / steps, 1e6 * of_players / steps)


def free_ports() -> int:
    """The first of NUM_PLAYERS free ports in a row."""
    return next(
        first for first in range(21_000, 30_000, NUM_PLAYERS) if all(map(_is_free, range(first, first + NUM_PLAYERS)))
    )


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _variables() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT / "src")}


def _cpu_seconds(run: psutil.Popen) -> tuple[float, float]:
    """Of a process and its descendants that are no players, and of the players, until it ends."""
    used: dict[int, float] = {}
    players: set[int] = set()
    while run.poll() is None:
        for process in _processes(run):
            if process.pid not in used and process != run and _is_player(process):
                players.add(process.pid)
            try:
                times = process.cpu_times()
            except psutil.Error:  # it has ended, or is a zombie
                continue
            used[process.pid] = times.user + times.system
        time.sleep(SAMPLE_SECONDS)
    of_players = sum(used.get(player, 0.0) for player in players)
    return sum(used.values()) - of_players, of_players


def _processes(run: psutil.Popen) -> list[psutil.Process]:
    """The process and its descendants."""
    try:
        return [run, *run.children(recursive=True)]
    except psutil.Error:
        return []


def _is_player(process: psutil.Process) -> bool:
    try:
        return "tests.unity_player" in process.cmdline() or process.name() == "player"
    except psutil.Error:
        return True  # it is gone


def main() -> int:
    """Print the table; 1 if a mark is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.unity_run")
    parser.add_argument("--peer", type=Path, default=os.environ.get("MLAGENTS_RUN_PEER"), help="$MLAGENTS_RUN_PEER")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = parser.parse_args()
    ours: Command = [sys.executable, "-m", "rl_tui", "--no-ui"]
    if not chosen.peer:
        in_main = [*ours, "--set", "env_settings.act_in=main"]
        return compare("act_in: main", ours, in_main, MARKS_OF_MAIN, chosen.steps, chosen.rounds, SMALL_PLAYER)
    python = Path(chosen.peer, "bin", "python")
    if fault := fault_of(python, "mlagents.trainers.learn"):
        parser.error(f"--peer: its bin/python {fault}")
    peer: Command = [python, Path(__file__).with_name("unity_run_peer.py")]
    return compare("mlagents-learn", ours, peer, MARKS_OF_PEER, chosen.steps, chosen.rounds)


def compare(
    name: str, ours: Command, others: Command, marks: Cost, steps: int, rounds: int, player: Sequence[str] = ()
) -> int:
    """Print the table of both in turns; 1 if a mark is missed. marks: ratios. player: its arguments."""
    pairs = [(train(ours, steps, seed, player), train(others, steps, seed, player)) for seed in range(rounds)]
    speed = statistics.median(own.steps_per_second / other.steps_per_second for own, other in pairs)
    cpu = statistics.median(own.cpu_per_step / other.cpu_per_step for own, other in pairs)
    own_costs, other_costs = zip(*pairs, strict=True)
    is_fast, is_cheap = speed >= marks.steps_per_second, cpu <= marks.cpu_per_step
    rows = [
        _row("rl-tui", own_costs),
        _row(name, other_costs),
        ("ratio", f"{speed:.2f}", f"{cpu:.2f}"),
        (
            "mark",
            f"{marks.steps_per_second:.2f}: {verdict(is_fast)}",
            f"{marks.cpu_per_step:.2f}: {verdict(is_cheap)}",
        ),
    ]
    print(table(("", "steps per second", "CPU us per step"), rows))
    return 0 if is_fast and is_cheap else 1


def _row(name: str, costs: Sequence[Cost]) -> tuple[str, str, str]:
    return (
        name,
        f"{statistics.median(cost.steps_per_second for cost in costs):,.0f}",
        f"{statistics.median(cost.cpu_per_step for cost in costs):,.0f}",
    )


if __name__ == "__main__":
    sys.exit(main())
