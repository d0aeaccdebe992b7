"""What ranks bring on one machine, beside one process and beside worker processes that act.

python -m tests.benchmarks.rank_speed [--ranks 2] [--rounds 3] [--steps 61440] [--only cheetah,pixels]

cheetah: PPO on eight copies of HalfCheetah-v5, as in part c of `make bench`. pixels: images of 84 x 84 x 3 through the
convolutions of Mnih et al., steps of two milliseconds, and one epoch. Every process has one BLAS thread. All ways in
turns, a seed for each round; ratios are of the same round.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.benchmarks.acting_workers import BUSY_FRAMES, HERE, TWO, Measured, Way, measure, row_of
from tests.benchmarks.settings import WORKLOADS, Workload
from tests.benchmarks.tables import table

PARTS: Mapping[str, tuple[str, Mapping[str, object]]] = {"cheetah": ("c", {}), "pixels": ("j", {"env": BUSY_FRAMES})}


def main(words: Sequence[str] | None = None) -> None:
    """Measure the chosen parts, and print a table of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.rank_speed", description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=61_440)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(PARTS))
    chosen = parser.parse_args(words)
    os.environ["OMP_NUM_THREADS"] = "1"
    ranks = Way(f"{chosen.ranks} ranks", 0, num_ranks=chosen.ranks)
    for part in chosen.only:
        name, environment = PARTS[part]
        workload = WORKLOADS[name]
        assert isinstance(workload, Workload)
        workload = replace(workload, total_steps=chosen.steps // workload.rollout_steps * workload.rollout_steps)
        if environment:
            workload = replace(workload, num_epochs=1, batch_size=workload.rollout_steps)
        found: dict[str, list[Measured]] = {way.name: [] for way in (HERE, ranks, TWO)}
        for seed in range(1, chosen.rounds + 1):
            for way in (HERE, ranks, TWO):
                found[way.name].append(measure(workload, environment, way, seed))
        rows = [row_of(each, own, found[HERE.name]) for each, own in found.items()]
        print(f"\n{part}: {workload.total_steps:,} steps, rounds: {chosen.rounds}", flush=True)
        print(table(("", "steps/s", f"x {HERE.name}", "min .. max", "last returns"), rows), flush=True)


if __name__ == "__main__":
    main()
