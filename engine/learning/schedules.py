"""ML-Agents' two schedules of coefficients."""

from __future__ import annotations

from typing import Protocol

from rl_tui.engine.config.hyperparameters import Schedule

MIN_LEARNING_RATE, MIN_EPSILON, MIN_BETA = 1e-10, 0.1, 1e-5  # where ML-Agents' linear schedules end


def scheduled(kind: Schedule, start: float, end: float, step: int, max_steps: int) -> float:
    """The value at `step`: always `start`, or linear from `start` at step 0 to `end` at `max_steps` and after."""
    if kind == "constant":
        return start
    return (start - end) * (1 - min(step, max_steps) / max_steps) + end


class LearningRate(Protocol):
    """Settings of a trainer with ML-Agents' two keys of its learning rate."""

    @property
    def learning_rate(self) -> float:
        """At the start."""

    @property
    def learning_rate_schedule(self) -> Schedule:
        """How it falls."""


def scheduled_learning_rate(settings: LearningRate, step: int, max_steps: int) -> float:
    """The learning rate of these settings at `step`."""
    return scheduled(settings.learning_rate_schedule, settings.learning_rate, MIN_LEARNING_RATE, step, max_steps)
