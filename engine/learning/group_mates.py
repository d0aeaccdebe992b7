"""Which rows are of agents of one group that acted in the same step.

Shapes: N rows, M mates of all rows, B of the rows, Q mates of these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rl_tui.engine.experience import sequence_rows
from rl_tui.engine.learning.feature_layout import Features
from rl_tui.engine.learning.row_selection import RowSelection
from rl_tui.engine.specs import Int64, Trajectories


@dataclass(frozen=True, slots=True)
class GroupMates:
    """The rows of every row's mates: those of row r are `rows[starts[r] : starts[r + 1]]`.

    rows: i64[M]. starts: i64[N + 1].
    """

    rows: Int64
    starts: Int64

    def of(self, row: int) -> Int64:
        """The rows of one row's mates."""
        return self.rows[self.starts[row] : self.starts[row + 1]]

    def of_rows(self, rows: Int64) -> tuple[Int64, Int64]:
        """The rows i64[Q] of the mates of several rows i64[B], one row's after the other's, and how many each has."""
        counts = self.starts[rows + 1] - self.starts[rows]
        return self.rows[sequence_rows(self.starts[rows], counts)], counts


@dataclass(frozen=True, slots=True)
class Mates:
    """The mates of B rows or segments, those of one after those of the other.

    features: the networks' inputs, each [Q, ...]. counts: i64[B], how many each has; they sum to Q.
    """

    features: Features
    counts: Int64

    def of(self, rows: Int64) -> Mates:
        """The mates of some of these, i64[B]."""
        starts = np.cumsum(self.counts) - self.counts
        return _selected(self.features, sequence_rows(starts[rows], self.counts[rows]), self.counts[rows])


@dataclass(frozen=True, slots=True)
class MatesOfRows:
    """The mates of rows, which are rows of the same N themselves. features: of all rows, each [N, ...]."""

    features: Features
    mates: GroupMates

    def of(self, rows: Int64) -> Mates:
        """The mates of some rows, i64[B]."""
        return _selected(self.features, *self.mates.of_rows(rows))


def _selected(features: Features, mates: Int64, counts: Int64) -> Mates:
    select = RowSelection(mates)
    return Mates(tuple([select(column) for column in features]), counts)


def find_group_mates(experience: Trajectories) -> GroupMates:
    """The mates of every row: the rows of the other agents of its group that acted in the same step.

    Not found are mates that did not act in that step (they had ended, or decide in other steps), and mates whose
    segment is not in this experience: it was unfinished when the block was made and comes with a later one, or its
    agent left without an end. Where a trainer has `cuts_at_update`, no segment of an update is unfinished. Experience
    of several blocks must be of one collector, which counts the steps.
    """
    count, groups, steps = experience.num_rows, experience.group_ids, experience.step_numbers
    if groups is None or steps is None:
        return GroupMates(np.empty(0, np.int64), np.zeros(count + 1, np.int64))
    grouped = np.flatnonzero((groups >= 0) & (steps >= 0))
    order = grouped[np.lexsort((groups[grouped], steps[grouped]))]
    begins = np.ones(len(order), np.bool_)  # the first row of each group and step
    begins[1:] = (groups[order[1:]] != groups[order[:-1]]) | (steps[order[1:]] != steps[order[:-1]])
    firsts = np.flatnonzero(begins)
    sizes = np.diff(firsts, append=len(order))
    first, num_mates = np.zeros(count, np.int64), np.zeros(count, np.int64)  # of each row: its group's place in `order`
    first[order], num_mates[order] = firsts.repeat(sizes), (sizes - 1).repeat(sizes)
    own = np.zeros(count, np.int64)  # its own place there
    own[order] = np.arange(len(order))
    starts = np.concatenate([np.zeros(1, np.int64), num_mates.cumsum()])
    row = np.arange(count).repeat(num_mates)
    place = first[row] + np.arange(starts[-1]) - starts[row]
    return GroupMates(order[place + (place >= own[row])], starts)
