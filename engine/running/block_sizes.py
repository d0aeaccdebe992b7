"""How much experience a learner gets at once, and how much before its training ends."""

from __future__ import annotations

import math

from rl_tui.engine.config.types import OFF
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.sampling.collector import Collector

BLOCK_ROWS = 2048  # about the longest block, so that counters advance during a long rollout, too


class BlockSizes:
    """The blocks of one behavior. Used in the collector's thread. Rows that are not learned from do not count.

    size: rows of the next block, which ends where an update begins, and as soon as max_steps is reached.
    """

    def __init__(self, name: str, behavior: Behavior, collector: Collector):
        self._name = name
        self._learner = behavior.learner
        self._collector = collector
        self._longest = BLOCK_ROWS if behavior.summary_freq == OFF else min(BLOCK_ROWS, behavior.summary_freq)
        self._longest = math.ceil(self._longest / behavior.learner.num_ranks)
        self._until_update = behavior.learner.rows_per_update
        self._submitted = 0
        self._check_at = 0  # learned actions, before which neither the end nor such an update can be reached
        self._cuts_at_update = behavior.learner.trainer.cuts_at_update
        self._has_cut = False  # for the next update
        self.size = self._next_size()

    def count(self, num_rows: int) -> None:
        """Count the rows of a block that goes to the learner."""
        self._submitted += num_rows
        self._until_update -= num_rows
        if self._until_update <= 0:
            self._until_update = self._learner.rows_per_update
            self._has_cut, self._check_at = False, 0
        self.size = self._next_size()

    def look_ahead(self) -> None:
        """End segments with the next observation once agents have taken the last action that counts, or the last of an
        update where the trainer asks for that."""
        num_learned = self._collector.num_learned(self._name)
        if num_learned < self._check_at:
            return
        left = self._learner.steps_left.after(self._submitted)
        unspent = left - self._collector.num_held(self._name)
        self._check_at = num_learned + max(unspent, 1)
        self._collector.cut(self._name, left > 0 >= unspent)
        if self._cuts_at_update:
            self._look_ahead_to_update(num_learned)
        self.size = self._next_size()  # a roll back may have left more

    def _look_ahead_to_update(self, num_learned: int) -> None:
        missing = self._until_update - self._collector.num_held(self._name)
        if missing > 0:
            self._check_at = min(self._check_at, num_learned + missing)
        elif not self._has_cut:
            self._has_cut = True
            self._collector.cut_once(self._name)

    def _next_size(self) -> int:
        size, left = min(self._longest, self._until_update), self._learner.steps_left.after(self._submitted)
        return min(size, left) if left > 0 else size
