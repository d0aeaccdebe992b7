"""The environment parameters of the demo: one with lessons, which the first behavior passes, a sampler, a constant."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rl_tui.engine.session.messages import (
    EpisodesFinished,
    Event,
    LessonChanged,
    ParametersReported,
    ParameterStatus,
    SetLesson,
)
from rl_tui.tui.demo.jobs import Outcome

LEARNER = "Walker"  # whose returns end lessons
PARAMETER = "terrain_height"
EPISODES = 100  # min_lesson_length
FIXED = {
    "torso_mass": ParameterStatus("sampler", "normal, mean 3.5, st. dev. 0.4"),
    "gravity": ParameterStatus("number", "9.81"),
}


@dataclass(frozen=True, slots=True)
class Lesson:
    """Heights from 0 to `height`; over once the mean return is greater than `threshold`."""

    name: str
    height: float
    threshold: float = 0.0

    @property
    def value(self) -> str:
        """What the environment is given, in words."""
        return f"uniform from 0 to {self.height:g}" if self.height else "0"


LESSONS = (
    Lesson("Flat", 0.0, 120.0),
    Lesson("Pebbles", 0.1, 220.0),
    Lesson("Slopes", 0.4, 330.0),
    Lesson("Hills", 0.8, 480.0),
    Lesson("Mountains", 1.6),
)


class Lessons:
    """Owns the lesson, and the returns that count for it. Returns events; the story publishes them."""

    def __init__(self) -> None:
        self.lesson = 0  # index in LESSONS
        self._reached = [(0, 0)]  # step and lesson
        self._returns: deque[EpisodesFinished] = deque()
        self._step = 0

    def follow(self, events: Iterable[Event]) -> Iterator[Event]:
        """What these events of the learner change."""
        finished = [event for event in events if isinstance(event, EpisodesFinished)]
        for event in finished:
            self._returns.append(event)
            self._step = event.step
            while self._num_episodes - self._returns[0].count >= EPISODES:
                self._returns.popleft()
        if not finished:
            return
        is_last = self.lesson + 1 == len(LESSONS)
        if not is_last and self._num_episodes >= EPISODES and (self._mean or 0.0) > LESSONS[self.lesson].threshold:
            yield from self._go(self.lesson + 1)
        else:
            yield self.report()

    def set(self, command: SetLesson) -> tuple[list[Event], Outcome]:
        """Go to a lesson by hand."""
        if command.parameter != PARAMETER:
            return [], (False, f"{command.parameter} has no lessons")
        if not 1 <= command.lesson <= len(LESSONS):
            return [], (False, f"lesson: must be from 1 to {len(LESSONS)}, got {command.lesson}")
        name = LESSONS[command.lesson - 1].name
        events = list(self._go(command.lesson - 1))
        return events, (True, f"{PARAMETER}: lesson {command.lesson} of {len(LESSONS)} {name!r}")

    def roll_back(self, step: int) -> Iterator[Event]:
        """As it was at that step."""
        self._reached = [each for each in self._reached if each[0] <= step]
        self._step, lesson = step, self._reached[-1][1]
        if lesson != self.lesson:
            yield from self._go(lesson)

    def report(self) -> ParametersReported:
        """Every parameter now."""
        lesson, is_last = LESSONS[self.lesson], self.lesson + 1 == len(LESSONS)
        status = ParameterStatus("lessons", lesson.value, self.lesson + 1, len(LESSONS), lesson.name)
        if not is_last:
            status = ParameterStatus(
                "lessons", lesson.value, self.lesson + 1, len(LESSONS), lesson.name, LEARNER, "reward", self._mean,
                lesson.threshold, min(EPISODES, self._num_episodes), EPISODES,
            )  # fmt: skip
        return ParametersReported({PARAMETER: status, **FIXED})

    @property
    def _num_episodes(self) -> int:
        return sum(event.count for event in self._returns)

    @property
    def _mean(self) -> float | None:
        """Of the episodes that count; None without any."""
        total = sum(event.count * event.mean_return for event in self._returns)
        return total / self._num_episodes if self._returns else None

    def _go(self, lesson: int) -> Iterator[Event]:
        self.lesson = lesson
        self._reached.append((self._step, lesson))
        self._returns.clear()
        yield LessonChanged(LEARNER, self._step, PARAMETER, lesson + 1, len(LESSONS), LESSONS[lesson].name)
        yield self.report()


def configuration_lines() -> list[str]:
    """The YAML of these parameters."""
    lines = ["environment_parameters:", f"  {PARAMETER}:", "    curriculum:"]
    for lesson in LESSONS:
        lines += [f"    - name: {lesson.name}", *_criteria(lesson), *_value(lesson)]
    lines += ["  torso_mass:", "    sampler_type: gaussian", "    sampler_parameters: {mean: 3.5, st_dev: 0.4}"]
    return [*lines, "  gravity: 9.81"]


def _criteria(lesson: Lesson) -> list[str]:
    if lesson is LESSONS[-1]:
        return []
    return [
        "      completion_criteria:",
        f"        behavior: {LEARNER}",
        "        measure: reward",
        f"        threshold: {lesson.threshold:g}",
        f"        min_lesson_length: {EPISODES}",
        "        signal_smoothing: false",
    ]


def _value(lesson: Lesson) -> list[str]:
    if not lesson.height:
        return ["      value: 0"]
    sampler = f"{{min_value: 0, max_value: {lesson.height:g}}}"
    return ["      value:", "        sampler_type: uniform", f"        sampler_parameters: {sampler}"]
