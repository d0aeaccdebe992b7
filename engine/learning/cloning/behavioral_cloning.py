"""Behavioral cloning beside reinforcement learning: the key `behavioral_cloning`, as in ML-Agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from rl_tui.engine.config.behavior import BehavioralCloningSettings
from rl_tui.engine.errors import NonFiniteError
from rl_tui.engine.learning.cloning.imitation import ClonedActor, Imitation
from rl_tui.engine.learning.cloning.sequences import DemonstratedSequences, Passes
from rl_tui.engine.learning.demonstrations import Demonstrations
from rl_tui.engine.learning.optimization import GradientStep
from rl_tui.engine.learning.random_generators import generator_state, load_generator
from rl_tui.engine.learning.schedules import MIN_LEARNING_RATE, scheduled
from rl_tui.engine.learning.sync import Sync
from rl_tui.engine.specs import State

NUM_EPOCH = 3  # ML-Agents': not that of the trainer
ADAM_EPSILON = 1e-8  # ML-Agents'
LOSS = "Losses/Pretraining Loss"


class BehavioralCloning:
    """Owns an optimizer and a generator beside those of the trainer, whose actor it steps; the demonstrations.

    `use` is called before the first `update`.
    """

    def __init__(
        self,
        settings: BehavioralCloningSettings,
        cloned: ClonedActor,
        batch_size: int,
        sequence_length: int,
        seed: np.random.SeedSequence,
        sync: Sync,
    ):
        """batch_size: of the trainer. sequence_length: 1 without memory. seed: the same on all ranks."""
        self._settings = settings
        self._passes = Passes(
            batch_size=settings.batch_size or batch_size,
            count=settings.num_epoch or NUM_EPOCH,
            most_steps=settings.samples_per_update,
        )
        self._longest = sequence_length
        self._imitation = Imitation(cloned, GradientStep(cloned.flat, ADAM_EPSILON, None), seed, sync)
        self._demonstrations: Demonstrations | None = None
        self._sequences: DemonstratedSequences | None = None

    def use(self, demonstrations: Mapping[str, Demonstrations]) -> None:
        """Learn from those of `demo_path`."""
        assert self._settings.demo_path in demonstrations, self._settings.demo_path
        self._demonstrations = demonstrations[self._settings.demo_path]
        self._sequences = DemonstratedSequences.of(self._demonstrations.episodes, self._longest)

    def learning_rate(self, learning_rate: float, step: int) -> float:
        """At this step, of that of the trainer at its start."""
        steps, first = self._settings.steps, learning_rate * self._settings.strength
        return scheduled("linear" if steps else "constant", first, MIN_LEARNING_RATE, step, steps)

    def update(self, learning_rate: float, step: int, should_continue: Callable[[], bool]) -> Mapping[str, float]:
        """Make the passes of one update; returns the loss by its metric, and nothing once the annealing has ended.

        learning_rate: of the trainer at its start. Raises NonFiniteError, DemonstrationError; what that leaves is
        undone by `undoing`.
        """
        rate = self.learning_rate(learning_rate, step)
        if rate <= MIN_LEARNING_RATE:
            return {}
        assert self._demonstrations is not None, "an update before `use`"
        assert self._sequences is not None
        try:
            terms = self._imitation.learn(self._demonstrations, self._sequences, self._passes, rate, should_continue)
        except NonFiniteError as error:
            text = f"behavioral_cloning: {error} at step {step}; the state before it was kept"
            raise NonFiniteError(text) from error
        return {LOSS: sum(terms)}

    @contextmanager
    def undoing(self) -> Iterator[None]:
        """What raises in here leaves the actor and all that this owns as they were."""
        with self._imitation.undoing():
            yield

    def state(self) -> State:
        """Moments and generator; the parameters are the trainer's."""
        parts = {"optimizer": self._imitation.step.moments(), "drawing": generator_state(self._imitation.random)}
        return State.merge(parts)

    def load(self, state: State) -> None:
        """Restore `state`. All ranks draw on from there alike."""
        self._imitation.step.load_moments(state.part("optimizer"))
        load_generator(self._imitation.random, state.part("drawing"))
