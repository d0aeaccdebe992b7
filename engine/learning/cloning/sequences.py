"""The sequences of demonstrations that are drawn as a whole, and how many make a mini-batch.

Shapes: E episodes, S sequences, B rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rl_tui.engine.learning.sequences import split_segments
from rl_tui.engine.specs import Int64


@dataclass(frozen=True, slots=True)
class DemonstratedSequences:
    """starts, lengths: i64[S], the first row of each sequence and its number of rows. longest: the most rows of one."""

    starts: Int64
    lengths: Int64
    longest: int

    @staticmethod
    def of(episodes: Int64, longest: int) -> DemonstratedSequences:
        """Those of episodes i64[E, 2], each split from its first row on. Without memory every row is one: longest 1."""
        lengths, episode = split_segments(episodes[:, 1] - episodes[:, 0], longest)
        before = np.cumsum(lengths) - lengths
        starts_of_episodes = before[np.searchsorted(episode, np.arange(len(episodes)))]
        return DemonstratedSequences(episodes[episode, 0] + before - starts_of_episodes[episode], lengths, longest)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def num_rows(self) -> int:
        """Of all sequences."""
        return int(self.lengths.sum())

    def rows(self, chosen: Int64) -> Int64:
        """i64[B]: the rows of some sequences, one after the other."""
        lengths = self.lengths[chosen]
        before = np.cumsum(lengths) - lengths
        return np.repeat(self.starts[chosen] - before, lengths) + np.arange(int(lengths.sum()))

    def spaced(self, num_rows: int) -> Int64:
        """Sequences of about that many rows, evenly over all of them; all where they have no more."""
        count = min(len(self), max(1, num_rows // self.longest))
        return np.linspace(0, len(self) - 1, count).round().astype(np.int64)


@dataclass(frozen=True, slots=True)
class Passes:
    """How an update goes through demonstrations. batch_size: of a mini-batch, in steps. count: passes.

    most_steps: of one pass, in whole mini-batches, at least one; 0 for all.
    """

    batch_size: int
    count: int
    most_steps: int

    def sizes(self, sequences: DemonstratedSequences) -> tuple[int, int]:
        """The sequences of a mini-batch, and the mini-batches of a pass: those of ML-Agents."""
        size = max(1, min(self.batch_size // sequences.longest, len(sequences)))
        minibatches = len(sequences) // size
        if not self.most_steps:
            return size, minibatches
        return size, min(minibatches, max(1, self.most_steps // (size * sequences.longest)))

    def minibatches(self, sequences: DemonstratedSequences, random: np.random.Generator) -> Iterator[Int64]:
        """The sequences of every mini-batch, in a new order in each pass; those that fill none are left out of it."""
        size, minibatches = self.sizes(sequences)
        for _ in range(self.count):
            order = random.choice(len(sequences), minibatches * size, replace=False)  # in the time of these alone
            for start in range(0, len(order), size):
                yield order[start : start + size]
