"""How fast a behavior trains, measured between two multiples of throughput_interval."""

from __future__ import annotations

from collections.abc import Callable

SHORTEST_SECONDS = 1e-9  # of a clock that did not advance


class Throughput:
    """Used in its learner's thread. Updates and evaluations count, pauses do not.

    clock: seconds while the run was not paused.
    """

    def __init__(self, clock: Callable[[], float]):
        self._clock = clock
        self._begin: tuple[int, float] | None = None  # step and seconds

    def restart(self) -> None:
        """The next measurement begins at the next multiple."""
        self._begin = None

    def measure(self, step: int) -> float | None:
        """Steps per second since the last call; None for the first."""
        begin, self._begin = self._begin, (step, self._clock())
        return None if begin is None else (step - begin[0]) / max(self._begin[1] - begin[1], SHORTEST_SECONDS)
