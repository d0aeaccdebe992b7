"""Whether memory grows over a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import linear_regression, median
from tempfile import TemporaryDirectory

from tests.benchmarks.runs import final_step, memory_samples, run_without_screen
from tests.benchmarks.settings import WORKLOADS, configuration
from tests.benchmarks.tables import table

ROLLOUTS, QUICK_ROLLOUTS = 123, 25  # of workload (b): about a million steps
MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class Growth:
    """Resident memory over a run: (seconds, bytes), about one sample a second."""

    steps: int
    samples: list[tuple[float, int]]

    @property
    def thirds(self) -> list[float]:
        """Median MiB of each third of the samples."""
        count = len(self.samples)
        parts = [self.samples[index * count // 3 : (index + 1) * count // 3] for index in range(3)]
        return [median(size for _, size in part) / MEBIBYTE for part in parts]

    @property
    def slope(self) -> float:
        """MiB per minute over the last two thirds, when every buffer has its size."""
        times, sizes = zip(*self.samples[len(self.samples) // 3 :], strict=True)
        return linear_regression(times, sizes).slope * 60 / MEBIBYTE


def measure_memory(*, is_quick: bool) -> Growth:
    """One long run without a screen, in a process of its own."""
    workload = WORKLOADS["b"].cut(QUICK_ROLLOUTS if is_quick else ROLLOUTS)
    with TemporaryDirectory(prefix="rl-tui-bench-") as folder:
        file = Path(folder) / "bench.yaml"
        file.write_text(configuration(workload, 1, Path("results")))
        events = run_without_screen(file)
    return Growth(final_step(events), memory_samples(events))


def report(growth: Growth) -> str:
    """The growth as text."""
    head = f"(f) memory, workload (b) for {growth.steps:,} steps, {len(growth.samples)} samples"
    if len(growth.samples) < 6:
        return f"{head}: too few to say anything"
    row = [f"{third:,.1f}" for third in growth.thirds]
    thirds = table(("MiB resident", "first third", "second third", "last third"), [("median", *row)])
    return f"{head}\n\n{thirds}\nslope over the last two thirds: {growth.slope:+.2f} MiB a minute"
