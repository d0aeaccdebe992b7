"""The statistics of one summary: what was counted since the last one.  Shapes: E episodes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.learning.action_cost import ActionCost
from rl_tui.engine.learning.trainer import Metrics, Samples
from rl_tui.engine.session.messages import Histogram
from rl_tui.engine.specs import GatheredStatistic, Measured, Trajectories, add_up
from rl_tui.engine.statistics import merge

HISTOGRAM_BINS = 30  # as many as can be distinguished in a TensorBoard panel


@dataclass(frozen=True, slots=True)
class Summary:
    """Metrics by tag, of how many values each is the mean where it is one, the returns f32[E] of the episodes that
    ended, and the distributions of other metrics by tag."""

    metrics: Mapping[str, float]
    counts: Mapping[str, int]
    returns: NDArray[np.float32]
    histograms: Mapping[str, Histogram]


class SummaryStatistics:
    """Means of every metric since the last `flush`, what the environment reported, and the episodes that ended."""

    def __init__(self) -> None:
        self._totals: dict[str, tuple[float, int]] = {}  # by tag: sum and count
        self._reported: dict[str, GatheredStatistic] = {}
        self._returns: list[NDArray[np.float32]] = []
        self._lengths: list[NDArray[np.int64]] = []
        self._action_cost = ActionCost()

    def add(self, metrics: Metrics) -> None:
        """Count each of these as one value; NaN is left out."""
        add_up(self._totals, {tag: (value, 1) for tag, value in metrics.items() if not math.isnan(value)})

    def add_samples(self, samples: Samples) -> None:
        """Count every value of each metric."""
        add_up(self._totals, {tag: (sum(values), len(values)) for tag, values in samples.items()})

    def add_episodes(self, returns: NDArray[np.float32], lengths: NDArray[np.int64]) -> None:
        """Count episodes that ended."""
        if len(returns):
            self._returns.append(returns)
            self._lengths.append(lengths)

    def add_actions(self, block: Trajectories) -> None:
        """Count its continuous actions, and what followed them."""
        self._action_cost.add(block)

    def add_measured(self, measured: Measured) -> None:
        """Count what the environment measured besides rewards."""
        add_up(self._totals, measured)

    def add_reported(self, statistics: Mapping[str, GatheredStatistic]) -> None:
        """Count what the environment reported under names of its own; each has a finite value."""
        merge(self._reported, statistics)

    def flush(self) -> Summary:
        """Return everything so far; the next summary starts empty."""
        metrics = {name: statistic.value for name, statistic in self._reported.items()}
        metrics |= {tag: total / count for tag, (total, count) in self._totals.items() if count}
        counts = {name: reported.count for name, reported in self._reported.items() if reported.is_mean}
        counts |= {tag: count for tag, (_, count) in self._totals.items() if count}
        drawn = {name: histogram(np.array(reported.values)) for name, reported in self._reported.items()}
        histograms = {name: found for name, found in drawn.items() if found is not None}
        returns = np.concatenate([np.empty(0, np.float32), *self._returns])
        if len(returns):
            episodes = {"Cumulative Reward": returns, "Episode Length": np.concatenate(self._lengths)}
            metrics |= {f"Environment/{name}": float(values.mean()) for name, values in episodes.items()}
            counts |= {f"Environment/{name}": len(values) for name, values in episodes.items()}
        metrics |= self._action_cost.metrics
        self._totals, self._reported, self._returns, self._lengths = {}, {}, [], []
        self._action_cost = ActionCost()
        return Summary(metrics, counts, returns, histograms)


def histogram(values: NDArray[np.floating[Any]]) -> Histogram | None:
    """The distribution of float[E] in equal bins, of the finite ones; None without any of these."""
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    counts, edges = np.histogram(values.astype(np.float64), HISTOGRAM_BINS, _range(values))
    return Histogram(
        minimum=float(values.min()),
        maximum=float(values.max()),
        count=len(values),
        total=float(values.sum(dtype=np.float64)),
        total_squares=float(np.square(values, dtype=np.float64).sum()),
        limits=tuple(float(edge) for edge in edges[1:]),
        counts=tuple(float(count) for count in counts),
    )


def _range(values: NDArray[np.floating[Any]]) -> tuple[float, float]:
    """The range of bins; wider than that of the values where these are too close for bins of different limits."""
    low, high = float(values.min()), float(values.max())
    least = HISTOGRAM_BINS * float(np.spacing(max(abs(low), abs(high))))
    return (low, high) if high - low > least else (low - max(0.5, least), high + max(0.5, least))
