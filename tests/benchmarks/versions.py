"""`python -m tests.benchmarks.versions --before PATH --after PATH`: what a step costs in one version and in another.

Workloads of throughput.py, trained by two checkouts in turns: which of the two comes first changes from pair to pair,
and pair i has seed i. Each run is `python -m tests.benchmarks.peers rl-tui WORKLOAD` of its checkout, in a process of
its own, so the modules of the two may have different names. Two figures are compared, CPU seconds either way, which
vary less than seconds on a machine that others use:

    whole       of the process and all its children, from its start to its end, as the system counts them
    training    of all threads of the process, from the reset environments to the last update, as the run counts them

With --at-once both of a pair run at the same time, each on a CPU of its own, which they exchange from pair to pair:
what other programs do to the machine then slows both.

--python is used for both checkouts unless --before-python or --after-python names another; it needs the packages only,
since the checkout comes first on its path.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile

from tests.benchmarks.processes import limit_cpus
from tests.benchmarks.tables import table

ROLLOUTS = {"a": 98, "b": 13, "c": 30, "i": 4}  # ten pairs of all four take about twenty minutes
COSTS = "whole", "training"


@dataclass(frozen=True, slots=True)
class Checkout:
    """A folder with a version, and what runs it."""

    folder: Path
    python: Path

    def run(self, workload: str, rollouts: int, seed: int, cpu: int | None = None) -> Cost:
        """Train once, on that CPU. Raises RuntimeError with its stderr when that fails."""
        words = ["-m", "tests.benchmarks.peers", "rl-tui", workload, "--seed", str(seed), "--rollouts", str(rollouts)]
        pin = ("taskset", "--cpu-list", str(cpu)) if cpu is not None else ()
        began = time.perf_counter()
        with TemporaryFile() as output, TemporaryFile() as errors:
            process = subprocess.Popen(
                [*pin, self.python, *words],
                cwd=self.folder,
                env=self._surroundings(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
            )
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            seconds = time.perf_counter() - began
            output.seek(0)
            errors.seek(0)
            if process.returncode != 0:
                reason = errors.read().decode(errors="replace")
                raise RuntimeError(f"{self.folder}: workload {workload} ended with {process.returncode}:\n{reason}")
            measured = json.loads(output.read().splitlines()[-1])
        steps = measured["steps"]
        whole, training = used.ru_utime + used.ru_stime, measured["cpu_seconds"]
        return Cost(1e6 * whole / steps, 1e6 * training / steps, steps, seconds, measured["mean_return"])

    def _surroundings(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": f"{self.folder / 'src'}{os.pathsep}{self.folder}"}

    def require_own_modules(self) -> None:
        """Raises RuntimeError when the benchmark that would run is not the checkout's own."""
        words = ["-c", "import tests.benchmarks.peers as peers; print(peers.__file__)"]
        found = subprocess.run(
            [self.python, *words],
            cwd=self.folder,
            env=self._surroundings(),
            capture_output=True,
            text=True,
            check=False,
        )
        if not Path(found.stdout.strip()).is_relative_to(self.folder):
            raise RuntimeError(f"{self.folder}: must have benchmarks of its own, got {found.stdout}{found.stderr}")


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU microseconds for each step, see above; steps and seconds of the whole run, and what it earned."""

    whole: float
    training: float
    steps: int
    seconds: float
    mean_return: float | None


@dataclass(frozen=True, slots=True)
class Pair:
    """The same training by both."""

    before: Cost
    after: Cost

    def ratio(self, cost: str) -> float:
        """What a step costs after, as a multiple of what it cost before."""
        ratio: float = getattr(self.after, cost) / getattr(self.before, cost)
        return ratio


def measure(workload: str, before: Checkout, after: Checkout, pairs: int, rollouts: int, at_once: bool) -> list[Pair]:
    """So many pairs, each reported on stderr."""
    cpus = sorted(os.sched_getaffinity(0)) if at_once else [None]
    measured = []
    with ThreadPoolExecutor(len(cpus)) as threads:
        for seed in range(1, pairs + 1):
            in_turn = (before, after) if seed % 2 else (after, before)
            runs = [
                threads.submit(each.run, workload, rollouts, seed, cpu)
                for each, cpu in zip(in_turn, cycle(cpus), strict=False)
            ]
            first, second = (run.result() for run in runs)
            pair = Pair(first, second) if seed % 2 else Pair(second, first)
            ratios = ", ".join(f"{cost} {pair.ratio(cost):.3f}" for cost in COSTS)
            print(f"({workload}) pair {seed}: after / before: {ratios}", file=sys.stderr, flush=True)
            measured.append(pair)
    return measured


def report(workload: str, pairs: list[Pair]) -> str:
    """The pairs as text, with the median and the range of their ratios."""
    head = ("CPU us a step", *(f"{cost}, {when}" for cost in COSTS for when in ("before", "after", "ratio")))
    rows = [(f"pair {seed}", *_cells(pair)) for seed, pair in enumerate(pairs, 1)]
    lines = [f"({workload}) {pairs[0].before.steps:,} steps, pairs: {len(pairs)}", "", table(head, rows), ""]
    for cost in COSTS:
        ratios = [pair.ratio(cost) for pair in pairs]
        lines.append(f"{cost}: after / before {median(ratios):.3f} (median; {min(ratios):.3f} to {max(ratios):.3f})")
    is_same = all(pair.before.mean_return == pair.after.mean_return for pair in pairs)
    lines.append(f"returns of the last 100 episodes: {'the same, to the bit' if is_same else 'NOT the same'}")
    return "\n".join(lines)


def _cells(pair: Pair) -> list[str]:
    cells = []
    for cost in COSTS:
        both = getattr(pair.before, cost), getattr(pair.after, cost)
        cells += [*(f"{value:,.1f}" for value in both), f"{pair.ratio(cost):.3f}"]
    return cells


def main(words: Sequence[str] | None = None) -> None:
    """Measure the chosen workloads one after the other, print each as soon as it is known."""
    arguments = parse(words)
    checkouts = [
        Checkout(folder.resolve(), (python or arguments.python).absolute())
        for folder, python in (
            (arguments.before, arguments.before_python),
            (arguments.after, arguments.after_python),
        )
    ]
    limit_cpus(arguments.cpus)
    for checkout in checkouts:
        checkout.require_own_modules()
        checkout.run("a", 2, seed=0)  # compiles what is compiled at first use
    raw = {}
    for workload in arguments.only.split(","):
        rollouts = arguments.rollouts or ROLLOUTS[workload]
        pairs = measure(workload, *checkouts, arguments.pairs, rollouts, arguments.at_once)
        print(f"\n{report(workload, pairs)}\n", flush=True)
        raw[workload] = [asdict(pair) for pair in pairs]
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(raw, indent=1) + "\n")


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.versions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--before", type=Path, required=True, metavar="PATH", help="a checkout")
    parser.add_argument("--after", type=Path, required=True, metavar="PATH", help="another, or the same")
    parser.add_argument("--only", default=",".join(ROLLOUTS), metavar="a,c", help=f"of {', '.join(ROLLOUTS)}")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--rollouts", type=int, help="train for so many instead of those of each workload")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), metavar="PATH")
    parser.add_argument("--before-python", type=Path, metavar="PATH")
    parser.add_argument("--after-python", type=Path, metavar="PATH")
    parser.add_argument("--at-once", action="store_true", help="both at the same time, where Linux and two CPUs allow")
    parser.add_argument("--cpus", type=int, default=2, help="CPUs that everything shares (2), where Linux can")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the raw numbers there")
    arguments = parser.parse_args(words)
    if arguments.at_once and (not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2):
        parser.error("--at-once: needs Linux with two CPUs")
    wrong = [part for part in arguments.only.split(",") if part not in ROLLOUTS]
    if wrong:
        parser.error(f"--only: must be of {', '.join(ROLLOUTS)}, got {wrong[0]}")
    return arguments


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as problem:
        sys.exit(str(problem))
