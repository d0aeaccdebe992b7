"""Behavioral cloning (Pomerleau 1989) as a trainer of its own: it learns from demonstrations alone.

Shapes: E episodes, S sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.errors import NonFiniteError
from rl_tui.engine.learning.actor_trainer import ActorTrainer, Array
from rl_tui.engine.learning.bc.settings import BCSettings
from rl_tui.engine.learning.cloning.imitation import Imitation
from rl_tui.engine.learning.cloning.sequences import DemonstratedSequences, Passes
from rl_tui.engine.learning.demonstrations import Demonstrations
from rl_tui.engine.learning.networks.actor import Actor
from rl_tui.engine.learning.networks.flat import FlatParameters, FlatPart
from rl_tui.engine.learning.networks.normalizer import Normalizer
from rl_tui.engine.learning.optimization import AdamState, GradientStep
from rl_tui.engine.learning.random_generators import generator_state, load_generator
from rl_tui.engine.learning.schedules import scheduled_learning_rate
from rl_tui.engine.learning.sync import ONE_RANK, Sync
from rl_tui.engine.learning.trainer import Metrics, Samples, always
from rl_tui.engine.specs import BehaviorSpec, Float32, Int64, State, Trajectories

LOSS, HELD_OUT = "Losses/Cloning Loss", "Losses/Held-Out Cloning Loss"
ROWS_OF_VECTORS, ROWS_OF_IMAGES = 8192, 256  # that are read at once where nothing is learned: images take much memory
KEPT = "the state before this update was kept"


class BCTrainer(ActorTrainer[BCSettings]):
    """Owns an actor, its optimizer and generator, and the demonstrations. Experience is not learned from.

    Some episodes are held out: the loss of these says whether what is learned holds for others, too. Which ones follows
    from the seed of the first start. A step of training is a demonstrated step that was learned from, each time again.
    """

    is_on_policy = False
    actor_prefix = "actor.parameters."

    def __init__(
        self, spec: BehaviorSpec, config: BehaviorConfig, seed: int, device: torch.device, sync: Sync = ONE_RANK
    ):
        assert isinstance(config.hyperparameters, BCSettings)
        hyper = config.hyperparameters
        super().__init__(hyper, spec, config, seed, device, sync)
        if self._normalizer is not None:  # all ranks have the same demonstrations, there is nothing to add up
            self._normalizer = Normalizer(self._layout.columns)
        self._actor = Actor(self._random, self._layout, spec.actions, config.network_settings, is_squashed=False)
        self._flat = FlatParameters(self._actor, device)
        self._step = GradientStep(self._flat, hyper.adam_epsilon, hyper.max_grad_norm)
        whole = FlatPart.of(self._flat.parameters, self._flat.gradient, self._flat.shapes)
        own_seed = np.random.SeedSequence(seed, spawn_key=(0,))
        self._imitation = Imitation(self._cloned(self._actor, whole), self._step, own_seed, sync)
        self._split_seed = int(own_seed.generate_state(1)[0])  # saved: what is held out stays so
        self._passes = Passes(batch_size=hyper.batch_size, count=1, most_steps=hyper.samples_per_update)
        self._demonstrations: Demonstrations | None = None
        self._learned = self._held_out = DemonstratedSequences.of(np.empty((0, 2), np.int64), 1)
        self.rows_per_update = max(1, hyper.samples_per_update)
        self.num_parameters = self._step.num_parameters

    def use_demonstrations(self, demonstrations: Mapping[str, Demonstrations]) -> None:
        """See Trainer."""
        super().use_demonstrations(demonstrations)
        assert self._hyper.demo_path in demonstrations, self._hyper.demo_path
        self._demonstrations = demonstrations[self._hyper.demo_path]
        self._split(self._demonstrations.episodes)

    def _split(self, episodes: Int64) -> None:
        """Hold out some of the episodes i64[E, 2]: at least one where that is asked for, and never the last one."""
        memory, share, count = self._config.network_settings.memory, self._hyper.validation, len(episodes)
        longest = memory.sequence_length if memory else 1
        num_held_out = min(max(1, round(share * count)), count - 1) if share else 0
        order = np.random.Generator(np.random.PCG64(self._split_seed)).permutation(count)
        held_out, learned = np.sort(order[:num_held_out]), np.sort(order[num_held_out:])
        self._held_out = DemonstratedSequences.of(episodes[held_out], longest)
        self._learned = DemonstratedSequences.of(episodes[learned], longest)
        size, minibatches = self._passes.sizes(self._learned)
        self.rows_per_update = min(size * minibatches * longest, self._learned.num_rows)

    def _place(self, array: NDArray[Any]) -> Array:
        return self._flat.place(array)

    def add(self, block: Trajectories) -> Samples:
        """Experience is not learned from."""
        return {}

    def is_ready(self) -> bool:
        """Whether there are demonstrations."""
        return self._demonstrations is not None

    def update(self, step: int, should_continue: Callable[[], bool] = always) -> Metrics:
        """Learn from demonstrated steps in a new order, at most `samples_per_update`, and report the loss of those held
        out, at most as many.

        Both are errors of the mean action and cross entropies, comparable; what is minimized includes the spread.
        """
        demonstrations = self._demonstrations
        assert demonstrations is not None, "an update before `use_demonstrations`"
        with self._wholly_or_not_at_all():
            step = self._agreed_step(step)
            learning_rate = scheduled_learning_rate(self._hyper, step, self._config.max_steps)
            if self.num_updates == 0:
                self._normalize(demonstrations)
            try:
                error, _ = self._imitation.learn(
                    demonstrations, self._learned, self._passes, learning_rate, should_continue
                )
            except NonFiniteError as wrong:
                raise NonFiniteError(f"{wrong} at step {step}; {KEPT}") from wrong
            held_out = self._held_out_loss(demonstrations)
        self.num_updates += 1
        return {LOSS: error, **held_out, "Policy/Learning Rate": learning_rate}

    @contextmanager
    def _wholly_or_not_at_all(self) -> Iterator[None]:
        """The calls of one update. What raises in here, on any rank, leaves everything as it was."""
        normalizer = None if self._normalizer is None else self._normalizer.state()
        try:
            with self._imitation.undoing(), self._sync.together(KEPT):
                yield
        except BaseException:
            if self._normalizer is not None and normalizer is not None:
                self._normalizer.load(normalizer)
            raise

    def _normalize(self, demonstrations: Demonstrations) -> None:
        """The normalizer has the statistics of every step that is learned from."""
        if self._normalizer is None:
            return
        every = np.arange(len(self._learned))
        for part in np.array_split(every, -(-len(every) * self._learned.longest // self._rows_at_once)):
            observations = demonstrations.transitions(self._learned.rows(part)).observations
            self._normalizer.update(self._layout.vectors(observations))

    def _held_out_loss(self, demonstrations: Demonstrations) -> Metrics:
        """By its tag; empty where nothing is held out."""
        if not len(self._held_out):
            return {}
        most = self._hyper.samples_per_update or self._held_out.num_rows
        chosen = self._held_out.spaced(most)
        return {HELD_OUT: self._imitation.error(demonstrations, self._held_out, chosen, self._rows_at_once)}

    @property
    def _rows_at_once(self) -> int:
        return ROWS_OF_VECTORS if self._layout.has_only_vectors else ROWS_OF_IMAGES

    def loss(self, block: Trajectories) -> Metrics:
        """How far the actor is from what was done in this experience. With memory every segment begins at zero."""
        with torch.no_grad():
            loss = self._imitation.loss_of(
                block.observations, block.continuous_actions, block.discrete_actions, block.lengths
            )
        return {LOSS: loss.error.item()}

    def modules(self) -> Mapping[str, nn.Module]:
        """The actor."""
        return {"actor": self._actor}

    def optimizers(self) -> Mapping[str, AdamState]:
        """The one of the actor."""
        return {"actor": self._step.opened()}

    def _actor_arrays(self) -> dict[str, Float32]:
        return self._flat.arrays()

    def _load_actor(self, arrays: Mapping[str, Float32]) -> None:
        self._step.overwrite(arrays)

    def state(self) -> State:
        """Actor, optimizer, normalizer, generator, and what is held out, the same on all ranks."""
        parts = {"actor": self._step.state(), "drawing": generator_state(self._imitation.random)}
        parts["trainer"] = State({}, {"num_updates": self.num_updates, "split_seed": self._split_seed})
        return State.merge(parts | self._shared_state())

    def load(self, state: State) -> None:
        """Restore `state`."""
        self._step.load(state.part("actor"))
        load_generator(self._imitation.random, state.part("drawing"))
        self._load_shared(state)
        counts = state.part("trainer")
        self.num_updates, self._split_seed = int(counts.number("num_updates")), int(counts.number("split_seed"))
        if self._demonstrations is not None:
            self._split(self._demonstrations.episodes)
