"""An actor that learns to act as demonstrations do.

Shapes: B rows of a mini-batch in S sequences, A continuous dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from rl_tui.engine.specs import Float32, Int64, Observations, Trajectories

ToFeatures = Callable[[Observations], tuple[NDArray[Any], ...]]  # normalized, on the CPU


@dataclass(frozen=True, slots=True)
class ClonedActor:
    """An actor, its parameters, which nothing else steps meanwhile, and how its features are made of observations."""

    actor: Actor
    flat: FlatPart
    to_features: ToFeatures


@dataclass(frozen=True, slots=True)
class ClonedSteps:
    """Steps with the actions to be learned there.

    continuous: f32[B, A], as `Choice.continuous` would have them. discrete: i64[B, K]. lengths: i64[S] of the
    sequences. memories: f32[S, M], the actor's before each; None begins with empty ones. noise: f32[B, A], see
    `cloning_loss`.
    """

    observations: Observations
    continuous: Float32
    discrete: Int64
    lengths: Int64
    memories: Float32 | None = None
    noise: Float32 | None = None

    @property
    def num_rows(self) -> int:
        """B."""
        return len(self.continuous)


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
        """`learn_steps` with the mini-batches of these passes, of which each rank takes its part.

        Raises DemonstrationError, too.
        """
        chosen = passes.minibatches(sequences, self.random)
        parts = (self._own_part(demonstrations, sequences, each) for each in chosen)
        return self.learn_steps(parts, learning_rate, should_continue)

    def learn_steps(
        self, minibatches: Iterable[ClonedSteps | None], learning_rate: float, should_continue: Callable[[], bool]
    ) -> tuple[float, float]:
        """Take a step for every mini-batch, while `should_continue` allows; the mean error and spread of these.

        minibatches: this rank's rows of each, None without any. All ranks call it together, with as many. Raises
        NonFiniteError if what was learned is not finite.
        """
        losses, rows = list[list[Any]](), list[int]()
        for steps in minibatches:
            own, may_continue = self._take_step(steps, learning_rate, should_continue())
            losses.append(own)
            rows.append(0 if steps is None else steps.num_rows)
            if not may_continue:
                break
        error, spread = map(_mean, zip(*self._sync.means(losses, rows), strict=True))
        if not (math.isfinite(error + spread) and self.step.is_finite):
            raise NonFiniteError("what was learned by cloning is not finite")
        return error, spread

    def error(
        self, demonstrations: Demonstrations, sequences: DemonstratedSequences, chosen: Int64, most: int
    ) -> float:
        """The mean error on these sequences, read in parts of about so many rows. Each rank may call it alone."""
        parts = np.array_split(chosen, -(-len(chosen) * sequences.longest // most))
        with torch.no_grad():
            errors = [
                (self.loss(demonstrated_steps(demonstrations, sequences, part, self._is_squashed)).error.item(), rows)
                for part, rows in ((part, int(sequences.lengths[part].sum())) for part in parts)
            ]
        return math.fsum(error * rows for error, rows in errors) / sum(rows for _, rows in errors)

    def loss(self, steps: ClonedSteps) -> CloningLoss:
        """Of these steps."""
        features = tuple(map(self._place, self._to_features(steps.observations)))
        head = self._actor(features, self._sequences(steps))
        noise = None if steps.noise is None else self._place(steps.noise)
        return cloning_loss(self._actor, head, self._place(steps.continuous), self._place(steps.discrete), noise)

    def _own_part(
        self, demonstrations: Demonstrations, sequences: DemonstratedSequences, chosen: Int64
    ) -> ClonedSteps | None:
        """This rank's steps of a mini-batch."""
        noise = self.noise(int(sequences.lengths[chosen].sum()))
        part = self._sync.own_part(len(chosen))
        own = chosen[part.start : part.stop]
        begin, rows = (int(sequences.lengths[of].sum()) for of in (chosen[: part.start], own))
        if not rows:
            return None
        own_noise = None if noise is None else noise[begin : begin + rows]
        return demonstrated_steps(demonstrations, sequences, own, self._is_squashed, own_noise)

    def _take_step(self, steps: ClonedSteps | None, learning_rate: float, may_continue: bool) -> tuple[list[Any], bool]:
        """On these rows and those of other ranks; the error and spread of these, and whether all ranks may continue."""
        gradient, terms = self._flat.gradient.zero_(), list[Any]([0.0, 0.0])
        if steps is not None:
            loss = self.loss(steps)
            loss.total.backward()  # type: ignore[no-untyped-call]  # torch's signature
            terms = [loss.error.detach(), loss.spread.detach()]
        may_continue = self._sync.average_gradients([gradient], 0 if steps is None else steps.num_rows, may_continue)
        self.step(gradient, learning_rate)
        return terms, may_continue

    @property
    def _is_squashed(self) -> bool:
        return self._actor.is_squashed

    def noise(self, rows: int) -> Float32 | None:
        """f32[rows, A] for squashed actions."""
        size = self._actor.actions.continuous
        if not self._actor.is_squashed or not size:
            return None
        return self.random.standard_normal((rows, size), np.float32)

    def _sequences(self, steps: ClonedSteps) -> Sequences | None:
        size, lengths = self._actor.memory_size, steps.lengths
        if not size:
            return None
        if steps.memories is not None:
            return Sequences(lengths, self._place(steps.memories))
        return Sequences(lengths, self._flat.parameters.new_zeros(len(lengths), size))

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


def steps_of(block: Trajectories) -> ClonedSteps:
    """What was done in a block, in its segments, with the memories that the actor had then."""
    first = np.cumsum(block.lengths) - block.lengths
    memories = None if block.memories is None else block.memories[first]
    return ClonedSteps(block.observations, block.continuous_actions, block.discrete_actions, block.lengths, memories)


def demonstrated_steps(
    demonstrations: Demonstrations,
    sequences: DemonstratedSequences,
    chosen: Int64,
    is_squashed: bool,
    noise: Float32 | None = None,
) -> ClonedSteps:
    """Those of some sequences, whose memories begin empty. Raises DemonstrationError."""
    steps = demonstrations.transitions(sequences.rows(chosen), with_next=False)
    continuous = before_bounds(steps.continuous_actions, is_squashed)
    return ClonedSteps(steps.observations, continuous, steps.discrete_actions, sequences.lengths[chosen], noise=noise)


def _mean(terms: Sequence[Any]) -> float:
    """Of tensors f32[], which are waited for once, or of floats."""
    if isinstance(terms[0], Tensor):
        return float(torch.stack(tuple(terms)).mean())
    return math.fsum(terms) / len(terms)
