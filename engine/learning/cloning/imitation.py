"""An actor that learns to act as demonstrations do.

Shapes: B rows of a mini-batch in S sequences, A continuous dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_tui.engine.errors import NonFiniteError
from rl_tui.engine.learning.acting.distributions import before_bounds
from rl_tui.engine.learning.cloning.loss import CloningLoss, cloning_loss
from rl_tui.engine.learning.cloning.sequences import DemonstratedSequences, Passes
from rl_tui.engine.learning.demonstrations import Demonstrations
from rl_tui.engine.learning.networks.actor import Actor
from rl_tui.engine.learning.networks.flat import FlatPart
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.learning.optimization import GradientStep, Snapshot
from rl_tui.engine.learning.sync import Sync
from rl_tui.engine.specs import Float32, Int64, Observations

ToFeatures = Callable[[Observations], tuple[NDArray[Any], ...]]  # normalized, on the CPU


@dataclass(frozen=True, slots=True)
class ClonedActor:
    """An actor, its parameters, which nothing else steps meanwhile, and how its features are made of observations."""

    actor: Actor
    flat: FlatPart
    to_features: ToFeatures


class Imitation:
    """Owns an optimizer of the actor's parameters and a generator.

    On several ranks the generators draw the same mini-batches, and each rank takes its part of every one: they learn
    what one process would. All of them have the same demonstrations.
    """

    def __init__(self, cloned: ClonedActor, step: GradientStep, seed: np.random.SeedSequence, sync: Sync):
        """seed: the same on all ranks."""
        self.step = step
        self.random = np.random.Generator(np.random.PCG64(seed))
        self._actor, self._flat, self._to_features = cloned.actor, cloned.flat, cloned.to_features
        self._sync = sync

    def learn(
        self,
        demonstrations: Demonstrations,
        sequences: DemonstratedSequences,
        passes: Passes,
        learning_rate: float,
        should_continue: Callable[[], bool],
    ) -> tuple[float, float]:
        """Take a step for every mini-batch, while `should_continue` allows; the mean error and spread of these.

        All ranks call it together. Raises NonFiniteError if what was learned is not finite, DemonstrationError.
        """
        losses, rows = list[list[Any]](), list[int]()
        for chosen in passes.minibatches(sequences, self.random):
            loss, count = self._take_step(demonstrations, sequences, chosen, learning_rate)
            losses.append(loss)
            rows.append(count)
            if not self._sync.all(should_continue()):
                break
        error, spread = map(_mean, zip(*self._sync.means(losses, rows), strict=True))
        if not (math.isfinite(error + spread) and self.step.is_finite):
            raise NonFiniteError("what was learned from demonstrations is not finite")
        return error, spread

    def error(
        self, demonstrations: Demonstrations, sequences: DemonstratedSequences, chosen: Int64, most: int
    ) -> float:
        """The mean error on these sequences, read in parts of about so many rows. Each rank may call it alone."""
        parts = np.array_split(chosen, -(-len(chosen) * sequences.longest // most))
        with torch.no_grad():
            errors = [
                (self.loss(demonstrations, sequences, part).error.item(), int(sequences.lengths[part].sum()))
                for part in parts
            ]
        return math.fsum(error * rows for error, rows in errors) / sum(rows for _, rows in errors)

    def loss(
        self,
        demonstrations: Demonstrations,
        sequences: DemonstratedSequences,
        chosen: Int64,
        noise: Float32 | None = None,
    ) -> CloningLoss:
        """That of these sequences, whose memories begin at zero. noise: f32[B, A], see `cloning_loss`."""
        steps = demonstrations.transitions(sequences.rows(chosen))
        continuous = before_bounds(steps.continuous_actions, self._actor.is_squashed)
        lengths = sequences.lengths[chosen]
        return self.loss_of(steps.observations, continuous, steps.discrete_actions, lengths, noise)

    def loss_of(
        self,
        observations: Observations,
        continuous: Float32,
        discrete: Int64,
        lengths: Int64,
        noise: Float32 | None = None,
    ) -> CloningLoss:
        """That of rows in sequences of these lengths i64[S]. continuous: as `Choice.continuous` would have them."""
        features = tuple(map(self._place, self._to_features(observations)))
        head = self._actor(features, self._memories(lengths))
        drawn = None if noise is None else self._place(noise)
        return cloning_loss(self._actor, head, self._place(continuous), self._place(discrete), drawn)

    def _take_step(
        self, demonstrations: Demonstrations, sequences: DemonstratedSequences, chosen: Int64, learning_rate: float
    ) -> tuple[list[Any], int]:
        """The error and spread of this rank's rows of a mini-batch, and how many these are."""
        gradient = self._flat.gradient.zero_()
        noise = self._noise(int(sequences.lengths[chosen].sum()))
        first, end = (len(chosen) * rank // self._sync.size for rank in (self._sync.rank, self._sync.rank + 1))
        begin, rows = (int(sequences.lengths[of].sum()) for of in (chosen[:first], chosen[first:end]))
        terms: list[Any] = [0.0, 0.0]
        if rows:
            own_noise = None if noise is None else noise[begin : begin + rows]
            loss = self.loss(demonstrations, sequences, chosen[first:end], own_noise)
            loss.total.backward()  # type: ignore[no-untyped-call]  # torch's signature
            terms = [loss.error.detach(), loss.spread.detach()]
        self._sync.average_gradients([gradient], rows)
        self.step(gradient, learning_rate)
        return terms, rows

    def _noise(self, rows: int) -> Float32 | None:
        """f32[rows, A] for squashed actions."""
        size = self._actor.actions.continuous
        if not self._actor.is_squashed or not size:
            return None
        return self.random.standard_normal((rows, size), np.float32)

    def _memories(self, lengths: Int64) -> Sequences | None:
        if not self._actor.memory_size:
            return None
        return Sequences(lengths, self._flat.parameters.new_zeros(len(lengths), self._actor.memory_size))

    def _place(self, array: NDArray[Any]) -> Tensor:
        return self._flat.place(array)

    def snapshot(self) -> ImitationSnapshot:
        """A copy for `restore`; cheap, on the device."""
        return ImitationSnapshot(self.step.snapshot(), self.random.bit_generator.state)

    def restore(self, snapshot: ImitationSnapshot) -> None:
        """Undo every step since `snapshot`."""
        self.step.restore(snapshot.step)
        self.random.bit_generator.state = snapshot.generator

    @contextmanager
    def undoing(self) -> Iterator[None]:
        """What raises in here leaves parameters, moments and generator as they were."""
        before = self.snapshot()
        try:
            yield
        except BaseException:
            self.restore(before)
            raise


@dataclass(frozen=True, slots=True)
class ImitationSnapshot:
    """generator: as numpy has its state."""

    step: Snapshot
    generator: Mapping[str, Any]


def _mean(terms: Sequence[Any]) -> float:
    """Of tensors f32[], which are waited for once, or of floats."""
    if isinstance(terms[0], Tensor):
        return float(torch.stack(tuple(terms)).mean())
    return math.fsum(terms) / len(terms)
