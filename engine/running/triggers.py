"""When something periodic is due."""

from __future__ import annotations


class IntervalTrigger:
    """Fires when a step reaches or crosses a multiple of `interval`, however coarse the steps; never at step 0."""

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


def _after(step: int, interval: int) -> int:
    return step + (interval - step % interval)
