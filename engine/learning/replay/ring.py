"""The rows of a replay buffer as a ring of segments.

A segment of n steps takes n + 1 adjacent rows in time order: the last one closes it, with the next observation only.
Rows are overwritten in the order they were written, so that a row with a step is always followed by the next step, or
by the row that closes its segment.

Shapes: R rows, N steps in P segments of a block, B rows drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.specs import CUT, Bool, Int64


@dataclass(frozen=True, slots=True)
class BlockRows:
    """The rows of a block, or of its newest part if the ring is smaller than the block."""

    steps: Int64  # rows of the block's steps from `first_step` on
    first_step: int
    closings: Int64  # rows that close its segments from `first_segment` on
    first_segment: int


class Ring:
    """The rows in use, with the columns `remaining`, `position`, `ending` and `added`, which begin as zeros."""

    def __init__(self, columns: dict[str, NDArray[Any]], sequence_length: int):
        self._remaining, self._position = columns["remaining"], columns["position"]
        self._ending, self._added = columns["ending"], columns["added"]
        self._sequence_length = sequence_length
        self.num_rows = len(self._remaining)
        self.end = 0  # the next row to write
        self.num_used = 0  # rows before `end` in use
        self.num_steps = 0
        self.num_sequences = 0  # whose first row is not overwritten

    def in_use(self) -> Int64:
        """i64[num_used], oldest first."""
        return (np.arange(self.end - self.num_used, self.end)) % self.num_rows

    def add(self, lengths: Int64, endings: NDArray[np.int8], added: int) -> BlockRows:
        """Claim rows for segments with these lengths and endings, i64[P] and i8[P]. added: must never decrease."""
        segments, num_steps = len(lengths), int(lengths.sum())
        of_step, after = np.repeat(np.arange(segments), lengths), np.cumsum(lengths)
        steps, closings = np.arange(num_steps) + of_step, after + np.arange(segments)  # from the beginning of the block
        count = num_steps + segments
        lost = max(0, count - self.num_rows)
        first, first_segment = steps.searchsorted(lost), closings.searchsorted(lost)
        begin, self.end = self.end, (self.end + count) % self.num_rows
        self.num_used = min(self.num_used + count, self.num_rows)
        claimed = (begin + np.arange(lost, count)) % self.num_rows
        self._forget(claimed)
        self._added[claimed] = added
        rows = (begin + steps[first:]) % self.num_rows
        of_step, within = of_step[first:], np.arange(first, num_steps)
        self._remaining[rows] = after[of_step] - within
        self._position[rows] = within - (after - lengths)[of_step]
        self._ending[rows] = endings[of_step]
        self.count(rows)
        return BlockRows(rows, int(first), (begin + closings[first_segment:]) % self.num_rows, int(first_segment))

    def drop_newer(self, added: int) -> Int64:
        """Drop every block with a step added after `added`; returns their rows."""
        rows = self.in_use()
        rows = rows[self._added[rows].searchsorted(added, "right") :]
        self._forget(rows)
        self.end = (self.end - len(rows)) % self.num_rows
        self.num_used -= len(rows)
        return rows

    def reset(self, end: int, num_used: int) -> Int64:
        """Drop everything and claim `num_used` rows before `end`, which the caller fills and then counts."""
        self._forget(self.in_use())
        self.end, self.num_used = end % self.num_rows, num_used
        return self.in_use()

    def count(self, rows: Int64, sign: int = 1) -> None:
        """Add the steps and sequences in these rows to the counts, or subtract them with sign -1."""
        has_step = self._remaining[rows] > 0
        self.num_steps += sign * int(np.count_nonzero(has_step))
        self.num_sequences += sign * int(np.count_nonzero(has_step & self._begins_sequence(rows)))

    def steps(self) -> Int64:
        """i64[num_steps]: the rows that hold a step, oldest first."""
        rows = self.in_use()
        return rows[self._remaining[rows] > 0]

    def sequences(self) -> tuple[Int64, Int64]:
        """First rows and lengths of all sequences, oldest first."""
        rows = self.steps()
        return self._with_lengths(rows[self._begins_sequence(rows)])

    def draw(self, count: int, random: np.random.Generator) -> Int64:
        """i64[B] rows, uniform over the steps, with replacement."""
        return self._draw(count, self.num_steps, lambda rows: self._remaining[rows] > 0, random)

    def draw_sequences(self, count: int, random: np.random.Generator) -> tuple[Int64, Int64]:
        """First rows and lengths of sequences with about `count` steps in all, uniform, with replacement."""
        number = max(1, round(count * self.num_sequences / self.num_steps))
        starts = self._draw(
            number,
            self.num_sequences,
            lambda rows: (self._remaining[rows] > 0) & self._begins_sequence(rows),
            random,
        )
        return self._with_lengths(starts)

    def advance(self, rows: Int64, n_step: int) -> tuple[Int64, Int64, NDArray[np.int8]]:
        """For each row: the number of steps in its segment from there, at most n_step; the row after them; the ending
        there, CUT where the episode continues."""
        remaining = self._remaining.take(rows)
        steps = np.minimum(remaining, n_step)
        endings = np.where(steps == remaining, self._ending.take(rows), CUT)
        return steps, (rows + steps) % self.num_rows, endings

    def _with_lengths(self, starts: Int64) -> tuple[Int64, Int64]:
        return starts, np.minimum(self._remaining[starts], self._sequence_length).astype(np.int64)

    def _begins_sequence(self, rows: Int64) -> Bool:
        begins: Bool = self._position[rows] % self._sequence_length == 0
        return begins

    def _forget(self, rows: Int64) -> None:
        self.count(rows, -1)
        self._remaining[rows] = 0

    def _draw(
        self, count: int, num_matching: int, matches: Callable[[Int64], Bool], random: np.random.Generator
    ) -> Int64:
        """`count` of the `num_matching` rows in use that match; others are drawn again."""
        found = np.empty(0, np.int64)
        while len(found) < count:
            missing = count - len(found)
            enough = missing + 3 * math.sqrt(missing)  # nearly always
            tries = math.ceil(enough * self.num_used / num_matching)
            rows = (self.end - self.num_used + random.integers(self.num_used, size=tries)) % self.num_rows
            found = np.concatenate([found, rows[matches(rows)][:missing]])
        return found
