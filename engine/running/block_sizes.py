"""How much experience a learner is given at once, and how much before its training ends."""

from __future__ import annotations

from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.sampling.collector import Collector

BLOCK_ROWS = 2048  # a block is at most about so long, so that long rollouts still show in the counters


class BlockSizes:
    """The blocks of one behavior. Lives in the thread of its collector.

    size: rows of the next block, which ends where an update begins, and as soon as max_steps is reached.
    """

    def __init__(self, name: str, behavior: Behavior, collector: Collector):
        self._name = name
        self._learner = behavior.learner
        self._collector = collector
        self._longest = min(BLOCK_ROWS, behavior.summary_freq)
        self._until_update = behavior.learner.rows_per_update
        self._handed = 0
        self._look_at = 0  # actions, before which the end cannot be reached
        self.size = self._next_size()

    def count(self, num_rows: int) -> None:
        """A block of so many rows goes to the learner."""
        self._handed += num_rows
        self._until_update -= num_rows
        if self._until_update <= 0:
            self._until_update = self._learner.rows_per_update
        self.size = self._next_size()

    def look_ahead(self) -> None:
        """Once agents have taken the last action that counts, their pieces end with what they see next."""
        num_sampled = self._collector.num_sampled[self._name]
        if num_sampled < self._look_at:
            return
        left = self._learner.steps_left(self._handed)
        unspent = left - self._collector.num_held(self._name)
        self._look_at = num_sampled + max(unspent, 1)
        self._collector.cut(self._name, left > 0 >= unspent)
        self.size = self._next_size()  # a roll back may have left more

    def _next_size(self) -> int:
        size, left = min(self._longest, self._until_update), self._learner.steps_left(self._handed)
        return min(size, left) if left > 0 else size
