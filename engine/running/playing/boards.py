"""The board of a game, where an agent's observation is one: the fields that are its own, and those of the other side.

Shapes: H rows, W columns.
"""

from __future__ import annotations

import numpy as np

from rl_tui.engine.session.games import EMPTY, OTHER, OWN, Board
from rl_tui.engine.specs import BehaviorSpec, Bool, Int64, Observation, Observations

NUM_PLANES = 2  # one's own, and the other side's


def fields_of(spec: BehaviorSpec, observations: Observations, row: int) -> Int64 | None:
    """i64[H, W] of EMPTY, OWN and OTHER, as the agent in that row observes them: f32[H, W, 2] of zeros and ones, where
    its own come first, as in PettingZoo's tic-tac-toe and connect four. None for any other observation."""
    if len(spec.observations) != 1 or len(spec.observations[0].shape) != 3:
        return None
    planes: Observation = observations[0][row]
    if planes.shape[2] != NUM_PLANES or not np.isin(planes, (0, 1)).all() or planes.all(axis=2).any():
        return None
    fields = np.full(planes.shape[:2], EMPTY, np.int64)
    fields[planes[..., 0] == 1] = OWN
    fields[planes[..., 1] == 1] = OTHER
    return fields


def is_by_column(fields: Int64, allowed: Bool) -> bool | None:
    """Whether a choice is a column of this board, to which something is added from above; False: a field, row by row.

    allowed: bool[choices]. None where the empty fields are not what is allowed: then it is no board, or another game.
    """
    empty = fields == EMPTY
    if np.array_equal(allowed, empty.ravel()):
        return False
    return True if np.array_equal(allowed, empty[0]) else None


def board_of(fields: Int64, by_column: bool, before: Int64 | None) -> Board:
    """before: i64[H, W], as the person saw the board last; None: empty."""
    changed = np.argwhere(fields != (EMPTY if before is None else before))
    newest = frozenset((int(row), int(column)) for row, column in changed)
    return Board(tuple(map(tuple, fields.tolist())), by_column, newest)
