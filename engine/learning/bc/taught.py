"""A teacher that labels what its student visits, with every label kept (Ross, Gordon and Bagnell 2011).

The paper lets the teacher act, too, at first; here the student always acts, which is its simplest form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import torch

from rl_tui.engine.learning.acting.distributions import before_bounds
from rl_tui.engine.learning.bc.settings import HELD_OUT, LOSS, BCSettings
from rl_tui.engine.learning.cloning.imitation import ClonedSteps, Imitation, steps_of
from rl_tui.engine.learning.replay.buffer import ReplayBuffer
from rl_tui.engine.learning.replay.layout import ReplayLayout
from rl_tui.engine.learning.sync import Sync
from rl_tui.engine.learning.trainer import Metrics, Samples
from rl_tui.engine.specs import DecisionSteps, Float32, Json, Observations, Policy, State, Trajectories

NO_GAMMAS: Float32 = np.empty(0, np.float32)  # no reward is learned from


class TaughtExamples:
    """See Examples. Owns the newest labels. The loss on new experience, before it is learned from, is that of steps
    which are held out."""

    def __init__(self, hyper: BCSettings, imitation: Imitation, layout: ReplayLayout, sync: Sync):
        """layout: without reward streams, of this rank's part."""
        self._hyper, self._imitation, self._sync = hyper, imitation, sync
        self._teacher: Policy | None = None
        self.replay = ReplayBuffer(layout)
        self._num_new = 0  # since the last update
        self.rows_per_update = math.ceil(hyper.steps_per_update * sync.share)

    def use(self, teacher: Policy) -> None:
        """Ask this one from now on. It has no memory."""
        assert not teacher.memory_size
        self._teacher = teacher

    def observations(self) -> Iterator[Observations]:
        """Nothing is known before the first action."""
        yield from ()

    def add(self, block: Trajectories) -> Samples:
        """Keep the block with the actions that the teacher would have taken."""
        labeled = self.labeled(block)
        with torch.no_grad():
            error = self._imitation.loss(steps_of(labeled)).error.item()
        num_added = int(self._sync.sum(block.num_rows))
        self.replay.add(labeled, np.empty((block.num_rows, 0), np.float32), num_added=num_added)
        self._num_new += block.num_rows
        return {HELD_OUT: [error], "Policy/Labels": [float(self.replay.num_steps)]}

    def is_ready(self, num_waiting: int) -> bool:
        """Whether an update is due, and the labels fill a mini-batch, or this rank's part."""
        num_steps = self.replay.num_steps + num_waiting
        is_filled = num_steps >= self._hyper.batch_size * self._sync.share or (self.replay.is_full and num_steps)
        return self._num_new + num_waiting >= self.rows_per_update and bool(is_filled)

    def learn(self, learning_rate: float, should_continue: Callable[[], bool]) -> Metrics:
        """From mini-batches of all labels, `samples_per_update` together. Each of several ranks draws its part of them
        from its own labels."""
        num_samples = self._hyper.samples_per_update or int(self._sync.sum(self.replay.num_steps))
        count = max(1, num_samples // self._hyper.batch_size)
        error, _ = self._imitation.learn_steps((self._draw() for _ in range(count)), learning_rate, should_continue)
        self._num_new = 0
        return {LOSS: error}

    def _draw(self) -> ClonedSteps | None:
        """This rank's steps of a mini-batch, None if there are none."""
        size, random = len(self._sync.own_part(self._hyper.batch_size)), self._imitation.random
        if not size or not self.replay.num_steps:
            return None
        if self.replay.layout.memory_size:
            drawn = self.replay.sample_sequences(size, random, NO_GAMMAS)
        else:
            drawn = self.replay.sample(size, random, 1, NO_GAMMAS)
        lengths = np.ones(drawn.num_rows, np.int64) if drawn.lengths is None else drawn.lengths
        continuous, discrete = drawn.continuous_actions, drawn.discrete_actions
        return ClonedSteps(drawn.observations, continuous, discrete, lengths, drawn.memories)

    def labeled(self, block: Trajectories) -> Trajectories:
        """The block as if the teacher had acted in it."""
        assert self._teacher is not None, "experience before `use`"
        rows = np.arange(block.num_rows)
        unrewarded = np.zeros(block.num_rows, np.float32)
        decisions = DecisionSteps(rows, block.observations, unrewarded, block.action_mask)
        actions = self._teacher.act(decisions).actions
        bounded = actions.continuous.clip(-1, 1)  # as environments do
        continuous = before_bounds(bounded, is_squashed=False)
        return replace(block, continuous_actions=continuous, discrete_actions=actions.discrete)

    def counts(self) -> dict[str, Json]:
        """How much of the replay buffer is part of a checkpoint."""
        return {"num_added": self.replay.num_added, "num_new": self._num_new}

    def load_counts(self, counts: State) -> None:
        """Drop labels of later steps."""
        self.replay.drop_newer(int(counts.number("num_added", 0)))
        self._num_new = int(counts.number("num_new", 0))
