"""What the screen costs: throughput with it and without it, in pairs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.benchmarks.runs import COLUMNS, ROWS, run_without_screen, throughput, train_on_screen
from tests.benchmarks.settings import WORKLOADS, configuration
from tests.benchmarks.tables import table, verdict

MARK_LOSS = 0.05
ROLLOUTS, QUICK_ROLLOUTS = 196, 20  # of workload (a): about 200 000 steps


@dataclass(frozen=True, slots=True)
class Pair:
    """Steps per second of two runs, one after the other."""

    without_screen: float
    on_screen: float

    @property
    def loss(self) -> float:
        """The share of the throughput that the screen takes."""
        return 1 - self.on_screen / self.without_screen


def measure_screen_cost(pairs: int, *, is_quick: bool) -> list[Pair]:
    """Pairs of the same run; which of the two comes first changes from pair to pair."""
    measured = []
    for index in range(pairs):
        runs = {"without_screen": run_without_screen, "on_screen": train_on_screen}
        speeds = {}
        for name in sorted(runs, reverse=index % 2 == 0):
            with TemporaryDirectory(prefix="rl-tui-bench-") as folder:
                file = Path(folder) / "bench.yaml"
                workload = WORKLOADS["a"].cut(QUICK_ROLLOUTS if is_quick else ROLLOUTS)
                file.write_text(configuration(workload, index + 1, Path("results")))
                speeds[name] = throughput(runs[name](file))
        pair = Pair(**speeds)
        print(f"(d) pair {index + 1}: the screen takes {pair.loss:.1%}", file=sys.stderr)
        measured.append(pair)
    return measured


def report(pairs: list[Pair]) -> str:
    """The pairs as text, with the mark."""
    rows = [
        (f"pair {index}", f"{pair.without_screen:,.0f}", f"{pair.on_screen:,.0f}", f"{pair.loss:.1%}")
        for index, pair in enumerate(pairs, 1)
    ]
    loss = median(pair.loss for pair in pairs)
    medians = median(p.without_screen for p in pairs), median(p.on_screen for p in pairs)
    rows.append(("median", f"{medians[0]:,.0f}", f"{medians[1]:,.0f}", f"{loss:.1%}"))
    return "\n".join(
        (
            f"(d) the screen's cost, {COLUMNS}x{ROWS}, workload (a), threaded: false",
            "",
            table(("steps/s", "--no-ui", "on a screen", "loss"), rows),
            f"mark: a loss of {MARK_LOSS:.0%} at most {verdict(loss <= MARK_LOSS)}",
        )
    )
