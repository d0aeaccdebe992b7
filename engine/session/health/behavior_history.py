"""The history of one behavior that health rules judge, folded from its events."""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from rl_tui.engine.session.messages import (
    BehaviorRolledBack,
    BehaviorStarted,
    BehaviorStateChanged,
    EpisodesFinished,
    Event,
    HyperparametersReported,
    LessonChanged,
    MetricsReported,
    ProgressReported,
)
from rl_tui.engine.session.returns import RecentEpisodes

FIRST_EPISODES = 20  # whose returns show how good the policy was before it learned much
DEVIATIONS_KEPT = 10  # summaries


@dataclass(slots=True)
class Returns:
    """Mean returns: of the first FIRST_EPISODES, of the newest hundred, and the best mean of a hundred so far.

    None before there are that many episodes. deviations: of the last summaries.
    """

    first: float | None = None
    recent: float | None = None
    best: float | None = None
    episodes: RecentEpisodes = field(default_factory=RecentEpisodes)
    deviations: deque[float] = field(default_factory=lambda: deque(maxlen=DEVIATIONS_KEPT))

    def add(self, event: EpisodesFinished) -> None:
        """Count episodes; a mean that is not finite is ignored."""
        if event.count < 1 or not math.isfinite(event.mean_return):
            return
        self.episodes.add(event.count, event.mean_return)
        mean = self.episodes.mean
        if self.first is None and self.episodes.count >= FIRST_EPISODES:
            self.first = mean
        if self.episodes.is_full and mean is not None:
            self.recent = mean
            self.best = mean if self.best is None else max(self.best, mean)

    @property
    def deviation(self) -> float:
        """How far the returns of single episodes usually are from their mean."""
        return statistics.median_high(self.deviations) if self.deviations else 0.0

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
    advanced_at: the value of `seconds` when it last made progress. entropy_target: as in TrainerHealth.
    """

    started: BehaviorStarted | None = None
    hyperparameters: Mapping[str, float] = field(default_factory=dict)
    is_training: bool = False
    step: int = 0
    sampled: int = 0
    num_updates: int = 0
    num_summaries: int = 0
    summary_step: int = 0
    seconds: float = 0.0
    advanced_at: float = 0.0
    returns: Returns = field(default_factory=Returns)
    entropy_target: str = ""

    @property
    def num_agents(self) -> int:
        """How many agents usually act at once; 1 where it is not known."""
        return 1 if self.started is None else self.started.num_agents

    def restarted(self) -> BehaviorHistory:
        """The empty history of another policy of the same behavior."""
        return BehaviorHistory(self.started, self.hyperparameters, self.is_training)

    def apply(self, event: Event) -> None:
        """Apply one event of this behavior."""
        match event:
            case BehaviorStarted():
                self.started = event
                self.step = self.sampled = event.step
            case HyperparametersReported():
                self.hyperparameters = event.values
            case BehaviorRolledBack():
                self.step = self.sampled = event.step
            case BehaviorStateChanged():
                self.is_training = event.state == "training"
                self.advanced_at = self.seconds  # it was paused, or starts
            case ProgressReported():
                self._progress(event)
            case EpisodesFinished():
                self.returns.add(event)
            case LessonChanged():  # returns of another task do not count, nor of episodes that each agent began in it
                self.returns = Returns(episodes=RecentEpisodes(num_ignored=self.num_agents))
            case MetricsReported():
                self.num_summaries, self.summary_step = self.num_summaries + 1, event.step
                if event.std_return is not None and math.isfinite(event.std_return):
                    self.returns.deviations.append(event.std_return)

    def _progress(self, event: ProgressReported) -> None:
        has_advanced = (event.step, event.sampled, event.num_updates) != (self.step, self.sampled, self.num_updates)
        if has_advanced:
            self.advanced_at = self.seconds
        self.step, self.sampled, self.num_updates = event.step, event.sampled, event.num_updates
