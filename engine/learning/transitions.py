"""Single steps of experience, as reward signals see them.  Shapes: B steps, N rows in P segments of a block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.experience import columns_of
from rl_tui.engine.specs import CUT, TERMINATED, Bool, Float32, Int64, Observation, Observations, Trajectories


@dataclass(frozen=True, slots=True, kw_only=True)
class Transitions:
    """B steps in any order, as read-only numpy arrays. An optional column is None if no step has it.

    observations: each [B, ...], before the action
    next_observations: each [B, ...], after it, the final ones where the episode ended
    endings: i8[B] of Ending: how the episode ended with the step, 1 terminated, 2 truncated; 0 where it continued
    continuous_actions: f32[B, A], as `Choice.continuous` had them
    discrete_actions: i64[B, K], the number of each branch's choice
    action_mask: bool[B, sum of branches], True = allowed
    team_ids: i64[B], the side that the agent plays for
    """

    observations: Observations
    next_observations: Observations
    endings: NDArray[np.int8]
    continuous_actions: Float32
    discrete_actions: Int64
    action_mask: Bool | None = None
    team_ids: Int64 | None = None

    @property
    def num_rows(self) -> int:
        """B."""
        return len(self.endings)

    @property
    def terminated(self) -> Bool:
        """bool[B]: the episode is over, and was not only stopped."""
        over: Bool = self.endings == TERMINATED
        return over

    @staticmethod
    def of(block: Trajectories, rows: Int64 | None = None) -> Transitions:
        """The steps in these rows of a block, i64[B]; all of them without `rows`."""
        if rows is None:
            rows = np.arange(block.num_rows)
        last = np.cumsum(block.lengths) - 1  # i64[P]
        segments = last.searchsorted(rows)
        is_last = rows == last[segments]
        following = zip(block.observations, block.next_observations, strict=True)
        values: dict[str, Any] = {column.name: getattr(block, column.name) for column in _COLUMNS}
        columns: dict[str, Any] = {name: None if of is None else of.take(rows, 0) for name, of in values.items()}
        return Transitions(
            observations=tuple(column.take(rows, 0) for column in block.observations),
            next_observations=tuple(_following(within, after, rows, segments, is_last) for within, after in following),
            endings=np.where(is_last, block.endings[segments], CUT),
            **columns,
        )


_COLUMNS = columns_of(Transitions)


def _following(within: Observation, after: Observation, rows: Int64, segments: Int64, is_last: Bool) -> Observation:
    """The next row of `within` [N, ...] for each row, or of `after` [P, ...] where it is its segment's last."""
    following: Observation = within.take(np.where(is_last, rows, rows + 1), 0)
    following[is_last] = after[segments[is_last]]
    return following
