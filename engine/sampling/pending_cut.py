"""The cut of all segments before an update, for which agents wait for each other.  Shapes: N agents, L slots."""

from __future__ import annotations

import numpy as np

from rl_tui.engine.sampling.ended_segments import EndedSegments
from rl_tui.engine.sampling.slot_columns import longer
from rl_tui.engine.sampling.slots import ACTIVE, Slots
from rl_tui.engine.specs import Int64


class PendingCut:
    """Every segment that has begun ends where its agent is next observed, and the next block has no later ones, since
    those of group mates may be unfinished. Owned by the collector's thread.

    limit: i64[L], how many rows each slot had then; None while no cut is pending.
    """

    def __init__(self, slots: Slots) -> None:
        self.limit: Int64 | None = None
        self._slots = slots
        self._waits_left = 0

    def begin(self, patience: int) -> None:
        """Cut what has begun by now. patience: calls of `wait` after which no agent is waited for."""
        self.limit = self._slots.written.copy()
        self._waits_left = patience

    def grow(self, added: int) -> None:
        """There are so many more slots."""
        if self.limit is not None:
            self.limit = longer(self.limit, added)

    @property
    def awaited(self) -> Int64:
        """The slots whose segments are still to be cut. Agents that are silent are not waited for."""
        if self.limit is None:
            return np.empty(0, np.int64)
        slots: Int64 = ((self._slots.begun < self.limit) & (self._slots.state == ACTIVE)).nonzero()[0]
        return slots

    @property
    def is_awaited(self) -> bool:
        """Whether there are any."""
        return self.limit is not None and len(self.awaited) > 0

    def wait(self) -> Int64:
        """i64[N], the agents of these slots; none, and the cut is given up, where they were waited for too long."""
        slots = self.awaited
        if len(slots):
            self._waits_left -= 1
            if self._waits_left < 0:
                self.limit, slots = None, slots[:0]
        agents: Int64 = self._slots.agent_ids[slots]
        return agents

    def divide(self, ended: EndedSegments) -> tuple[EndedSegments, EndedSegments, Int64 | None]:
        """The segments for the next block, those for later ones, and the last row of each slot that the former have
        (i64[L], None: all). Afterwards no cut is pending, unless agents are still waited for."""
        if self.limit is None:
            return ended, EndedSegments(), None
        limit, is_over = self.limit, not self.is_awaited
        later = ended.split(limit)
        if not ended.parts:  # the columns of an agent that has begun since then are full
            self.limit = None
            return later, ended, None
        if is_over:
            self.limit = None
        return ended, later, limit
