"""The summaries of a behavior: statistics between two multiples of summary_freq, and what publishes them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.diagnostics import visible
from rl_tui.engine.config.run import STEPS_PER_SECOND, is_our_tag, metric_tag
from rl_tui.engine.config.types import OFF
from rl_tui.engine.learning.trainer import Metrics, Samples
from rl_tui.engine.running.action_cost import ActionCost
from rl_tui.engine.running.hooks import NO_HOOKS, Hooks
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import Histogram, MetricsReported
from rl_tui.engine.session.returns import RECENT_EPISODES, RecentEpisodes
from rl_tui.engine.specs import GatheredStatistic, Measured, Trajectories, add_up
from rl_tui.engine.statistics import merge

HISTOGRAM_BINS = 30  # as many as can be distinguished in a TensorBoard panel
SHORTEST_SECONDS = 1e-9  # of a clock that did not advance


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


@dataclass(frozen=True, slots=True)
class LearnerSettings:
    """What the run decides for a learner."""

    behavior: str
    config: BehaviorConfig
    is_training: bool
    started_at: float  # monotonic seconds at the start of the run
    metrics: tuple[str, ...] = ()  # keys of info that are reported as statistics
    clock: Callable[[], float] = time.monotonic  # seconds, without pauses
    hooks: Hooks = NO_HOOKS
    lessons: Lessons | None = None  # of the whole run
    num_agents: int = 1  # that usually act at once


class ReportedNames:
    """Of the statistics that an environment reports, leaves out those with a name of rl-tui's own, or one of `taken`;
    each name is warned of once."""

    def __init__(self, behavior: str, taken: Collection[str], bus: EventBus) -> None:
        self._behavior = behavior
        self._taken = frozenset(taken)
        self._bus = bus
        self._warned: set[tuple[str, str]] = set()

    def admit(self, statistics: Mapping[str, GatheredStatistic]) -> dict[str, GatheredStatistic]:
        """Those with a name of the environment's own, and with a finite value."""
        for name in statistics:
            if self._is_refused(name):
                self._warn(name, "is left out: rl-tui has a statistic of that name. Rename it in the environment")
            elif statistics[name].num_not_finite:
                self._warn(name, "was not finite; only its finite values count")
        return {name: values for name, values in statistics.items() if values.count and not self._is_refused(name)}

    def _is_refused(self, name: str) -> bool:
        return name in self._taken or is_our_tag(name)

    def _warn(self, name: str, text: str) -> None:
        if (name, text) not in self._warned:
            self._warned.add((name, text))
            self._bus.log("warning", self._behavior, f"the environment's statistic {visible(name)} {text}")


class Throughput:
    """How fast a behavior trains between two multiples of throughput_interval: updates and evaluations count, pauses do
    not. Used in its learner's thread.

    clock: seconds while the run was not paused.
    """

    def __init__(self, clock: Callable[[], float]):
        self._clock = clock
        self._begin: tuple[int, float] | None = None  # step and seconds

    def restart(self) -> None:
        """The next measurement begins at the next multiple."""
        self._begin = None

    def measure(self, step: int) -> float | None:
        """Steps per second since the last call; None for the first."""
        begin, self._begin = self._begin, (step, self._clock())
        return None if begin is None else (step - begin[0]) / max(self._begin[1] - begin[1], SHORTEST_SECONDS)


class SummaryReporter:
    """Used in its learner's thread. Gathers statistics from where training began, resumed or was rolled back to."""

    def __init__(self, settings: LearnerSettings, bus: EventBus):
        self._settings = settings
        self._missing_metrics = set(settings.metrics)
        self._names = ReportedNames(settings.behavior, [metric_tag(key) for key in settings.metrics], bus)
        self._has_group_rewards = False  # in some block
        self._bus = bus
        self._lessons_version = settings.lessons.version if settings.lessons is not None else 0
        self._throughput = Throughput(settings.clock)
        self.restart()

    def restart(self) -> None:
        """Forget everything."""
        self.statistics = SummaryStatistics()
        self._recent, self._ranked = RecentEpisodes(), RecentEpisodes()
        self._throughput.restart()

    @property
    def mean_return(self) -> float | None:
        """Over the newest episodes; None before the first has ended."""
        return self._recent.mean

    @property
    def ranking_return(self) -> float | None:
        """Over the newest episodes of the current lessons; None before the first has ended."""
        self._follow_lessons()
        return self._ranked.mean

    def _follow_lessons(self) -> None:
        """Leave out the episodes of earlier lessons, and one of each agent, which it may have begun in these."""
        lessons = self._settings.lessons
        if lessons is not None and lessons.version != self._lessons_version:
            self._lessons_version = lessons.version
            self._ranked = RecentEpisodes(num_ignored=self._settings.num_agents)

    def add_block(self, block: Trajectories) -> None:
        """Count the episodes in a block of experience, and what its environment reported."""
        if block.group_rewards is not None and not self._has_group_rewards:
            self._has_group_rewards = True
            text = "the rewards of its groups are added to those of their agents"
            self._bus.log("info", self._settings.behavior, text)
        if self._settings.config.summary_freq != OFF:  # else nothing would ever flush them
            self.statistics.add_episodes(block.episode_returns, block.episode_lengths)
            self.statistics.add_actions(block)
            self.statistics.add_reported(self._names.admit(block.statistics))
        self._follow_lessons()
        for value in block.episode_returns[-RECENT_EPISODES:].tolist():
            self._recent.add(1, value)
            self._ranked.add(1, value)
        if self._settings.metrics:
            measured = {key: block.measured[key] for key in self._settings.metrics if key in block.measured}
            self.statistics.add_measured({metric_tag(key): number for key, number in measured.items()})
            self._missing_metrics -= measured.keys()

    def measure_throughput(self, step: int) -> None:
        """Count the steps per second since the last call as one value, and log them."""
        rate = self._throughput.measure(step)
        if rate is not None:
            self.statistics.add({STEPS_PER_SECOND: rate})
            self._bus.log("info", self._settings.behavior, f"{rate:,.0f} steps per second at step {step}")

    def publish(self, step: int, is_training: bool) -> None:
        """Publish everything since the last summary as that of this step, a multiple of summary_freq."""
        for key in sorted(self._missing_metrics):
            text = f"env_settings.metrics: no info had a number under {key!r} so far"
            self._bus.log("warning", self._settings.behavior, text)
        self._missing_metrics.clear()
        summary = self.statistics.flush()
        returns, lessons = summary.returns, self._settings.lessons
        self._bus.publish(
            MetricsReported(
                behavior=self._settings.behavior,
                step=step,
                elapsed_seconds=time.monotonic() - self._settings.started_at,
                metrics={**summary.metrics, **(lessons.metrics if lessons is not None else {})},
                mean_return=float(returns.mean()) if len(returns) else None,
                std_return=float(returns.std()) if len(returns) else None,
                returns=histogram(returns),
                is_training=is_training,
                counts=summary.counts,
                histograms=summary.histograms,
            )
        )


def histogram(values: NDArray[np.floating[Any]]) -> Histogram | None:
    """The distribution of float[E] in equal bins, of the finite ones; None without any of these."""
    values = values[np.isfinite(values)]
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
