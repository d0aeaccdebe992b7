"""How many steps of max_steps are left to collect."""

from __future__ import annotations

import math
from fractions import Fraction


class StepsLeft:
    """Written in a learner's thread; any thread may call `after`.

    Each of several ranks collects its part of what was left when they began, or were rolled back.
    """

    def __init__(self, max_steps: int, share: Fraction = Fraction(1)) -> None:
        """share: of the steps that all ranks collect: as many as this one does."""
        self._max_steps = max_steps
        self._share = share
        self.restart(0)

    def restart(self, step: int) -> None:
        """From this step on, rows are counted from zero."""
        self._num_rows = 0
        self._end = self._part(step)  # of all rows that are given to the learner

    def roll_back(self, step: int) -> None:
        """It goes on from this step; rows are counted on."""
        self._end = self._num_rows + self._part(step)

    def count(self, num_rows: int) -> None:
        """These rows are steps."""
        self._num_rows += num_rows

    def skip(self, num_rows: int) -> None:
        """These rows are no steps: they came while it was over, or of an abandoned policy."""
        self._num_rows += num_rows
        self._end += num_rows

    def after(self, num_rows: int) -> int:
        """What is left after the first rows that the learner is given."""
        return self._end - num_rows

    @property
    def is_over(self) -> bool:
        """Whether nothing is left."""
        return self._num_rows >= self._end

    def _part(self, step: int) -> int:
        return math.ceil((self._max_steps - step) * self._share)
