"""Numbers gathered between two summaries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.learning.trainer import Metrics, Samples
from rl_tui.engine.session.messages import Histogram
from rl_tui.engine.specs import Measured, add_up

HISTOGRAM_BINS = 30  # what a TensorBoard panel can show apart


@dataclass(frozen=True, slots=True)
class Summary:
    """Means by tag, of how many values each is the mean, and the returns f32[E] of the episodes that ended."""

    metrics: Mapping[str, float]
    counts: Mapping[str, int]
    returns: NDArray[np.float32]


class SummaryStatistics:
    """Means of every metric since the last `flush`, and the episodes that ended since."""

    def __init__(self) -> None:
        self._totals: dict[str, tuple[float, int]] = {}  # by tag: sum and count
        self._returns: list[NDArray[np.float32]] = []
        self._lengths: list[NDArray[np.int64]] = []

    def add(self, metrics: Metrics) -> None:
        """Count these once more; NaN is left out."""
        add_up(self._totals, {tag: (value, 1) for tag, value in metrics.items() if not math.isnan(value)})

    def add_samples(self, samples: Samples) -> None:
        """Count each of these as much as any other number of its metric."""
        add_up(self._totals, {tag: (sum(values), len(values)) for tag, values in samples.items()})

    def add_episodes(self, returns: NDArray[np.float32], lengths: NDArray[np.int64]) -> None:
        """Count episodes that ended."""
        if len(returns):
            self._returns.append(returns)
            self._lengths.append(lengths)

    def add_measured(self, measured: Measured) -> None:
        """Count what the environment reported beside rewards."""
        add_up(self._totals, measured)

    def flush(self) -> Summary:
        """Everything so far; the next summary starts empty."""
        metrics = {tag: total / count for tag, (total, count) in self._totals.items() if count}
        counts = {tag: count for tag, (_, count) in self._totals.items() if count}
        returns = np.concatenate([np.empty(0, np.float32), *self._returns])
        if len(returns):
            episodes = {"Cumulative Reward": returns, "Episode Length": np.concatenate(self._lengths)}
            metrics |= {f"Environment/{name}": float(values.mean()) for name, values in episodes.items()}
            counts |= {f"Environment/{name}": len(values) for name, values in episodes.items()}
        self._totals, self._returns, self._lengths = {}, [], []
        return Summary(metrics, counts, returns)


def histogram(values: NDArray[np.float32]) -> Histogram | None:
    """The distribution of f32[E] in equal bins; None without any value."""
    if not len(values):
        return None
    counts, edges = np.histogram(values, HISTOGRAM_BINS)
    return Histogram(
        minimum=float(values.min()),
        maximum=float(values.max()),
        count=len(values),
        total=float(values.sum(dtype=np.float64)),
        total_squares=float(np.square(values, dtype=np.float64).sum()),
        limits=tuple(float(edge) for edge in edges[1:]),
        counts=tuple(float(count) for count in counts),
    )
