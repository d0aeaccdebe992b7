"""Finished episodes in few groups, which depend on the episodes alone: equal runs report equal groups.

A group that followed the clock would be another one on every machine, and so would each curve that is made of it.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.session.history import HISTORY_POINTS
from rl_tui.engine.session.messages import EpisodeGroup
from rl_tui.engine.specs import Int64

LONGEST_GROUP = 10_000  # steps: long episodes, too, are reported soon after they ended


class EpisodeGroups:
    """The episodes of one behavior, in the order in which they ended.

    Up to HISTORY_POINTS episodes each is a group by itself; whenever their number has doubled, so has the size of a
    group. So a group is no larger than one point of a curve of all of them, and a run of any length has few.
    """

    def __init__(self) -> None:
        self._num_grouped = 0
        self._waiting: deque[tuple[float, int, int]] = deque()  # return, length and step of each

    def add(self, returns: NDArray[np.float64], lengths: Int64, steps: Int64) -> None:
        """Add episodes: f64[E], i64[E], and i64[E] the steps at which they ended, not decreasing."""
        self._waiting.extend(zip(returns.tolist(), lengths.tolist(), steps.tolist(), strict=True))

    def take(self, step: int) -> tuple[EpisodeGroup, ...]:
        """The groups that are complete when all episodes up to `step` were added."""
        groups = []
        while (count := self._next_group(step)) > 0:
            groups.append(self._group(count))
        return tuple(groups)

    def take_all(self, step: int) -> tuple[EpisodeGroup, ...]:
        """The same, and what is left as a last group: for moments that equal runs share, such as their end."""
        groups = self.take(step)
        return (*groups, self._group(len(self._waiting))) if self._waiting else groups

    def _next_group(self, step: int) -> int:
        """How many episodes it has; 0 while it may get more."""
        if not self._waiting:
            return 0
        size = 1 << max(0, (self._num_grouped // HISTORY_POINTS).bit_length() - 1)
        end = self._waiting[0][2] + LONGEST_GROUP
        for at in range(min(size, len(self._waiting))):
            if self._waiting[at][2] >= end:
                return at
        is_complete = len(self._waiting) >= size or step >= end
        return min(size, len(self._waiting)) if is_complete else 0

    def _group(self, count: int) -> EpisodeGroup:
        returns, lengths, steps = zip(*(self._waiting.popleft() for _ in range(count)), strict=True)
        self._num_grouped += count
        mean = float(np.mean(returns))
        return EpisodeGroup(
            steps[-1], count, mean, float(np.min(returns)), float(np.max(returns)), sum(lengths) / count
        )
