"""How much experience a learner gets at once, and how much before its training ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rl_tui.engine.sampling.collector import Collector


class Demand(Protocol):
    """What a learner needs."""

    @property
    def rows_per_update(self) -> int:
        """Rows that each update needs; it may change between two."""

    def rows_left(self, num_rows: int) -> int:
        """Rows until its training ends, after the first `num_rows` that it was given; not positive once it has."""


@dataclass(frozen=True, slots=True)
class BlockLimits:
    """longest: rows of the longest block. cuts_at_update: all segments are cut before an update."""

    longest: int
    cuts_at_update: bool = False


class RowCounts:
    """What one learner was given, and lacks. Used in the collector's thread. Rows that are not learned from do not
    count.

    size: rows of the next block, which ends where an update begins, and as soon as max_steps is reached. until_update:
    rows that the next update lacks.
    """

    def __init__(self, demand: Demand, limits: BlockLimits) -> None:
        self.limits = limits
        self.until_update = demand.rows_per_update
        self.num_given = 0
        self._demand = demand
        self.size = self._next_size()

    @property
    def left(self) -> int:
        """Rows until training ends."""
        return self._demand.rows_left(self.num_given)

    def count(self, num_rows: int) -> None:
        """Count the rows of a block that goes to the learner."""
        self.num_given += num_rows
        self.until_update -= num_rows
        if self.until_update <= 0:
            self.until_update = self._demand.rows_per_update
        self.size = self._next_size()

    def _next_size(self) -> int:
        size, left = min(self.limits.longest, self.until_update), self.left
        return min(size, left) if left > 0 else size


class BlockSizes(RowCounts):
    """The blocks of one behavior of a collector."""

    def __init__(self, name: str, demand: Demand, limits: BlockLimits, collector: Collector) -> None:
        super().__init__(demand, limits)
        self._name = name
        self._collector = collector
        self._check_at = 0  # learned actions, before which neither the end nor such an update can be reached
        self._has_cut = False  # for the next update

    def count(self, num_rows: int) -> None:
        """Count the rows of a block that goes to the learner."""
        if num_rows >= self.until_update:
            self._has_cut, self._check_at = False, 0
        super().count(num_rows)

    def look_ahead(self) -> None:
        """End segments with the next observation once agents have taken the last action that counts, or the last of an
        update where the trainer asks for that."""
        num_learned = self._collector.num_learned(self._name)
        if num_learned < self._check_at:
            return
        left = self.left
        unspent = left - self._collector.num_held(self._name)
        self._check_at = num_learned + max(unspent, 1)
        self._collector.cut(self._name, left > 0 >= unspent)
        if self.limits.cuts_at_update:
            self._look_ahead_to_update(num_learned)
        self.size = self._next_size()  # a roll back may have left more

    def _look_ahead_to_update(self, num_learned: int) -> None:
        missing = self.until_update - self._collector.num_held(self._name)
        if missing > 0:
            self._check_at = min(self._check_at, num_learned + missing)
        elif not self._has_cut:
            self._has_cut = True
            self._collector.cut_once(self._name)
