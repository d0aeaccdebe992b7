"""The episodes of one behavior's agents that ended, until they are reported and leave with a block of experience."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.specs import Bool, Int64


class Episodes(NamedTuple):
    """E episodes: returns f64[E], lengths i64[E], and how many learned actions had been chosen when each ended."""

    returns: NDArray[np.float64]
    lengths: Int64
    ends: Int64

    def of(self, which: Bool) -> Episodes:
        """Those of bool[E]."""
        return Episodes(self.returns[which], self.lengths[which], self.ends[which])

    @staticmethod
    def join(parts: Sequence[Episodes]) -> Episodes:
        """All in order."""
        if len(parts) < 2:
            return parts[0] if parts else _NO_EPISODES
        returns, lengths, ends = map(np.concatenate, zip(*parts, strict=True))
        return Episodes(returns, lengths, ends)


_NO_EPISODES = Episodes(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))


class FinishedEpisodes:
    """Owned by the collector's thread. Those whose last action another policy chose than the one that learns are kept
    apart."""

    def __init__(self) -> None:
        self._learned: list[Episodes] = []
        self._unlearned: list[Episodes] = []
        self._new: list[Episodes] = []  # learned ones that are not reported yet

    def add(self, episodes: Episodes, is_learned: Bool | None) -> None:
        """More have ended. is_learned: bool[E], None: all."""
        if is_learned is not None:
            self._unlearned.append(episodes.of(~is_learned))
            episodes = episodes.of(is_learned)
        self._learned.append(episodes)
        self._new.append(episodes)

    def pop_new(self) -> Episodes:
        """Those of the policy that learns since the last call."""
        new, self._new = self._new, []
        return Episodes.join(new)

    def pop(self) -> dict[str, Any]:
        """What `Trajectories` has of those since the last call."""
        learned, unlearned = Episodes.join(self._learned), Episodes.join(self._unlearned)
        self._learned, self._unlearned = [], []
        return {
            "episode_returns": learned.returns.astype(np.float32),
            "episode_lengths": learned.lengths,
            "unlearned_returns": unlearned.returns.astype(np.float32),
            "unlearned_lengths": unlearned.lengths,
        }
