"""The environment parameters of a run: which lessons they are at, and which values hold now."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from typing import cast

from rl_tui.engine.config.environment_parameters import CurriculumSettings, EnvironmentParameter, SamplerSettings
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.lessons.curricula import NO_RATINGS, Curricula, RewardWindow
from rl_tui.engine.running.lessons.status import Measures, status_of
from rl_tui.engine.running.triggers import Trigger
from rl_tui.engine.sampling.parameters import ParameterValues, with_seeds
from rl_tui.engine.session.behavior_view import LESSON_NUMBER
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import LessonChanged, ParametersReported, ParameterStatus
from rl_tui.engine.specs import Json, State
from rl_tui.engine.storage.checkpoint_format import LESSONS

REPORT_SECONDS = 0.5


class Lessons:
    """Shared by the threads of all environments, and by the coordinator.

    version: counts the changes of values. num_resets: counts the lessons that ended with a full reset. Environments
    compare both with those that they have followed.
    """

    def __init__(
        self, settings: Mapping[str, EnvironmentParameter] | None, seed: int, bus: EventBus, *, advances: bool = True
    ) -> None:
        """settings: of the file. seed: of the run. advances: lessons end by themselves."""
        self.version = 0
        self.num_resets = 0
        self._settings = with_seeds(settings or {}, seed)
        self._bus = bus
        self._advances = advances
        self._curricula = Curricula(self._settings)
        self._windows: dict[str, RewardWindow] = {}  # by behavior
        self._steps: dict[str, tuple[int, int]] = {}  # by behavior: its step and its max_steps
        self._ratings: dict[str, float] = {}  # by behavior
        self._report = Trigger(REPORT_SECONDS, by_clock=True)
        self._reported: Mapping[str, ParameterStatus] = {}
        self._lock = threading.RLock()  # environments of other threads decide on the same lessons

    @property
    def has_any(self) -> bool:
        """Whether there are any environment parameters."""
        return bool(self._settings)

    @property
    def values(self) -> ParameterValues:
        """What holds now."""
        with self._lock:
            return {name: self._value(name, setting) for name, setting in self._settings.items()}

    @property
    def numbers(self) -> dict[str, int]:
        """The lesson of each parameter, from 0."""
        with self._lock:
            return {name: self._curricula.lessons.get(name, 0) for name in self._settings}

    @property
    def metrics(self) -> dict[str, float]:
        """The same, by ML-Agents' tags."""
        return {f"{LESSON_NUMBER}{name}": float(number) for name, number in self.numbers.items()}

    def add_returns(self, behavior: str, returns: Iterable[float]) -> None:
        """Episodes of a behavior have ended, oldest first."""
        with self._lock:
            self._window(behavior).add(returns)

    def update(self, steps: Mapping[str, tuple[int, int]], ratings: Mapping[str, float] = NO_RATINGS) -> None:
        """Let every lesson that has ended go on. steps: by behavior, its step and its max_steps. ratings: Elo of those
        that play themselves."""
        if not self.has_any:
            return
        with self._lock:
            self._steps.update(steps)
            self._ratings.update(ratings)
            if self._advances and not self._curricula.are_over:
                self._advance()
            self._report.fire(time.monotonic(), lambda _: self.publish())

    def set(self, parameter: str, lesson: int) -> str:
        """Go to a lesson, from 1, by hand; what that is, in words. Raises ConfigError."""
        with self._lock:
            if parameter not in self._settings:
                if not self._settings:
                    raise ConfigError("the run has no environment parameters")
                raise ConfigError(f"parameter: must be one of {', '.join(self._settings)}, got {parameter!r}")
            if not isinstance(self._settings[parameter], CurriculumSettings):
                raise ConfigError(f"{parameter} has no lessons")
            count = self._curricula.num_lessons(parameter)
            if not 1 <= lesson <= count:
                raise ConfigError(f"lesson: must be from 1 to {count}, got {lesson}")
            criteria = self._curricula.criteria(parameter)
            self._curricula.lessons[parameter] = lesson - 1
            must_reset = criteria is not None and criteria.require_reset
            self._changed((parameter,), self._curricula.deciding(parameter), must_reset=must_reset)
            return f"{parameter}: lesson {lesson} of {count} {self._curricula.lesson(parameter).name!r}"

    def publish(self) -> None:
        """Publish how every parameter is, if it has changed."""
        with self._lock:
            current = {name: self._status(name) for name in self._settings}
            if current != self._reported:
                self._reported = current
                self._bus.publish(ParametersReported(current))

    def state(self) -> State:
        """What `restore` needs: lessons, smoothed returns, and the returns that count."""
        with self._lock:
            lessons: dict[str, Json] = dict(self._curricula.lessons)
            smoothed: dict[str, Json] = dict(self._curricula.smoothed)
            returns = cast(dict[str, Json], {name: window.returns for name, window in self._windows.items()})
            return State(values={LESSONS: lessons, "smoothed": smoothed, "returns": returns} if lessons else {})

    def restore(self, behavior: str, state: State, only_own: bool = False) -> None:
        """Continue as in a behavior's checkpoint. only_own: change no parameter that another behavior decides on.

        A lesson that the file no longer has is its last one.
        """
        with self._lock:
            lessons, smoothed, returns = (_mapping(state.values.get(key)) for key in (LESSONS, "smoothed", "returns"))
            changed = []
            for name in self._curricula.lessons:
                if name not in lessons or (only_own and self._curricula.deciding(name) != behavior):
                    continue
                number = min(int(cast(int, lessons[name])), self._curricula.num_lessons(name) - 1)
                if number != self._curricula.lessons[name]:
                    changed.append(name)
                self._curricula.lessons[name] = number
                self._curricula.smoothed[name] = float(cast(float, smoothed.get(name, 0.0)))
            for name, kept in returns.items():
                if not only_own or name == behavior:
                    self._windows.pop(name, None)
                    self._window(name).add(cast(list[float], kept))
            if changed:
                self.version += 1

    def adopt(self, state: State, num_resets: int) -> None:
        """Go to the lessons of another rank, so many of which ended with a full reset."""
        with self._lock:
            self.restore("", state)
            self.num_resets = num_resets

    def follow(self, behavior: str, state: State, step: int, max_steps: int) -> None:
        """Restore what a behavior decides on as of that step, and publish lessons that are others now."""
        with self._lock:
            before = dict(self._curricula.lessons)
            self.restore(behavior, state, only_own=True)
            self._steps[behavior] = step, max_steps
            for name in [name for name, lesson in before.items() if lesson != self._curricula.lessons[name]]:
                self._publish_change(name, behavior)

    def _advance(self) -> None:
        deciding = {name: self._curricula.criteria(name) for name in self._curricula.lessons}
        steps = {name: step for name, (step, _) in self._steps.items()}
        max_steps = {name: most for name, (_, most) in self._steps.items()}
        for name in steps:
            self._window(name)
        advance = self._curricula.update(steps, max_steps, self._windows, self._ratings)
        for name in advance.parameters:
            criteria = deciding[name]
            assert criteria is not None
            self._changed((name,), criteria.behavior, must_reset=False)
        if advance.must_reset:
            self.num_resets += 1

    def _changed(self, parameters: tuple[str, ...], behavior: str, *, must_reset: bool) -> None:
        for window in self._windows.values():
            window.clear()
        self.version += 1
        self.num_resets += must_reset
        for name in parameters:
            self._publish_change(name, behavior)
        self.publish()

    def _publish_change(self, parameter: str, behavior: str) -> None:
        """As a change of that behavior, or of another one where it is not known."""
        name = behavior if behavior in self._steps else next(iter(self._steps), behavior)
        step, _ = self._steps.get(name, (0, 0))
        lesson, count = self._curricula.lesson(parameter), self._curricula.num_lessons(parameter)
        number = self._curricula.lessons[parameter] + 1
        self._bus.publish(LessonChanged(name, step, parameter, number, count, lesson.name))

    def _value(self, name: str, setting: EnvironmentParameter) -> float | SamplerSettings:
        return self._curricula.lesson(name).value if isinstance(setting, CurriculumSettings) else setting

    def _status(self, name: str) -> ParameterStatus:
        return status_of(
            name,
            self._settings[name],
            self._curricula,
            Measures(self._windows, self._steps, self._ratings),
            advances=self._advances,
        )

    def _window(self, behavior: str) -> RewardWindow:
        if behavior not in self._windows:
            self._windows[behavior] = RewardWindow(self._curricula.window_size(behavior))
        return self._windows[behavior]


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}
