"""When something periodic is due, and what is then done."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

from rl_tui.engine.config.types import OFF

At = TypeVar("At", int, float)  # steps, or seconds of the monotonic clock
Action: TypeAlias = Callable[[int], bool | None]


class Trigger(Generic[At]):
    """Fires once a counter has reached or crossed a multiple of `interval`, however coarse its steps; never at 0.

    at_end: also fires when training ends. by_clock: fires a whole interval after the last time instead, first at once.
    """

    def __init__(self, interval: At, *, at_end: bool = False, by_clock: bool = False):
        self._interval: At = interval
        self._at_end = at_end
        self._by_clock = by_clock
        self._next: float = math.inf if interval == OFF else interval

    def restart(self, at: At) -> None:
        """Count on from here, where training begins, resumes or was rolled back to."""
        if self._interval != OFF:
            self._next = self._newest(at) + self._interval

    @property
    def due_at(self) -> float:
        """The next multiple; infinite for never."""
        return self._next

    def is_due(self, at: At, is_last: bool = False) -> bool:
        """Whether a multiple was reached since it last fired. is_last: training ends."""
        return at >= self._next or (is_last and self._at_end and self._interval != OFF)

    def fire(self, at: At, action: Callable[[At], bool | None], is_last: bool = False) -> None:
        """Where it is due, call `action` with the newest multiple, or with `at` by the clock.

        If it returns False ("not now"), the trigger stays due. The trigger keeps no reference to it: a learner that
        refers to itself would outlive its run.
        """
        if self.is_due(at, is_last) and action(self._newest(at)) is not False:
            self.restart(at)

    def _newest(self, at: At) -> At:
        return at if self._by_clock else at - at % self._interval


class SaveDeadline:
    """When what was learned must be saved, so that it is never older than `seconds`; OFF for never.

    clock: seconds while the run was not paused.
    """

    def __init__(self, seconds: int, clock: Callable[[], float]):
        self._clock = clock
        self._trigger: Trigger[float] = Trigger(seconds, by_clock=True)
        self._updated_at = 0.0
        self.restart()

    def restart(self) -> None:
        """All that was learned is saved."""
        self._updated_at = self._clock()
        self._trigger.restart(self._updated_at)

    def falls_before_next_update(self) -> bool:
        """Whether the next update would be too late, if it takes as long as this one. Called once after each."""
        before, self._updated_at = self._updated_at, self._clock()
        return self._trigger.is_due(2 * self._updated_at - before)
