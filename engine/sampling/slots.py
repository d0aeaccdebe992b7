"""Which agent's experience lies in which slot."""

from __future__ import annotations

import numpy as np

from rl_tui.engine.specs import Int64

NOBODY = -1  # owns what is free; agents' ids are not negative


class Slots:
    """Slots 0..n-1 and the agents that own them. Owned by one thread."""

    def __init__(self) -> None:
        self.agent_ids: Int64 = np.empty(0, np.int64)  # of slot
        self._ids: Int64 = np.empty(0, np.int64)  # of owners, sorted
        self._slot_of_id: Int64 = np.empty(0, np.int64)

    def find(self, agent_ids: Int64) -> Int64:
        """The slot of each agent; NOBODY for one that has none."""
        if not len(self._ids):
            return np.full(len(agent_ids), NOBODY)
        places = np.minimum(np.searchsorted(self._ids, agent_ids), len(self._ids) - 1)
        return np.where(self._ids[places] == agent_ids, self._slot_of_id[places], NOBODY)

    def grow(self, num_slots: int) -> None:
        """As many slots as this; those that are added are nobody's."""
        self.agent_ids = np.append(self.agent_ids, np.full(num_slots - len(self.agent_ids), NOBODY))

    def give(self, slots: Int64, agent_ids: Int64) -> None:
        """These slots change hands; the new owners had none."""
        self.agent_ids[slots] = agent_ids
        owned = np.flatnonzero(self.agent_ids != NOBODY)
        self._slot_of_id = owned[np.argsort(self.agent_ids[owned], kind="stable")]
        self._ids = self.agent_ids[self._slot_of_id]
