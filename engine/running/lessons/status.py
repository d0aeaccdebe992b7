"""How an environment parameter is, for the screen and the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rl_tui.engine.config.environment_parameters import (
    ConstantSampler,
    CurriculumSettings,
    EnvironmentParameter,
    GaussianSampler,
    MultiRangeUniformSampler,
    SamplerSettings,
    UniformSampler,
)
from rl_tui.engine.running.lessons.curricula import Curricula, RewardWindow
from rl_tui.engine.session.messages import ParameterStatus


@dataclass(frozen=True, slots=True)
class Measures:
    """What lessons are measured by, by behavior, as `Lessons` has it: newest returns, steps and max_steps, Elo."""

    windows: Mapping[str, RewardWindow]
    steps: Mapping[str, tuple[int, int]]
    ratings: Mapping[str, float]


def status_of(
    name: str,
    setting: EnvironmentParameter,
    curricula: Curricula,
    measures: Measures,
    *,
    advances: bool = True,
) -> ParameterStatus:
    """Of the parameter with that setting. advances: its lessons end by themselves."""
    if not isinstance(setting, CurriculumSettings):
        is_number = isinstance(setting, float | ConstantSampler)
        return ParameterStatus("number" if is_number else "sampler", in_words(setting))
    lesson, criteria = curricula.lesson(name), curricula.criteria(name)
    number, count = curricula.lessons[name] + 1, curricula.num_lessons(name)
    if criteria is None:
        return ParameterStatus("lessons", in_words(lesson.value), number, count, lesson.name)
    window = measures.windows.get(criteria.behavior)
    current: float | None
    if criteria.measure == "progress":
        step, max_steps = measures.steps.get(criteria.behavior, (0, 1))
        current = step / max_steps
    elif criteria.measure == "Elo":
        current = measures.ratings.get(criteria.behavior)
    elif not window:
        current = None
    else:
        is_compared = len(window) >= criteria.min_lesson_length  # before, `smoothed` is of earlier lessons
        current = curricula.smoothed[name] if criteria.signal_smoothing and is_compared else window.mean
    return ParameterStatus(
        kind="lessons",
        value=in_words(lesson.value),
        lesson=number,
        num_lessons=count,
        name=lesson.name,
        behavior=criteria.behavior,
        measure=criteria.measure if advances else "",
        current=current,
        threshold=criteria.threshold,
        episodes=len(window) if window else 0,
        min_lesson_length=criteria.min_lesson_length,
        require_reset=criteria.require_reset,
    )


def in_words(value: float | SamplerSettings) -> str:
    """A number, or what a sampler draws."""
    match value:
        case UniformSampler(sampler_parameters=of):
            return f"uniform from {of.min_value:g} to {of.max_value:g}"
        case GaussianSampler(sampler_parameters=of):
            return f"normal, mean {of.mean:g}, st. dev. {of.st_dev:g}"
        case MultiRangeUniformSampler(sampler_parameters=of):
            return "uniform over " + ", ".join(f"{low:g} to {high:g}" for low, high in of.intervals)
        case ConstantSampler(sampler_parameters=of):
            return f"{of.value:g}"
        case _:
            return f"{value:g}"
