"""Which agent owns which slot, and which rows of the slot hold its experience.

A slot has `capacity` rows of flat columns, used as a ring: rows from `emitted` to `begun` are whole segments, rows from
`begun` to `written` an unfinished one. All three count rows since the slot exists; row r is at slot * capacity +
r % capacity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.specs import Bool, Int64

NO_AGENT = -1  # owner of a slot that was never used; ids of agents are not negative
ACTIVE, SILENT, VACANT = np.arange(3, dtype=np.int8)  # an episode is in progress, or probably is, or none is
MARKS = 10  # how often an agent is found silent, one time after the other, before it has left


class Slots:
    """Slots 0..L-1, as many as are needed. Owned by one thread."""

    def __init__(self, capacity: int) -> None:
        self._capacity = np.array(capacity)  # an array, since numpy converts an int at every use
        self.agent_ids: Int64 = np.full(1, NO_AGENT)  # i64[L], like all that follow
        self.state: NDArray[np.int8] = np.full(1, VACANT)
        self.emitted: Int64 = np.zeros(1, np.int64)
        self.begun: Int64 = np.zeros(1, np.int64)
        self.written: Int64 = np.zeros(1, np.int64)
        self._written_before: Int64 = np.zeros(1, np.int64)  # when silent agents were last marked
        self._marks: Int64 = np.zeros(1, np.int64)  # how often the agent was found silent, one time after the other
        self._ids: Int64 = np.empty(0, np.int64)  # of owners, sorted
        self._slot_of_id: Int64 = np.empty(0, np.int64)
        self._departed: list[Int64] = []  # ids of agents that left in mid-episode
        self.num_departed = 0  # of them in all

    def __len__(self) -> int:
        return len(self.state)

    def find(self, agent_ids: Int64) -> Int64:
        """The slot of each agent; NO_AGENT for one that has none."""
        if not len(self._ids):
            return np.full(len(agent_ids), NO_AGENT)
        places = np.minimum(np.searchsorted(self._ids, agent_ids), len(self._ids) - 1)
        return np.where(self._ids[places] == agent_ids, self._slot_of_id[places], NO_AGENT)

    def admit(self, newcomers: Int64) -> tuple[Int64, Int64]:
        """Slots for agents that have none, where no episode is in progress and all rows were emitted.

        If there are too few, all silent agents have left: their slots, returned second, lose their unfinished rows.
        """
        free, released = self._free(), np.empty(0, np.int64)
        if len(free) < len(newcomers):
            released = self._release(self.state == SILENT)
            free = self._free()
        num_slots = len(self)
        if (missing := len(newcomers) - len(free)) > 0:
            self._grow(max(num_slots, missing))
            free = np.append(free, np.arange(num_slots, len(self)))
        slots = free[: len(newcomers)]
        self.agent_ids[slots] = newcomers
        self._sort_ids(slots)
        return slots, released

    def mark_silent(self) -> Int64:
        """Active agents that chose no action since the last call are silent until they appear again.

        Returns the slots of those that have been silent for MARKS calls: they have left, as in `admit`.
        """
        self.state[(self.state == ACTIVE) & (self.written == self._written_before)] = SILENT
        self._marks = np.where(self.state == SILENT, self._marks + 1, 0)
        self._written_before = self.written.copy()
        return self._release(self._marks >= MARKS)

    def retract(self, slots: Int64) -> None:
        """Forget the last row of each of these slots, which have an unfinished one."""
        self.written[slots] -= 1
        self._written_before[slots] = -1  # as many rows as then would be taken for silence

    def depart(self, slots: Int64) -> None:
        """The agents of these slots, of which no row waits to be emitted, will not continue their episodes."""
        self._departed.append(self.agent_ids[slots])

    def pop_departed(self) -> Int64:
        """Agents that left during an episode since the last call, without those that are back in another one."""
        left, self._departed = np.concatenate([np.empty(0, np.int64), *self._departed]), []
        if not len(left):
            return left
        slots = self.find(left)
        gone: Int64 = left[(slots == NO_AGENT) | (self.state[slots] == VACANT)]
        return gone

    def rows(self, slots: Int64, numbers: Int64) -> Int64:
        """Where these rows of these slots are in the columns."""
        rows: Int64 = slots * self._capacity + numbers % self._capacity
        return rows

    def emit(self, limit: Int64 | None) -> Int64:
        """Where the rows of all whole segments are, slot after slot and in time order; they need not be kept longer.

        limit: of each slot's rows, where a segment ends; later ones are left.
        """
        end = self.begun if limit is None else np.minimum(self.begun, limit)
        counts = end - self.emitted
        slots = counts.nonzero()[0]
        counts = counts[slots]
        skipped = self.emitted[slots] - (counts.cumsum() - counts)
        self.emitted[:] = end
        return self.rows(slots.repeat(counts), np.arange(counts.sum()) + skipped.repeat(counts))

    def _release(self, left: Bool) -> Int64:
        """Empty the slots of agents that have left, except where rows wait to be emitted; returns which these are.

        So an agent that is in `departed` has no rows in the next block, unless it returns and begins another episode.
        """
        released: Int64 = (left & (self.begun == self.emitted)).nonzero()[0]
        self._departed.append(self.agent_ids[released])
        self.num_departed += len(released)
        self.state[released] = VACANT
        self.written[released] = self.begun[released]
        self._written_before[released] = -1  # the next owner's rows would be compared with this agent's
        self._marks[released] = 0
        return released

    def _sort_ids(self, slots: Int64) -> None:
        """Owners by id, after these slots got theirs. The others are sorted already, and merging is fast."""
        replaced = np.zeros(len(self), np.bool_)
        replaced[slots] = True
        others = self._slot_of_id[~replaced[self._slot_of_id]]
        by_id = np.concatenate([others, slots[self.agent_ids[slots].argsort()]])
        ids = self.agent_ids[by_id]
        order = ids.argsort(kind="stable")
        self._ids, self._slot_of_id = ids[order], by_id[order]

    def _free(self) -> Int64:
        slots: Int64 = ((self.state == VACANT) & (self.written == self.emitted)).nonzero()[0]
        return slots

    def _grow(self, added: int) -> None:
        none = np.zeros(added, np.int64)
        self.agent_ids = np.append(self.agent_ids, none + NO_AGENT)
        self.state = np.append(self.state, np.full(added, VACANT))
        self.emitted, self.begun = np.append(self.emitted, none), np.append(self.begun, none)
        self.written = np.append(self.written, none)
        self._written_before = np.append(self._written_before, none)
        self._marks = np.append(self._marks, none)
