"""Behavioral cloning of demonstrations.  Shapes: E episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from rl_tui.engine.learning.bc.settings import HELD_OUT, LOSS, BCSettings
from rl_tui.engine.learning.cloning.imitation import Imitation
from rl_tui.engine.learning.cloning.sequences import DemonstratedSequences, Passes
from rl_tui.engine.learning.demonstrations import Demonstrations
from rl_tui.engine.learning.trainer import Metrics, Samples
from rl_tui.engine.specs import Int64, Json, Observations, State, Trajectories


class DemonstratedExamples:
    """See Examples. Some episodes are held out: their loss says whether what is learned holds for others, too."""

    def __init__(self, hyper: BCSettings, imitation: Imitation, longest: int, seed: int, rows_at_once: int):
        """longest: of the sequences that are learned from; 1 without memory. seed: which episodes are held out follows
        from that of the first start, which is saved. rows_at_once: that are read together where nothing is learned."""
        self._hyper, self._imitation, self._longest, self._rows_at_once = hyper, imitation, longest, rows_at_once
        self._seed = seed
        self._passes = Passes(batch_size=hyper.batch_size, count=1, most_steps=hyper.samples_per_update)
        self._demonstrations: Demonstrations | None = None
        self._learned = self._held_out = DemonstratedSequences.of(np.empty((0, 2), np.int64), 1)
        self.rows_per_update = max(1, hyper.samples_per_update)

    def use(self, demonstrations: Demonstrations) -> None:
        """Learn from these."""
        self._demonstrations = demonstrations
        self._split(demonstrations.episodes)

    def _split(self, episodes: Int64) -> None:
        """Hold out some of the episodes i64[E, 2]: at least one where that is asked for, and never the last one."""
        share, count = self._hyper.validation, len(episodes)
        num_held_out = min(max(1, round(share * count)), count - 1) if share else 0
        order = np.random.Generator(np.random.PCG64(self._seed)).permutation(count)
        held_out, learned = np.sort(order[:num_held_out]), np.sort(order[num_held_out:])
        self._held_out = DemonstratedSequences.of(episodes[held_out], self._longest)
        self._learned = DemonstratedSequences.of(episodes[learned], self._longest)
        size, minibatches = self._passes.sizes(self._learned)
        self.rows_per_update = min(size * minibatches * self._longest, self._learned.num_rows)

    @property
    def _known(self) -> Demonstrations:
        assert self._demonstrations is not None, "an update before `use`"
        return self._demonstrations

    def observations(self) -> Iterator[Observations]:
        """Of every step that is learned from."""
        every = np.arange(len(self._learned))
        for part in np.array_split(every, -(-len(every) * self._learned.longest // self._rows_at_once)):
            yield self._known.transitions(self._learned.rows(part), with_next=False).observations

    def add(self, block: Trajectories) -> Samples:
        """Experience is not learned from."""
        return {}

    def is_ready(self, num_waiting: int) -> bool:
        """Whether there are demonstrations."""
        return self._demonstrations is not None

    def learn(self, learning_rate: float, should_continue: Callable[[], bool]) -> Metrics:
        """From demonstrated steps in a new order, at most `samples_per_update`; also the loss of those held out, at
        most as many.

        Both are errors of the mean action and cross entropies, comparable; what is minimized includes the spread.
        """
        error, _ = self._imitation.learn(self._known, self._learned, self._passes, learning_rate, should_continue)
        return {LOSS: error, **self._held_out_loss()}

    def _held_out_loss(self) -> Metrics:
        """By its tag; empty where nothing is held out."""
        if not len(self._held_out):
            return {}
        most = self._hyper.samples_per_update or self._held_out.num_rows
        chosen = self._held_out.spaced(most)
        return {HELD_OUT: self._imitation.error(self._known, self._held_out, chosen, self._rows_at_once)}

    def labeled(self, block: Trajectories) -> Trajectories:
        """What was done is what is to be learned."""
        return block

    def counts(self) -> dict[str, Json]:
        """What is held out, the same on all ranks."""
        return {"split_seed": self._seed}

    def load_counts(self, counts: State) -> None:
        """Hold out the same again."""
        self._seed = int(counts.number("split_seed", self._seed))
        if self._demonstrations is not None:
            self._split(self._demonstrations.episodes)
