"""The history of one behavior that health rules judge, folded from its events."""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from rl_tui.engine.session.health.zero_sum import ZeroSum
from rl_tui.engine.session.messages import (
    BehaviorRolledBack,
    BehaviorStarted,
    BehaviorStateChanged,
    EpisodeGroup,
    EpisodesFinished,
    Event,
    HyperparametersReported,
    LessonChanged,
    MetricsReported,
    ProgressReported,
)
from rl_tui.engine.session.returns import RECENT_EPISODES, RecentEpisodes, differ

FIRST_EPISODES = 20  # whose returns show how good the policy was before it learned much
LATEST_EPISODES = 1000  # at most, and a third of all: whose returns show how good it is now
DEVIATIONS_KEPT = 10  # summaries
WARM_UP = 3  # summaries before a policy has usual values


@dataclass(slots=True)
class Returns:
    """Mean returns: of the first episodes, of the newest hundred, and the best mean of a hundred so far.

    None before there are that many episodes. The first ones are those before an update, FIRST_EPISODES to a hundred of
    them. latest: more than a hundred, where there are many. deviations: of the last summaries. first_deviation: the
    largest of the first summaries.
    """

    first: float | None = None
    recent: float | None = None
    best: float | None = None
    episodes: RecentEpisodes = field(default_factory=RecentEpisodes)
    latest: RecentEpisodes = field(default_factory=RecentEpisodes)
    num_first: int = 0
    first_deviation: float = 0.0
    deviations: deque[float] = field(default_factory=lambda: deque(maxlen=DEVIATIONS_KEPT))
    _num_episodes: int = 0

    def add(self, event: EpisodesFinished | EpisodeGroup, is_untrained: bool) -> None:
        """Count episodes; a mean that is not finite is ignored. is_untrained: there was no update before."""
        if event.count < 1 or not math.isfinite(event.mean_return):
            return
        self.episodes.add(event.count, event.mean_return)
        self._num_episodes += event.count
        self.latest.size = min(max(RECENT_EPISODES, self._num_episodes // 3), LATEST_EPISODES)
        self.latest.add(event.count, event.mean_return)
        mean, count = self.episodes.mean, self.episodes.count
        is_first = is_untrained and self.num_first < RECENT_EPISODES
        if count >= FIRST_EPISODES and (self.first is None or is_first):
            self.first, self.num_first = mean, count
        if self.episodes.is_full and mean is not None:
            self.recent = mean
            self.best = mean if self.best is None else max(self.best, mean)

    def add_deviation(self, deviation: float, is_first: bool) -> None:
        """Add that of a summary. is_first: it is one of the first summaries."""
        self.deviations.append(deviation)
        if is_first:
            self.first_deviation = max(self.first_deviation, deviation)

    @property
    def deviation(self) -> float:
        """How far the returns of single episodes usually are from their mean."""
        return statistics.median_high(self.deviations) if self.deviations else 0.0

    @property
    def improvement(self) -> float:
        """How much better the latest episodes are than the first ones, in standard errors of that difference (Welch's
        t); 0 before there are enough of both."""
        latest = self.latest.mean
        if latest is None or self.first is None or not self.latest.is_full:
            return 0.0
        error = math.hypot(
            self.first_deviation / math.sqrt(self.num_first), self.deviation / math.sqrt(self.latest.count)
        )
        return (latest - self.first) / error if error > 0 else 0.0

    @property
    def have_fallen(self) -> bool:
        """Whether the newest are worse than the best, by more than single episodes usually differ, and by a tenth."""
        return self.best is not None and self.loss > max(self.deviation, 0.1 * abs(self.best))

    @property
    def gain(self) -> float:
        """How much better the best returns were than the first ones; 0 when that may be chance."""
        if self.first is None or self.best is None or self.best - self.first <= self.deviation:
            return 0.0
        return self.best - self.first

    @property
    def loss(self) -> float:
        """How much worse the newest returns are than the best."""
        return 0.0 if self.recent is None or self.best is None else self.best - self.recent

    @property
    def are_good(self) -> bool:
        """Whether the behavior has learned, and the newest episodes are about as good as the best so far."""
        return self.gain > 0 and self.loss <= self.gain / 5


@dataclass(slots=True)
class BehaviorHistory:
    """One behavior so far. Seconds count only while it trains.

    started: None when only later events were seen. hyperparameters: those that can be changed during training.
    advanced_at: the value of `seconds` when it last made progress. entropy_target: as in TrainerHealth. lowest_return,
    highest_return: of all episodes in this lesson, also of an earlier policy or process. began_lesson_well: this lesson
    began with a policy that was good in the one before. zero_sum: where it has several teams, of their returns.
    """

    started: BehaviorStarted | None = None
    hyperparameters: Mapping[str, float] = field(default_factory=dict)
    is_training: bool = False
    step: int = 0
    sampled: int = 0
    learned: int = 0
    num_updates: int = 0
    num_summaries: int = 0
    summary_step: int = 0
    seconds: float = 0.0
    advanced_at: float = 0.0
    returns: Returns = field(default_factory=Returns)
    entropy_target: str = ""
    lowest_return: float = math.inf
    highest_return: float = -math.inf
    began_lesson_well: bool = False
    zero_sum: ZeroSum = field(default_factory=ZeroSum)

    @property
    def is_good(self) -> bool:
        """Whether it has learned and is about as good as ever, or was when this lesson began and is no worse now.

        A policy that is good from the first episodes of a lesson on has nothing to learn in it.
        """
        return self.returns.are_good or (self.began_lesson_well and not self.returns.have_fallen)

    @property
    def has_differing_returns(self) -> bool:
        """Whether some episode had another return than the others."""
        return differ(self.lowest_return, self.highest_return)

    @property
    def is_solved(self) -> bool:
        """Whether the newest episodes reach the return with which the environment counts as solved."""
        threshold = None if self.started is None else self.started.reward_threshold
        mean = self.returns.episodes.mean
        return threshold is not None and mean is not None and mean >= threshold

    @property
    def is_filling_replay(self) -> bool:
        """Whether its replay buffer may not be full yet."""
        return self.started is not None and self.learned < self.started.step + self.started.replay_steps

    @property
    def num_agents(self) -> int:
        """How many agents usually act at once; 1 where it is not known."""
        return 1 if self.started is None else self.started.num_agents

    @property
    def num_teams(self) -> int:
        """How many its agents form; 0 without teams."""
        return 0 if self.started is None else len(self.started.teams)

    @property
    def learns_offline(self) -> bool:
        """Whether no episodes are to be expected."""
        return self.started is not None and self.started.learns_offline

    def restarted(self) -> BehaviorHistory:
        """The empty history of another policy of the same behavior."""
        history = BehaviorHistory(self.started, self.hyperparameters, self.is_training)
        history.lowest_return, history.highest_return = self.lowest_return, self.highest_return
        return history

    def apply(self, event: Event) -> None:
        """Apply one event of this behavior."""
        match event:
            case BehaviorStarted():
                self.started = event
                self.step = self.sampled = self.learned = event.step
                self.lowest_return = min(event.earlier_returns, default=math.inf)
                self.highest_return = max(event.earlier_returns, default=-math.inf)
            case HyperparametersReported():
                self.hyperparameters = event.values
            case BehaviorRolledBack():
                self.step = self.sampled = self.learned = event.step
            case BehaviorStateChanged():
                self.is_training = event.state == "training"
                self.advanced_at = self.seconds  # it was paused, or starts
            case ProgressReported():
                self._progress(event)
            case EpisodesFinished():
                self._episodes(event)
            case LessonChanged():  # returns of another task do not count, nor of episodes that each agent began in it
                self.began_lesson_well = self.is_good
                ignored = [RecentEpisodes(num_ignored=self.num_agents) for _ in range(2)]
                self.returns = Returns(episodes=ignored[0], latest=ignored[1])
                self.lowest_return, self.highest_return = math.inf, -math.inf
            case MetricsReported():
                self._summary(event)

    def _episodes(self, event: EpisodesFinished) -> None:
        for group in event.in_groups():
            self.returns.add(group, self.num_updates == 0)
        self.lowest_return = min(self.lowest_return, event.min_return)
        self.highest_return = max(self.highest_return, event.max_return)

    def _summary(self, event: MetricsReported) -> None:
        self.num_summaries, self.summary_step = self.num_summaries + 1, event.step
        if event.std_return is not None and math.isfinite(event.std_return):
            self.returns.add_deviation(event.std_return, self.num_summaries <= WARM_UP)
        if event.returns is not None and self.num_teams > 1:
            self.zero_sum.add(event.returns)

    def _progress(self, event: ProgressReported) -> None:
        has_advanced = (event.step, event.sampled, event.num_updates) != (self.step, self.sampled, self.num_updates)
        if has_advanced:
            self.advanced_at = self.seconds
        self.step, self.sampled, self.learned = event.step, event.sampled, event.num_learned
        self.num_updates = event.num_updates
