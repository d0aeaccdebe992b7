"""What a screen shows of one behavior."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from rl_tui.engine.session.history import History
from rl_tui.engine.session.league_view import RATING, LeagueView
from rl_tui.engine.session.messages import (
    BehaviorRolledBack,
    CheckpointSaved,
    EvaluationReported,
    Histogram,
    HyperparameterChanged,
    LessonChanged,
    PolicyExported,
    Range,
    TimeSplit,
    WaitsFor,
)
from rl_tui.engine.session.returns import RecentEpisodes, best_checkpoint, ranking_loss
from rl_tui.engine.session.states import BehaviorState

RETURN = "Return"  # the curve of episodes as they end; the other curves have the summaries' tags
EVALUATION = "Evaluation/Cumulative Reward"  # the curve of evaluations
LESSON_NUMBER = "Environment/Lesson Number/"  # ML-Agents' tag, before the parameter; numbers from 0


@dataclass(slots=True)
class BehaviorView:
    """One behavior as a pane shows it.

    After a roll back, and where a resumed run continues from an earlier step, what was learned beyond that step no
    longer counts. recent: the newest episodes since then. evaluations: the newest, oldest first.
    """

    name: str
    algorithm: str = ""
    environment: str = ""
    state: BehaviorState = "starting"
    reason: str = ""
    can_roll_back: bool = False  # though it failed
    has_started: bool = False  # in the newest process of the run
    step: int = 0
    first_step: int = 0  # where it stood when the run began or was resumed
    sampled: int = 0  # steps of its agents
    learned: int = 0  # those of them that are or will be learned from
    max_steps: int = 0
    num_agents: int = 0
    num_parameters: int = 0
    threaded: bool = False
    replay_steps: int = 0  # this and the next three as BehaviorStarted has them
    replay_bytes: int = 0
    first_update_step: int = 0
    headline_metrics: tuple[str, ...] = ()
    reward_threshold: float | None = None  # the mean return with which its environment counts as solved
    learns_offline: bool = False  # from demonstrations, and no agent acts
    plays_itself: bool = False  # its opponents act by its own earlier policies
    league: LeagueView | None = None  # of self-play, once something was reported
    silent_since: float | None = None  # wall time of its last step, where no other came for a moment
    waits_for: WaitsFor = "environment"  # what that silence is
    reported_steps_per_second: float = 0.0  # before it
    num_updates: int = 0
    steps_per_second: float = 0.0
    num_episodes: int = 0
    episode_counts: History = field(default_factory=History)  # num_episodes by step
    evaluations: list[EvaluationReported] = field(default_factory=list)
    best_evaluations: list[EvaluationReported] = field(default_factory=list)  # each better than all before it
    recent: RecentEpisodes = field(default_factory=RecentEpisodes)
    recent_lengths: RecentEpisodes = field(default_factory=RecentEpisodes)  # in steps, of the same episodes
    metrics: dict[str, float] = field(default_factory=dict)  # latest summary by ML-Agents' tag
    histories: dict[str, History] = field(default_factory=lambda: {RETURN: History()})  # by tag
    histogram: Histogram | None = None  # of the returns since the summary before
    time_split: TimeSplit | None = None
    # Below, what happened with its wall time, newest last.
    checkpoints: list[tuple[float, CheckpointSaved]] = field(default_factory=list)
    exports: list[tuple[float, PolicyExported]] = field(default_factory=list)
    lessons: list[tuple[float, LessonChanged]] = field(default_factory=list)  # that have begun for it, at its own steps
    changes: list[tuple[float, HyperparameterChanged]] = field(default_factory=list)
    rollbacks: list[tuple[float, BehaviorRolledBack]] = field(default_factory=list)
    hyperparameters: dict[str, float] = field(default_factory=dict)  # those that may be changed now
    ranges: Mapping[str, Range] = field(default_factory=dict)  # what they may be changed to

    @property
    def returns(self) -> History:
        """The curve of episodes as they ended."""
        return self.histories[RETURN]

    @property
    def has_returns(self) -> bool:
        """Whether episodes of its training end: not where it learns from demonstrations, and never did otherwise."""
        return not self.learns_offline or len(self.returns) > 0

    @property
    def tags(self) -> list[str]:
        """Of its curves, that of its returns among them before the first one."""
        return [tag for tag in self.histories if tag != RETURN or self.has_returns]

    @property
    def mean_return(self) -> float | None:
        """Of the newest episodes of training; None before the first has ended."""
        return self.recent.mean

    @property
    def rating(self) -> float | None:
        """Elo of the policy that learns, as it was reported last; None without self-play."""
        return self.metrics.get(RATING) if self.league is None else self.league.report.rating

    @property
    def course(self) -> History:
        """The curve that says how well it learns: of ratings in self-play, where wins of one side are losses of the
        other and the mean return says nothing, else of returns."""
        return self.histories.get(RATING, History()) if self.plays_itself else self.returns

    @property
    def course_since(self) -> float:
        """The step from which on `course` is of one task: a lesson changes returns at once, ratings only with time."""
        return -math.inf if self.plays_itself else self.lesson_began_at

    @property
    def mean_length(self) -> float | None:
        """Of the same episodes, in steps."""
        return self.recent_lengths.mean

    @property
    def lesson_began_at(self) -> float:
        """The step at which its newest lesson began; returns up to it are of another task. -inf without one."""
        return self.lessons[-1][1].step if self.lessons else -math.inf

    @property
    def is_filling(self) -> bool:
        """Whether it only fills its replay buffer: no update comes before a certain step."""
        return self.state == "training" and self.step < self.first_update_step

    @property
    def remaining_seconds(self) -> float | None:
        """Until it reaches max_steps at its speed of now; None if unknown.

        While it fills its replay buffer nothing is: it will be slower once it learns.
        """
        if self.state != "training" or self.is_filling or self.steps_per_second <= 0 or not self.max_steps:
            return None
        if self.silent_since is not None and self.waits_for == "environment":
            return None
        seconds = max(0, self.max_steps - self.step) / self.steps_per_second
        return seconds if math.isfinite(seconds) else None

    @property
    def best_checkpoint(self) -> CheckpointSaved | None:
        """Of those on disk; None while none has a return or a held-out loss."""
        return best_checkpoint([saved for _, saved in self.checkpoints])

    @property
    def best_return(self) -> float | None:
        """Of the best checkpoint."""
        best = self.best_checkpoint
        return None if best is None else best.mean_return

    @property
    def best_loss(self) -> float | None:
        """The held-out loss of the best checkpoint, where it has no return."""
        best = self.best_checkpoint
        return None if best is None else ranking_loss(best)

    @property
    def evaluation(self) -> EvaluationReported | None:
        """The newest; None without any."""
        return self.evaluations[-1] if self.evaluations else None

    @property
    def best_evaluation(self) -> EvaluationReported | None:
        """The one with the highest mean; None without any."""
        return self.best_evaluations[-1] if self.best_evaluations else None

    def rewind(self, step: int) -> None:
        """Forget what was learned beyond `step`, with its marks, which would be misplaced in the curve that follows."""
        self.step = self.sampled = self.learned = step
        self.recent, self.recent_lengths, self.histogram = RecentEpisodes(), RecentEpisodes(), None
        self.league = self.league if self.league is not None and self.league.report.step <= step else None
        self.evaluations = [evaluation for evaluation in self.evaluations if evaluation.step <= step]
        self.best_evaluations = [evaluation for evaluation in self.best_evaluations if evaluation.step <= step]
        self.lessons = [(at, lesson) for at, lesson in self.lessons if lesson.step <= step]
        self.changes = [(at, change) for at, change in self.changes if change.step <= step]
        for history in (*self.histories.values(), self.episode_counts):
            history.rewind(step)
        self.num_episodes = int(self.episode_counts.high[-1]) if len(self.episode_counts) else 0
        curves = {tag: history.mean for tag, history in self.histories.items() if len(history)}
        self.metrics = {tag: curves[tag][-1] for tag in self.metrics if tag in curves}
