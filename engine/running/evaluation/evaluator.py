"""Evaluates a policy during training."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rl_tui.engine.config.behavior import EvaluationSettings
from rl_tui.engine.errors import ConfigError, EnvironmentFailure, NotSupportedError
from rl_tui.engine.running.environment_reports import lines_of_reports
from rl_tui.engine.running.evaluation.episodes import Scores, play
from rl_tui.engine.running.evaluation.match import Match
from rl_tui.engine.running.evaluation.opponents import NotTrainedYet, Trained
from rl_tui.engine.running.games.playing import play_games
from rl_tui.engine.running.games.rules import PlayedGame, Record
from rl_tui.engine.running.games.seats import seats_of
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import EvaluationReported
from rl_tui.engine.specs import BehaviorSpec, Policy, Weights

PATIENCE_SECONDS = 60.0  # after which a warning says that training waits for an evaluation


class Evaluator:
    """Used in its learner's thread. Owns environments, made when the first evaluation begins, and a policy.

    Other behaviors in these environments act with the newest of their policies.

    With an opponent, the policy plays one team, each of its behavior in turn, and the opponent all others.

    Every evaluation begins with the same seeds, so that a policy always gets the same scores. mean_return: of
    the newest evaluation, None before the first. is_on: until an environment fails; training continues without it.
    """

    def __init__(
        self,
        settings: EvaluationSettings,
        behavior: str,
        make_pool: Callable[[], EnvironmentPool],
        policy: Policy,
        seed: int,
        bus: EventBus,
        trained: Trained,
        lessons: Lessons | None = None,
        match: Match | None = None,
    ):
        """trained: the behaviors that have appeared in training; it may grow. match: None without an opponent."""
        self.mean_return: float | None = None
        self.is_on = True
        self.pool: EnvironmentPool | None = None
        self._settings = settings
        self._behavior = behavior
        self._make_pool = make_pool
        self._policy = policy
        self._draws = policy.state()
        self._seed = seed
        self._bus = bus
        self._trained = trained
        self._lessons = lessons
        self._match = match
        self._awaited: str | None = None  # a behavior that has appeared here, and not in training yet
        self._version: int | None = None  # of the weights evaluated last
        self._lessons_version = 0  # in which that was

    @property
    def ranking_return(self) -> float | None:
        """The mean return, unless it is of earlier lessons."""
        return self.mean_return if self._lessons_version == self._newest_lessons else None

    @property
    def _newest_lessons(self) -> int:
        return self._lessons.version if self._lessons is not None else 0

    @property
    def interval(self) -> int:
        """Steps between two evaluations."""
        return self._settings.interval

    def restart(self) -> None:
        """Nothing was evaluated at the step where training begins or resumes."""
        self.mean_return = self._version = None

    def can_evaluate(self, version: int) -> bool:
        """Whether these weights can be evaluated now: never twice the same, nor without the policies of others."""
        has_others = self._awaited is None or self._awaited in self._trained
        return self.is_on and has_others and version != self._version

    def evaluate(self, step: int, weights: Weights, should_continue: Callable[[], bool]) -> Mapping[str, float]:
        """Play with these weights and publish the scores; their means by tag. Empty when interrupted, or it fails."""
        start, lessons_version = time.monotonic(), self._newest_lessons
        try:
            played = self._play(weights, should_continue)
        except NotTrainedYet as error:
            self._awaited = str(error)
            self._bus.log("info", self._behavior, f"evaluation waits until behavior {error} appears in training")
            return {}
        except (EnvironmentFailure, ConfigError, NotSupportedError) as error:
            self.is_on = False
            self.close()
            without = "evaluation has ended; training continues, and ranks checkpoints by its own episodes"
            self._bus.log("warning", self._behavior, f"{without}: {error}")
            return {}
        if played is None:
            return {}
        scores, record = played
        self._version, self.mean_return = weights.version, float(scores.returns.mean())
        self._lessons_version = lessons_version
        self._bus.publish(
            EvaluationReported(
                behavior=self._behavior,
                step=step,
                mean_return=float(scores.returns.mean()),
                std_return=float(scores.returns.std()),
                episodes=len(scores.returns),
                mean_length=float(scores.lengths.mean()),
                seconds=time.monotonic() - start,
                deterministic=self._settings.deterministic,
                won=record.won,
                drawn=record.drawn,
                lost=record.lost,
            )
        )
        win_rate = {} if record.win_rate is None else {"Evaluation/Win Rate": record.win_rate}
        return {**scores.metrics, **win_rate}

    def close(self) -> None:
        """Free the environments, unless one of them hangs. Harmless when called twice."""
        if self.pool is not None and self.pool.busy_since is None:
            self.pool.close()
            self.pool = None

    def _log_reports(self) -> None:
        assert self.pool is not None
        for level, text in lines_of_reports(self.pool):
            self._bus.log(level, self._behavior, f"evaluation: {text}")

    def _play(self, weights: Weights, should_continue: Callable[[], bool]) -> tuple[Scores, Record] | None:
        """The record is empty without an opponent."""
        if self.pool is None:
            self.pool = self._make_pool()
            self._give_parameters(self.pool)
            self.pool.start()
        else:
            self._give_parameters(self.pool)
        self._policy.load(weights)
        self._policy.load_state(self._draws)
        patience = self._patience(should_continue)
        if self._match is None:
            scores = play(self.pool, self._policy_for, self._behavior, self._settings.episodes, self._seed, patience)
            return None if scores is None else (scores, Record())
        games = self._play_match(self._match, self.pool, patience)
        return None if games is None else (scores_of(games), self._match.rules.record(games))

    def _play_match(
        self, match: Match, pool: EnvironmentPool, should_continue: Callable[[], bool]
    ) -> list[PlayedGame] | None:
        """Games in each seat, as many as in any other one where their number allows that."""
        seats = [seat for seat in seats_of(pool.specs, self._behavior) if seat.behavior == self._behavior]
        games: list[PlayedGame] = []
        for number, seat in enumerate(seats):
            count = (self._settings.episodes + number) // len(seats)
            if number:
                self._give_parameters(pool)
            played = play_games(
                pool, seat, self._policy_for, match.opponent.policy_for, count, self._seed, should_continue
            )
            if played is None:
                return None
            games += played
        return games

    def _give_parameters(self, pool: EnvironmentPool) -> None:
        """Those of the current lessons, with the same draws in every evaluation."""
        if self._lessons is not None and self._lessons.has_any:
            pool.set_parameters(self._lessons.values, restart=True)

    def _policy_for(self, spec: BehaviorSpec) -> Policy:
        if spec.name == self._behavior:
            return self._policy
        if spec.name not in self._trained:
            raise NotTrainedYet(spec.name)
        make, latest = self._trained[spec.name]
        policy = make(self._settings.deterministic)
        policy.load(latest.snapshot.weights)
        return policy

    def _patience(self, should_continue: Callable[[], bool]) -> Callable[[], bool]:
        """The same, with one warning when it takes long: episodes that never end would block training silently."""
        until: float | None = time.monotonic() + PATIENCE_SECONDS

        def patient() -> bool:
            nonlocal until
            self._log_reports()
            if until is not None and time.monotonic() > until:
                until = None
                text = f"{self._settings.episodes} episodes of evaluation have taken {PATIENCE_SECONDS:g} s so far"
                self._bus.log("warning", self._behavior, f"{text}; training waits for their end")
            return should_continue()

        return patient


def scores_of(games: Sequence[PlayedGame]) -> Scores:
    """The games as episodes."""
    returns = np.array([game.total for game in games])
    return Scores(returns, np.array([game.length for game in games], np.int64))
