"""When a lesson ends: the decisions of ML-Agents' EnvironmentParameterManager.update_lessons, and nothing else."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from rl_tui.engine.config.environment_parameters import (
    CompletionCriteria,
    CurriculumSettings,
    EnvironmentParameter,
    Lesson,
)

NO_RATINGS: Mapping[str, float] = {}


class RewardWindow:
    """The returns of a behavior's newest episodes, newest first."""

    def __init__(self, size: int, returns: Iterable[float] = ()) -> None:
        """size: how many are kept. returns: oldest first."""
        self._returns: deque[float] = deque(maxlen=size)
        self._mean: float | None = None
        self.add(returns)

    def __len__(self) -> int:
        return len(self._returns)

    @property
    def returns(self) -> list[float]:
        """Oldest first."""
        return list(reversed(self._returns))

    @property
    def mean(self) -> float:
        """Of all that are kept; NaN without any."""
        if self._mean is None:
            self._mean = float(np.mean(self._returns)) if self._returns else math.nan
        return self._mean

    def add(self, returns: Iterable[float]) -> None:
        """Keep these, too, oldest first."""
        self._returns.extendleft(returns)
        self._mean = None

    def clear(self) -> None:
        """Forget all."""
        self._returns.clear()
        self._mean = None


@dataclass(frozen=True, slots=True)
class Advance:
    """parameters: those that have reached their next lesson. must_reset: a lesson that ended requires a full reset."""

    parameters: tuple[str, ...] = ()
    must_reset: bool = False


class Curricula:
    """The lesson of every parameter, counted from 0. A parameter without lessons stays at 0.

    lessons and smoothed: by parameter, of those with lessons; smoothed is the mean return as it was compared last.
    """

    def __init__(self, settings: Mapping[str, EnvironmentParameter]) -> None:
        self._all = {name: one.curriculum for name, one in settings.items() if isinstance(one, CurriculumSettings)}
        self.lessons: dict[str, int] = dict.fromkeys(self._all, 0)
        self.smoothed: dict[str, float] = dict.fromkeys(self._all, 0.0)

    @property
    def are_over(self) -> bool:
        """Whether every parameter is at its last lesson."""
        return all(self.criteria(name) is None for name in self._all)

    def lesson(self, parameter: str) -> Lesson:
        """The lesson that a parameter is at."""
        return self._all[parameter][self.lessons[parameter]]

    def num_lessons(self, parameter: str) -> int:
        """How many lessons a parameter has."""
        return len(self._all[parameter])

    def criteria(self, parameter: str) -> CompletionCriteria | None:
        """When its lesson ends; None at the last one."""
        is_last = self.lessons[parameter] + 1 >= len(self._all[parameter])
        return None if is_last else self.lesson(parameter).completion_criteria

    def window_size(self, behavior: str) -> int:
        """How many returns of a behavior count: the largest min_lesson_length of a lesson that names it."""
        every = [lesson.completion_criteria for lessons in self._all.values() for lesson in lessons]
        return max([1, *(one.min_lesson_length for one in every if one is not None and one.behavior == behavior)])

    def deciding(self, parameter: str) -> str:
        """The behavior that the first lesson of a parameter names; "" where it names none."""
        criteria = self._all[parameter][0].completion_criteria
        return "" if criteria is None else criteria.behavior

    def update(
        self,
        steps: Mapping[str, int],
        max_steps: Mapping[str, int],
        returns: Mapping[str, RewardWindow],
        ratings: Mapping[str, float] = NO_RATINGS,
    ) -> Advance:
        """Let every parameter whose lesson has ended go on to its next one. By behavior; unknown ones end no lesson.

        ratings: Elo of those that play themselves.
        """
        advanced, must_reset = [], False
        for parameter in self._all:
            criteria = self.criteria(parameter)
            if criteria is None or criteria.behavior not in steps:
                continue
            name = criteria.behavior
            measured = steps[name] / max_steps[name] if criteria.measure == "progress" else ratings.get(name)
            if self._has_ended(parameter, criteria, measured, returns[name]):
                self.lessons[parameter] += 1
                advanced.append(parameter)
                must_reset |= criteria.require_reset
        return Advance(tuple(advanced), must_reset)

    def _has_ended(
        self, parameter: str, criteria: CompletionCriteria, given: float | None, returns: RewardWindow
    ) -> bool:
        """given: the progress or the rating that is measured, where it is known."""
        if len(returns) < criteria.min_lesson_length:
            return False
        if criteria.measure != "reward":
            return given is not None and given > criteria.threshold
        measured = returns.mean
        if math.isnan(measured):
            return False
        if criteria.signal_smoothing:
            measured = self.smoothed[parameter] = 0.25 * self.smoothed[parameter] + 0.75 * measured
        return measured > criteria.threshold
