"""Recorded steps to imitate, as reward signals and behavioral cloning see them."""

from __future__ import annotations

from typing import Protocol

from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.specs import Int64


class Demonstrations(Protocol):
    """Steps of recorded episodes, in the order in which they were taken, and episode by episode."""

    @property
    def num_steps(self) -> int:
        """How many there are, at least one."""

    @property
    def episodes(self) -> Int64:
        """i64[E, 2]: the first row of each episode and the row after its last; together they are all rows."""

    def transitions(self, rows: Int64, *, with_next: bool = True) -> Transitions:
        """The steps in these rows, i64[B], decoded when asked for. Raises DemonstrationError where they cannot be.

        Their continuous actions are those that the environment got, in [-1, 1]. with_next: False leaves
        `next_observations` empty, so that only half of the observations are decoded.
        """
