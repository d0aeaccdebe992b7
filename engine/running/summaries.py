"""What publishes the summaries of a behavior, one at every multiple of summary_freq, and its speed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.run import STEPS_PER_SECOND
from rl_tui.engine.config.types import OFF
from rl_tui.engine.running.group_notes import GroupNotes
from rl_tui.engine.running.hooks import NO_HOOKS, Hooks
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.running.reported_statistics import ReportedStatistics
from rl_tui.engine.running.self_play.live_league import LiveLeague
from rl_tui.engine.running.summary_statistics import SummaryStatistics, histogram
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.group_tags import EARLY_ENDS, GROUP_RETURN, GROUP_SIZE, GROUPS
from rl_tui.engine.session.messages import MetricsReported
from rl_tui.engine.session.returns import RECENT_EPISODES, RecentEpisodes
from rl_tui.engine.specs import Float32, Int64, Trajectories

ELO = "Self-play/ELO"  # ML-Agents' tag
UNLEARNED_RETURN = "Environment/Unlearned Cumulative Reward"  # of episodes that another policy played
UNLEARNED_LENGTH = "Environment/Unlearned Episode Length"
SHORTEST_SECONDS = 1e-9  # of a clock that did not advance


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
    num_ranks: int = 1  # that collect its steps
    share: Fraction = Fraction(1)  # of these steps: as many as this rank collects
    device: str = "cpu"  # on which it updates
    league: LiveLeague | None = None  # with self-play


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
        self._reported = ReportedStatistics(settings.behavior, settings.metrics, bus)
        self._groups = GroupNotes(settings.behavior, settings.config, bus)
        self._bus = bus
        self._lessons_version = settings.lessons.version if settings.lessons is not None else 0
        self._ranks_groups = False
        self._throughput = Throughput(settings.clock)
        self.restart()

    def restart(self) -> None:
        """Forget everything."""
        self.statistics = SummaryStatistics()
        self._recent, self._ranked, self._ranked_groups = RecentEpisodes(), RecentEpisodes(), RecentEpisodes()
        self._throughput.restart()

    @property
    def mean_return(self) -> float | None:
        """Over the newest episodes; None before the first has ended."""
        return self._recent.mean

    @property
    def ranking_return(self) -> float | None:
        """Over the newest episodes of the current lessons; None before the first has ended. Of groups where there are
        any and the trainer learns from the whole of them: for these an agent may give up what it could earn itself."""
        self._follow_lessons()
        return self._ranked_groups.mean if self._ranks_groups else self._ranked.mean

    def _follow_lessons(self) -> None:
        """Leave out the episodes of earlier lessons, and one of each agent, which it may have begun in these."""
        lessons = self._settings.lessons
        if lessons is not None and lessons.version != self._lessons_version:
            self._lessons_version = lessons.version
            self._ranked = RecentEpisodes(num_ignored=self._settings.num_agents)
            self._ranked_groups = RecentEpisodes(num_ignored=self._settings.num_agents)

    def add_block(self, block: Trajectories, learned: Trajectories | None) -> None:
        """Count the episodes in a block of experience, and what its environment reported. learned: its
        `learned_part`."""
        self._groups.see(block)
        self.add_episodes(block.episode_returns, block.episode_lengths)
        self._ranks_groups |= block.group_ids is not None and self._settings.config.hyperparameters.values_groups
        for value in block.group_returns[-RECENT_EPISODES:].tolist():
            self._ranked_groups.add(1, value)
        if self._settings.config.summary_freq != OFF:  # else nothing would ever flush them
            if learned is not None:
                self.statistics.add_actions(learned)
            self.statistics.add_samples({UNLEARNED_RETURN: block.unlearned_returns.tolist()})
            self.statistics.add_samples({UNLEARNED_LENGTH: block.unlearned_lengths.tolist()})
            self.statistics.add_samples({GROUP_RETURN: block.group_returns.tolist()})
            self.statistics.add_samples({GROUP_SIZE: block.group_sizes.tolist()})
            self.statistics.add_samples({EARLY_ENDS: block.early_ends.tolist()})
            self.statistics.add_reported(self._reported.admit(block.statistics))
            if self._settings.league is not None:
                self.statistics.add({ELO: self._settings.league.rating})
        self.statistics.add_measured(self._reported.measured(block.measured))

    def add_episodes(self, returns: Float32, lengths: Int64) -> None:
        """Episodes have ended, oldest first."""
        if self._settings.config.summary_freq != OFF:
            self.statistics.add_episodes(returns, lengths)
        self._follow_lessons()
        for value in returns[-RECENT_EPISODES:].tolist():
            self._recent.add(1, value)
            self._ranked.add(1, value)

    def measure_throughput(self, step: int) -> None:
        """Count the steps per second since the last call as one value, and log them."""
        rate = self._throughput.measure(step)
        if rate is not None:
            self.statistics.add({STEPS_PER_SECOND: rate})
            self._bus.log("info", self._settings.behavior, f"{rate:,.0f} steps per second at step {step}")

    def publish(self, step: int, is_training: bool) -> None:
        """Publish everything since the last summary as that of this step, a multiple of summary_freq."""
        self._reported.warn_of_missing()
        summary = self.statistics.flush()
        returns, lessons = summary.returns, self._settings.lessons
        metrics = {**summary.metrics, **(lessons.metrics if lessons is not None else {})}
        if num_groups := summary.counts.get(GROUP_RETURN):
            metrics[GROUPS] = num_groups
        self._bus.publish(
            MetricsReported(
                behavior=self._settings.behavior,
                step=step,
                elapsed_seconds=time.monotonic() - self._settings.started_at,
                metrics=metrics,
                mean_return=float(returns.mean()) if len(returns) else None,
                std_return=float(returns.std()) if len(returns) else None,
                returns=histogram(returns),
                is_training=is_training,
                counts=summary.counts,
                histograms=summary.histograms,
            )
        )
