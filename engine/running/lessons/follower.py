"""Environments that follow the lessons of their run."""

from __future__ import annotations

from rl_tui.engine.running.collection import Collection
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.sampling.parameters import shifted
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.specs import Trajectories


class LessonFollower:
    """Used by the thread of one environment."""

    def __init__(self, lessons: Lessons) -> None:
        self._lessons = lessons
        self._version = -1
        self._num_resets = lessons.num_resets
        self._shift = 0
        self._may_end_lesson = False

    def prepare(self, pool: EnvironmentPool, first_step: int) -> None:
        """Give a new pool its parameters, before it starts. Training begins or resumes at that step: what samplers
        drew before is not drawn again."""
        self._shift = first_step
        self._version, self._num_resets = -1, self._lessons.num_resets
        if self._lessons.has_any:
            self._give(pool)

    def add_returns(self, behavior: str, block: Trajectories) -> None:
        """Count the episodes in a block of experience."""
        if self._lessons.has_any:
            self._lessons.add_returns(behavior, block.episode_returns.tolist())
            self._may_end_lesson = True

    def follow(self, running: Collection, seed: int) -> None:
        """Called after every step, before agents act: end the lessons that are over, and follow all that have ended.

        seed: of the environment.
        """
        if not self._lessons.has_any:
            return
        if self._may_end_lesson:  # who reads the events knows by their order which episodes ended in which lesson
            self._may_end_lesson = False
            running.reporter.follow_rollbacks()
            running.reporter.publish_episodes()
        learners = {name: behavior.learner for name, behavior in running.behaviors.items()}
        ratings = {name: each.league.rating for name, each in running.behaviors.items() if each.league is not None}
        self._lessons.update({name: (each.step, each.max_steps) for name, each in learners.items()}, ratings)
        if self._version != self._lessons.version:
            self._give(running.pool)
        if self._num_resets != self._lessons.num_resets:
            self._num_resets = self._lessons.num_resets
            running.collector.reset(seed + max(learner.step for learner in learners.values()))

    def _give(self, to: EnvironmentPool) -> None:
        self._version = self._lessons.version
        to.set_parameters(shifted(self._lessons.values, self._shift))
