"""Agents of workers in the middle of their episodes, as far as their experience has come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from rl_tui.engine.specs import CUT, TRUNCATED, Int64, Trajectories


class OpenSegments:
    """Of one behavior in one worker: the agents whose last segment that has arrived was cut."""

    def __init__(self) -> None:
        self._agents: set[int] = set()

    def add(self, block: Trajectories) -> None:
        """A block has arrived."""
        self._agents.difference_update(block.departed.tolist())
        for agent, ending in zip(block.agent_ids.tolist(), block.endings.tolist(), strict=True):
            if ending == CUT:
                self._agents.add(agent)
            else:
                self._agents.discard(agent)

    def close(self, blocks: Iterable[Trajectories]) -> tuple[list[Trajectories], Int64]:
        """Their episodes will not go on. blocks: those that are not given to the learner yet, oldest first.

        Where an agent's last segment is in one of them it is truncated there. Returns the blocks, and the agents for
        whom none is.
        """
        closed = []
        for block in reversed(list(blocks)):
            ends = block.endings.copy()
            for segment in reversed(range(len(ends))):
                agent = int(block.agent_ids[segment])
                if agent in self._agents:
                    self._agents.discard(agent)
                    if ends[segment] == CUT:
                        ends[segment] = TRUNCATED
            closed.append(replace(block, endings=ends))
        departed: Int64 = np.array(sorted(self._agents), np.int64)
        self._agents.clear()
        return closed[::-1], departed
