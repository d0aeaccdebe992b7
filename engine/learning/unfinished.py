"""What is carried on from block to block for agents whose episodes go on.

Shapes: L agents, P pieces of a block, C columns, D agents that left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.specs import Ending, Int64


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Some numbers of every agent in an episode: agent_ids i64[L], sorted, and columns [L, C]."""

    agent_ids: Int64
    columns: NDArray[Any]

    @staticmethod
    def none(num_columns: int, dtype: type[np.floating[Any]]) -> Unfinished:
        """Of nobody."""
        return Unfinished(np.empty(0, np.int64), np.empty((0, num_columns), dtype))

    def of(self, agent_ids: Int64) -> NDArray[Any]:
        """Those of these agents; zeros for an agent whose episode has just begun."""
        found = np.zeros((len(agent_ids), self.columns.shape[1]), self.columns.dtype)
        is_known = np.isin(agent_ids, self.agent_ids)
        found[is_known] = self.columns[np.searchsorted(self.agent_ids, agent_ids[is_known])]
        return found

    def after(self, agent_ids: Int64, endings: NDArray[np.int8], columns: NDArray[Any], departed: Int64) -> Unfinished:
        """With those after each piece, [P, C]: of pieces that were cut, until their agents' next one.

        agent_ids, endings: i64[P] and i8[P], the pieces of an agent in time order. departed: i64[D], agents that left
        in the middle of an episode.
        """
        agents, last = np.unique(agent_ids[::-1], return_index=True)
        last = len(agent_ids) - 1 - last
        goes_on = (endings[last] == Ending.CUT) & ~np.isin(agents, departed)
        is_absent = ~np.isin(self.agent_ids, np.concatenate([agents, departed]))
        ids = np.concatenate([self.agent_ids[is_absent], agents[goes_on]])
        order = np.argsort(ids)
        kept = np.concatenate([self.columns[is_absent], columns[last[goes_on]]])
        return Unfinished(ids[order], kept[order])
