"""By which numbers a policy is judged: each is defined here, once, for the run, its screens and the list of runs."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

RECENT_EPISODES = 100  # over which the field reports a return


@dataclass(slots=True)
class RecentEpisodes:
    """The newest RECENT_EPISODES episodes of training, of which only the means of those that ended together are known.

    groups: (number of episodes, their mean return), oldest first.
    """

    groups: deque[tuple[int, float]] = field(default_factory=deque)
    _num_held: int = 0

    def add(self, count: int, mean_return: float) -> None:
        """Count episodes that ended together; groups that lie wholly before the newest hundred are forgotten."""
        self.groups.append((count, mean_return))
        self._num_held += count
        while self._num_held - self.groups[0][0] >= RECENT_EPISODES:
            self._num_held -= self.groups.popleft()[0]

    @property
    def count(self) -> int:
        """How many episodes the mean is of, at most RECENT_EPISODES."""
        return min(self._num_held, RECENT_EPISODES)

    @property
    def is_full(self) -> bool:
        """Whether that many episodes have ended."""
        return self._num_held >= RECENT_EPISODES

    @property
    def mean(self) -> float | None:
        """Their mean return, None before the first has ended; of the oldest group only as many as are needed count."""
        if not self.groups:
            return None
        (_, oldest), *others = self.groups
        rest = self.count - sum(count for count, _ in others)
        return sum((mean * count for count, mean in others), oldest * rest) / self.count


class Ranked(Protocol):
    """A checkpoint, as far as it can be compared. mean_return: None where none was known when it was saved."""

    @property
    def step(self) -> int:
        """Where training stood."""

    @property
    def mean_return(self) -> float | None:
        """Of its evaluation, or without one of the newest episodes of training."""


AnyRanked = TypeVar("AnyRanked", bound=Ranked)


def best_checkpoint(checkpoints: Sequence[AnyRanked]) -> AnyRanked | None:
    """The one with the highest mean return, the newest of equals; None where no return is known.

    checkpoints: those on disk, oldest first.
    """
    known = [(each.mean_return, each.step, each) for each in reversed(checkpoints) if each.mean_return is not None]
    ranked = [entry for entry in known if math.isfinite(entry[0])]
    return max(ranked, key=lambda entry: entry[:2])[2] if ranked else None
