"""Evaluates a policy during training."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from rl_tui.engine.config.behavior import EvaluationSettings
from rl_tui.engine.errors import ConfigError, EnvironmentFailure, NotSupportedError
from rl_tui.engine.learning.policy_copies import MakePolicy
from rl_tui.engine.running.environment_reports import lines_of_reports
from rl_tui.engine.running.evaluation.episodes import Scores, play
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.running.watching.policy import LatestPolicy
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import EvaluationReported
from rl_tui.engine.specs import BehaviorSpec, Policy, Weights

PATIENCE_SECONDS = 60.0  # after which a warning says that training waits for an evaluation


class _NotTrainedYet(Exception):
    """The behavior of this name has appeared here first."""


class Evaluator:
    """Used in its learner's thread. Owns environments, made when the first evaluation begins, and a policy.

    Other behaviors in these environments act with the newest of their policies.

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
        trained: Mapping[str, tuple[MakePolicy, LatestPolicy]],
        lessons: Lessons | None = None,
    ):
        """trained: the behaviors that have appeared in training; it may grow."""
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
            scores = self._play(weights, should_continue)
        except _NotTrainedYet as error:
            self._awaited = str(error)
            self._bus.log("info", self._behavior, f"evaluation waits until behavior {error} appears in training")
            return {}
        except (EnvironmentFailure, ConfigError, NotSupportedError) as error:
            self.is_on = False
            self.close()
            without = "evaluation has ended; training continues, and ranks checkpoints by its own episodes"
            self._bus.log("warning", self._behavior, f"{without}: {error}")
            return {}
        if scores is None:
            return {}
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
            )
        )
        return scores.metrics

    def close(self) -> None:
        """Free the environments, unless one of them hangs. Harmless when called twice."""
        if self.pool is not None and self.pool.busy_since is None:
            self.pool.close()
            self.pool = None

    def _log_reports(self) -> None:
        assert self.pool is not None
        for level, text in lines_of_reports(self.pool):
            self._bus.log(level, self._behavior, f"evaluation: {text}")

    def _play(self, weights: Weights, should_continue: Callable[[], bool]) -> Scores | None:
        if self.pool is None:
            self.pool = self._make_pool()
            self._give_parameters(self.pool)
            self.pool.start()
        else:
            self._give_parameters(self.pool)
        self._policy.load(weights)
        self._policy.load_state(self._draws)
        patience = self._patience(should_continue)
        return play(self.pool, self._policy_for, self._behavior, self._settings.episodes, self._seed, patience)

    def _give_parameters(self, pool: EnvironmentPool) -> None:
        """Those of the current lessons, with the same draws in every evaluation."""
        if self._lessons is not None and self._lessons.has_any:
            pool.set_parameters(self._lessons.values, restart=True)

    def _policy_for(self, spec: BehaviorSpec) -> Policy:
        if spec.name == self._behavior:
            return self._policy
        if spec.name not in self._trained:
            raise _NotTrainedYet(spec.name)
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
