"""How fast something grows while a behavior trains."""

from __future__ import annotations

from collections import deque

SPEED_SECONDS = 60.0  # over which speeds are measured: an update, or a slow episode, hardly changes them


class Speed:
    """Per second over the last minute of training: steps, or seconds that were spent on something. Pauses do not
    count."""

    def __init__(self, seconds: float, total: float = 0) -> None:
        """seconds: since training began, for this and all other times here. total: what there was by then."""
        self._marks = deque([(seconds, total)])

    def measure(self, seconds: float, total: float) -> float:
        """The speed, by all that there is so far."""
        self._marks.append((seconds, total))
        while len(self._marks) > 2 and self._marks[1][0] <= seconds - SPEED_SECONDS:
            self._marks.popleft()
        began, first = self._marks[0]
        return (total - first) / max(seconds - began, 1e-9)
