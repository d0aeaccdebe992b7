"""What every stream pays in an episode.  Shapes: N rows of a block, E episodes that end in it, S streams."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.learning.unfinished import Unfinished
from rl_tui.engine.specs import Ending, Float32, Trajectories


class EpisodeSums:
    """Adds rewards up from piece to piece and block to block, until an episode ends."""

    def __init__(self, num_streams: int):
        self._unfinished = Unfinished.none(num_streams, np.float64)

    def __call__(self, block: Trajectories, rewards: Float32) -> NDArray[np.float64]:
        """f64[E, S]: the sums of f32[N, S] over the episodes that ended in the block, each from its beginning."""
        of_pieces = np.add.reduceat(rewards, np.cumsum(block.lengths) - block.lengths, dtype=np.float64)
        has_ended = block.endings != Ending.CUT
        begins = np.ones(block.num_pieces, np.bool_)  # an agent's first piece of an episode in this block
        is_first = begins.copy()  # an agent's first piece in this block
        is_first[1:] = block.agent_ids[1:] != block.agent_ids[:-1]
        begins[1:] = is_first[1:] | has_ended[:-1]
        of_pieces[is_first] += self._unfinished.of(block.agent_ids[is_first])
        starts = begins.nonzero()[0]
        sums = np.add.reduceat(of_pieces, starts)
        ends = np.append(starts[1:], block.num_pieces) - 1
        ids, endings = block.agent_ids[ends], block.endings[ends]
        self._unfinished = self._unfinished.after(ids, endings, sums, block.departed)
        ended: NDArray[np.float64] = sums[has_ended[ends]]
        return ended
