"""Whether what presets earn depends on the number of ranks: the newest returns of several seeds, by ranks.

python -m tests.benchmarks.rank_returns [--ranks 1,2] [--seeds 1,2,3] [--only ppo/CartPole,sac/Pendulum]
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

from rl_tui.engine.session.messages import CheckpointSaved, MetricsReported
from rl_tui.engine.session.text import counted
from tests.benchmarks.processes import run_python
from tests.benchmarks.runs import read_events
from tests.benchmarks.tables import table

PRESETS: Mapping[str, int] = {"ppo/CartPole": 100_000, "ppo/LunarLander": 300_000, "sac/Pendulum": 20_000}  # steps
NUM_ENVS = 8


def returns(preset: str, num_steps: int, num_ranks: int, seed: int) -> tuple[float, int, int]:
    """The mean return with which the last checkpoint was saved, its step, and how many summaries there were."""
    behavior = preset.partition("/")[2]
    changes = f"behaviors.{behavior}.max_steps={num_steps}"
    with TemporaryDirectory(prefix="rl-tui-bench-") as name:
        words = ["-m", "rl_tui", preset, "--no-ui", "--ranks", str(num_ranks), "--seed", str(seed), "--set", changes]
        words += ["--num-envs", str(NUM_ENVS), "--results-dir", f"{name}/results", "--run-id", "bench"]
        run_python(*words, folder=Path(name), variables={"OMP_NUM_THREADS": "1"})
        events = [one.event for one in read_events(Path(name))]
    last = [event for event in events if isinstance(event, CheckpointSaved)][-1]
    assert last.mean_return is not None
    return last.mean_return, last.step, sum(isinstance(event, MetricsReported) for event in events)


def main(words: Sequence[str] | None = None) -> None:
    """Train all, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.rank_returns", description=__doc__)
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(PRESETS))
    chosen = parser.parse_args(words)
    rows = []
    for preset in chosen.only:
        for ranks in map(int, chosen.ranks.split(",")):
            found = [returns(preset, PRESETS[preset], ranks, seed) for seed in map(int, chosen.seeds.split(","))]
            earned = [one[0] for one in found]
            rows.append(
                (
                    f"{preset}, {counted(ranks, 'rank')}",
                    f"{mean(earned):,.1f}",
                    " ".join(f"{each:,.1f}" for each in earned),
                    " ".join(f"{one[1]:,}" for one in found),
                    " ".join(str(one[2]) for one in found),
                )
            )
            print(*rows[-1], sep="  ", flush=True)
    print("\n" + table(("", "mean", "of each seed", "steps", "summaries"), rows))


if __name__ == "__main__":
    main()
