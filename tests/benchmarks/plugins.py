"""What the A2C of docs/plugins.md earns on CartPole, trained by the page's configuration, seed by seed.

python -m tests.benchmarks.plugins [--seeds 1,2,3]

CartPole-v1 counts as solved at a mean return of 475. The exported policy plays 100 episodes greedily.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

from rl_tui.engine.session.codec import decode
from rl_tui.engine.session.messages import MetricsReported
from rl_tui.tui.cli import main as rl_tui
from tests.benchmarks.evaluate import returns
from tests.benchmarks.tables import table
from tests.plugin_examples import write_examples, write_metadata

SOLVED = 475.0


def train(folder: Path, seed: int) -> tuple[str, ...]:
    """A row: the seed, steps until a summary's mean return was enough, all steps, their seconds, the greedy return."""
    begin = time.monotonic()
    words = ["rl-tui-a2c/cartpole.yaml", "--no-ui", f"--run-id={seed}", f"--seed={seed}", f"--results-dir={folder}"]
    assert rl_tui(words) == 0
    seconds = time.monotonic() - begin
    events = [decode(line).event for line in (folder / f"{seed}/events.jsonl").read_text().splitlines()]
    summaries = [event for event in events if isinstance(event, MetricsReported)]
    solved = [event.step for event in summaries if event.mean_return is not None and event.mean_return >= SOLVED]
    earned = mean(returns(str(folder / f"{seed}/CartPole.onnx"), "CartPole-v1", 100, "deterministic_"))
    return str(seed), f"{solved[0]:,}" if solved else "-", f"{summaries[-1].step:,}", f"{seconds:.1f}", f"{earned:.1f}"


def main(words: Sequence[str] | None = None) -> None:
    """Train with each seed, one after the other, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.plugins", description=__doc__)
    parser.add_argument("--seeds", default="1,2,3")
    seeds = [int(seed) for seed in parser.parse_args(words).seeds.split(",")]
    with TemporaryDirectory(prefix="rl-tui-plugins-") as folder, chdir(folder):
        for package in write_examples(Path(folder)):
            write_metadata(package)
            sys.path.insert(0, str(package))
        rows = [train(Path(folder), seed) for seed in seeds]
    print(table(("seed", f"steps to {SOLVED:.0f}", "steps", "seconds", "greedy return"), rows))


if __name__ == "__main__":
    main()
