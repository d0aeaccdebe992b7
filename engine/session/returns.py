"""The returns that rank policies, defined once for the run, its screens and the list of runs."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

RECENT_EPISODES = 100  # the usual number for reported returns


def differ(lowest: float, highest: float) -> bool:
    """Whether the returns between these two are not all the same, but for rounding."""
    return highest - lowest > 1e-6 * max(1.0, abs(highest))


@dataclass(slots=True)
class RecentEpisodes:
    """The newest episodes of training, known as groups that ended together.

    groups: (number of episodes, their mean return), oldest first. num_ignored: so many of the next episodes do not
    count; at a new lesson, those that have begun before. size: how many are kept; it may grow.
    """

    groups: deque[tuple[int, float]] = field(default_factory=deque)
    num_ignored: int = 0
    size: int = RECENT_EPISODES
    _num_held: int = 0

    def add(self, count: int, mean_return: float) -> None:
        """Count episodes that ended together, and forget groups older than the newest `size`."""
        ignored = min(count, self.num_ignored)
        self.num_ignored -= ignored
        count -= ignored
        if not count:
            return
        self.groups.append((count, mean_return))
        self._num_held += count
        while self._num_held - self.groups[0][0] >= self.size:
            self._num_held -= self.groups.popleft()[0]

    @property
    def count(self) -> int:
        """How many episodes the mean is of, at most `size`."""
        return min(self._num_held, self.size)

    @property
    def is_full(self) -> bool:
        """Whether `size` have ended."""
        return self._num_held >= self.size

    @property
    def mean(self) -> float | None:
        """Their mean return, None before the first has ended. The oldest group counts in part."""
        if not self.groups:
            return None
        (_, oldest), *others = self.groups
        rest = self.count - sum(count for count, _ in others)
        return sum((mean * count for count, mean in others), oldest * rest) / self.count


class Ranked(Protocol):
    """A checkpoint that can be ranked. mean_return, held_out_loss: None where none was known when it was saved.
    lessons: of each environment parameter that has some, from 1."""

    @property
    def step(self) -> int:
        """The step of training at which it was saved."""

    @property
    def mean_return(self) -> float | None:
        """Of its evaluation, or without one of the newest episodes of training."""

    @property
    def held_out_loss(self) -> float | None:
        """Of what the trainer does not learn from."""

    @property
    def lessons(self) -> Mapping[str, int]:
        """Those in which it was saved."""


AnyRanked = TypeVar("AnyRanked", bound=Ranked)


def best_checkpoint(checkpoints: Sequence[AnyRanked]) -> AnyRanked | None:
    """The one with the highest mean return, or where none is known with the lowest held-out loss; the first of equals;
    None where nothing is known.

    Only those of the newest one's lessons: an easy lesson is no measure of a hard one.

    checkpoints: those on disk, oldest first.
    """
    known = [(each.mean_return, -each.step, each) for each in reversed(checkpoints) if each.mean_return is not None]
    if not known:
        losses = [(-each.held_out_loss, -each.step, each) for each in checkpoints if each.held_out_loss is not None]
        known = losses[::-1]
    ranked = [entry for entry in known if math.isfinite(entry[0])]
    comparable = [entry for entry in ranked if entry[2].lessons == ranked[0][2].lessons]
    return max(comparable, key=lambda entry: entry[:2])[2] if comparable else None


def ranking_loss(checkpoint: Ranked) -> float | None:
    """The held-out loss that ranks it; None where a return does."""
    return checkpoint.held_out_loss if checkpoint.mean_return is None else None
