"""Episodes that ended in several workers, in the order in which their steps were taken."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rl_tui.engine.sampling.finished_episodes import Episodes


class EpisodeOrder:
    """The episodes of one behavior. Workers report at any moment; what comes out does not depend on when.

    In a round, the workers take about as many steps each. So the n-th step of one worker counts as step n times the
    number of those that act, since the round began, and no episode is passed on before all have come as far.
    """

    def __init__(self, num_workers: int) -> None:
        self._waiting: list[tuple[int, int, float, int]] = []  # end, worker, return, length
        self._num_acting = num_workers
        self._began = [0] * num_workers  # actions of each worker when the round began
        self._reached: list[float] = [math.inf] * num_workers  # how far each has come; without end once it waits
        self._begin = 0  # of the round, by all workers' actions
        self._last = 0  # end of the newest that was passed on

    def begin_round(self, counts: list[int], acting: Sequence[int]) -> None:
        """The workers have taken so many actions. acting: those that take more."""
        self._began, self._begin, self._num_acting = counts, sum(counts), len(acting)
        self._reached = [self._begin if worker in acting else math.inf for worker in range(len(counts))]

    def reach(self, worker: int, num_learned: float) -> None:
        """A worker has taken so many actions by now, inf where it waits, and has reported all episodes until then."""
        self._reached[worker] = self._step(worker, num_learned)

    def add(self, worker: int, episodes: Episodes) -> None:
        """Episodes of a worker, with ends by its own actions."""
        for value, length, end in zip(*(column.tolist() for column in episodes), strict=True):
            self._waiting.append((int(self._step(worker, end)), worker, value, length))

    def pop(self) -> Episodes:
        """Those that no other can precede any more, with ends by the actions of all workers, not decreasing."""
        limit = min(self._reached)
        ready = sorted(episode for episode in self._waiting if episode[0] <= limit)
        if not ready:
            return Episodes.join([])
        self._waiting = [episode for episode in self._waiting if episode[0] > limit]
        ends, _, returns, lengths = zip(*ready, strict=True)
        steps = np.maximum(np.array(ends, np.int64), self._last)
        self._last = int(steps[-1])
        return Episodes(np.array(returns), np.array(lengths, np.int64), steps)

    def _step(self, worker: int, num_learned: float) -> float:
        return self._begin + (num_learned - self._began[worker]) * self._num_acting
