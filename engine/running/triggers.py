"""When something periodic is due."""

from __future__ import annotations


class IntervalTrigger:
    """Fires when a step reaches or crosses a multiple of `interval`, however coarse the steps; never at step 0.

    step: where counting begins, so that a resumed run continues as if it had never stopped.
    """

    def __init__(self, interval: int, step: int = 0):
        assert interval >= 1
        self._interval = interval
        self._next = _after(step, interval)

    def fires(self, step: int) -> int | None:
        """The newest multiple reached since the last firing, or None."""
        if step < self._next:
            return None
        self._next = _after(step, self._interval)
        return self._next - self._interval


class Reminder:
    """An interval trigger that, once due, stays due until `done`, for what cannot be done at any time.

    interval: None for what is never due.
    """

    def __init__(self, interval: int | None, step: int = 0):
        self._trigger = None if interval is None else IntervalTrigger(interval, step)
        self._is_due = False

    def is_due(self, step: int) -> bool:
        """Whether a multiple was reached since it was last done."""
        if self._trigger is not None:
            self._is_due |= self._trigger.fires(step) is not None
        return self._is_due

    def done(self) -> None:
        """It is due again at the next multiple."""
        self._is_due = False


def _after(step: int, interval: int) -> int:
    return step + (interval - step % interval)
