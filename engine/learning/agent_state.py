"""Numbers of each agent that are carried from block to block while its episode continues.

Shapes: L agents, P segments of a block, C columns, D agents that left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.specs import CUT, Bool, Int64


@dataclass(frozen=True, slots=True)
class AgentState:
    """Some numbers of every agent in an episode: agent_ids i64[L], sorted, and columns [L, C]."""

    agent_ids: Int64
    columns: NDArray[Any]

    @staticmethod
    def empty(num_columns: int, dtype: type[np.floating[Any]]) -> AgentState:
        """The state of no agents."""
        return AgentState(np.empty(0, np.int64), np.empty((0, num_columns), dtype))

    def lookup(self, agent_ids: Int64, begins: Bool) -> NDArray[Any]:
        """The columns of these agents; zeros for an agent whose episode begins."""
        found = np.zeros((len(agent_ids), self.columns.shape[1]), self.columns.dtype)
        is_known, places = _find(agent_ids, self.agent_ids)
        is_known &= ~begins
        found[is_known] = self.columns[places[is_known]]
        return found

    def updated(
        self, agent_ids: Int64, endings: NDArray[np.int8], columns: NDArray[Any], departed: Int64
    ) -> AgentState:
        """With columns [P, C] after each segment: cut ones are kept for their agent's next segment, ended ones dropped.

        agent_ids, endings: i64[P] and i8[P], the segments of an agent in time order. departed: i64[D], agents that left
        during an episode and are not back.
        """
        order = agent_ids.argsort(kind="stable")
        agents = agent_ids[order]
        is_last = np.ones(len(agents), np.bool_)
        is_last[:-1] = agents[1:] != agents[:-1]
        agents, last = agents[is_last], order[is_last]
        continues, is_absent = endings[last] == CUT, ~_find(self.agent_ids, agents)[0]
        if len(departed):
            departed = np.sort(departed)
            continues &= ~_find(agents, departed)[0]
            is_absent &= ~_find(self.agent_ids, departed)[0]
        if not is_absent.any():
            return AgentState(agents[continues], columns[last[continues]])
        ids = np.concatenate([self.agent_ids[is_absent], agents[continues]])
        kept = np.concatenate([self.columns[is_absent], columns[last[continues]]])
        order = ids.argsort()
        return AgentState(ids[order], kept[order])


def _find(agent_ids: Int64, among: Int64) -> tuple[Bool, Int64]:
    """Which agents are in `among`, which is sorted, and at which index; several times faster than np.isin."""
    if not len(among):
        return np.zeros(len(agent_ids), np.bool_), np.zeros(len(agent_ids), np.int64)
    places = np.minimum(among.searchsorted(agent_ids), len(among) - 1)
    return among[places] == agent_ids, places
