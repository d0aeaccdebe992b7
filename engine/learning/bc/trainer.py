"""Behavioral cloning (Pomerleau 1989) as a trainer of its own: from demonstrations, or from a teacher."""

from __future__ import annotations

import math
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
from rl_tui.engine.learning.bc.demonstrated import DemonstratedExamples
from rl_tui.engine.learning.bc.examples import Examples
from rl_tui.engine.learning.bc.settings import HELD_OUT, LOSS, BCSettings
from rl_tui.engine.learning.bc.taught import TaughtExamples
from rl_tui.engine.learning.cloning.imitation import Imitation, steps_of
from rl_tui.engine.learning.demonstrations import Demonstrations
from rl_tui.engine.learning.networks.actor import Actor
from rl_tui.engine.learning.networks.flat import FlatParameters, FlatPart
from rl_tui.engine.learning.networks.normalizer import Normalizer
from rl_tui.engine.learning.optimization import AdamState, GradientStep
from rl_tui.engine.learning.random_generators import generator_state, load_generator
from rl_tui.engine.learning.replay.layout import ReplayLayout
from rl_tui.engine.learning.schedules import scheduled_learning_rate
from rl_tui.engine.learning.sync import ONE_RANK, Sync
from rl_tui.engine.learning.trainer import Metrics, Samples, always
from rl_tui.engine.specs import BehaviorSpec, Float32, Observations, Policy, State, Trajectories

ROWS_OF_VECTORS, ROWS_OF_IMAGES = 8192, 256  # that are read at once where nothing is learned: images take much memory
KEPT = "the state before this update was kept"


class BCTrainer(ActorTrainer[BCSettings]):
    """Owns an actor, its optimizer and generator, and what it learns from.

    With demonstrations a step of training is a demonstrated step that was learned from, each time again, and experience
    is not learned from; with a teacher it is one of the policy.
    """

    is_on_policy = False
    actor_prefix = "actor.parameters."

    def __init__(
        self, spec: BehaviorSpec, config: BehaviorConfig, seed: int, device: torch.device, sync: Sync = ONE_RANK
    ):
        assert isinstance(config.hyperparameters, BCSettings)
        hyper = config.hyperparameters
        super().__init__(hyper, spec, config, seed, device, sync)
        if self._normalizer is not None and hyper.teacher is None:  # all ranks have the same demonstrations
            self._normalizer = Normalizer(self._layout.columns)
        self._actor = Actor(self._random, self._layout, spec.actions, config.network_settings, is_squashed=False)
        self._flat = FlatParameters(self._actor, device)
        self._step = GradientStep(self._flat, hyper.adam_epsilon, hyper.max_grad_norm)
        whole = FlatPart.of(self._flat.parameters, self._flat.gradient, self._flat.shapes)
        own_seed = np.random.SeedSequence(seed, spawn_key=(0,))
        self._imitation = Imitation(self._cloned(self._actor, whole), self._step, own_seed, sync)
        self._examples: Examples
        if hyper.teacher is None:
            self._examples = self._make_demonstrated(own_seed)
        else:
            self._examples = taught = TaughtExamples(hyper, self._imitation, self._replay_layout(), sync)
            self._differ_by_rank(seed)
            if sync.size > 1:
                self._imitation.random = self._random
            self.replay_bytes = taught.replay.layout.bytes
        self.num_parameters = self._step.num_parameters

    def _make_demonstrated(self, seed: np.random.SeedSequence) -> DemonstratedExamples:
        memory = self._config.network_settings.memory
        rows_at_once = ROWS_OF_VECTORS if self._layout.has_only_vectors else ROWS_OF_IMAGES
        split_seed, longest = int(seed.generate_state(1)[0]), memory.sequence_length if memory else 1
        return DemonstratedExamples(self._hyper, self._imitation, longest, split_seed, rows_at_once)

    def _replay_layout(self) -> ReplayLayout:
        memory = self._config.network_settings.memory
        return ReplayLayout(
            spec=self._spec,
            capacity=math.ceil(self._hyper.buffer_size * self._sync.share),
            time_horizon=self.time_horizon,
            num_streams=0,
            memory_size=memory.memory_size if memory else 0,
            sequence_length=memory.sequence_length if memory else 1,
        )

    @property
    def rows_per_update(self) -> int:  # type: ignore[override]  # it follows what it learns from
        """An update is due after this many rows."""
        return self._examples.rows_per_update

    def use_demonstrations(self, demonstrations: Mapping[str, Demonstrations]) -> None:
        """See Trainer."""
        super().use_demonstrations(demonstrations)
        if isinstance(self._examples, DemonstratedExamples):
            path = self._hyper.demo_path
            assert path is not None
            assert path in demonstrations, path
            self._examples.use(demonstrations[path])

    def use_teacher(self, teacher: Policy) -> None:
        """See Trainer."""
        assert isinstance(self._examples, TaughtExamples), "its settings name no teacher"
        self._examples.use(teacher)

    def _place(self, array: NDArray[Any]) -> Array:
        return self._flat.place(array)

    def add(self, block: Trajectories) -> Samples:
        """Have the teacher label a block, and keep it; on several ranks once `update` is called, which returns the
        means of its samples. Without a teacher, experience is not learned from."""
        return self._include_now(block, self._include_taught) if self._is_taught else {}

    def _include_taught(self, block: Trajectories) -> Samples:
        samples = self._examples.add(block)
        self._include(block.observations)
        return samples

    @property
    def _is_taught(self) -> bool:
        return isinstance(self._examples, TaughtExamples)

    def is_ready(self) -> bool:
        """Whether an update is due, and there is what it learns from."""
        return self._examples.is_ready(self._num_waiting)

    def update(self, step: int, should_continue: Callable[[], bool] = always) -> Metrics:
        """See `Examples.learn`."""
        with self._wholly_or_not_at_all():
            step = self._agreed_step(step)
            learning_rate = scheduled_learning_rate(self._hyper, step, self._config.max_steps)
            if self.num_updates == 0:
                for observations in self._examples.observations() if self._normalizer is not None else ():
                    self._include(observations)
            samples = self._include_waiting(self._include_taught) if self._is_taught else {}
            try:
                metrics = self._examples.learn(learning_rate, should_continue)
            except NonFiniteError as wrong:
                raise NonFiniteError(f"{wrong} at step {step}; {KEPT}") from wrong
        self.num_updates += 1
        self.held_out_loss = metrics.get(HELD_OUT)
        return {**metrics, **samples, "Policy/Learning Rate": learning_rate}

    def _include(self, observations: Observations) -> None:
        """Let the normalizer count these."""
        if self._normalizer is not None:
            self._normalizer.update(self._layout.vectors(observations))

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

    def loss(self, block: Trajectories) -> Metrics:
        """How far the actor is in this experience from what was done, or from what the teacher would have done."""
        with torch.no_grad():
            loss = self._imitation.loss(steps_of(self._examples.labeled(block)))
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
        """Actor, optimizer, normalizer, generator, and counts of what it learns from."""
        parts = {"actor": self._step.state(), "drawing": generator_state(self._imitation.random)}
        parts["trainer"] = State({}, {"num_updates": self.num_updates, **self._examples.counts()})
        return State.merge(parts | self._shared_state())

    def load(self, state: State) -> None:
        """Restore `state`, and drop labels of later steps."""
        self._step.load(state.part("actor"))
        load_generator(self._imitation.random, state.part("drawing"), self._sync.rank if self._is_taught else 0)
        self._load_shared(state)
        counts = state.part("trainer")
        self.num_updates = int(counts.number("num_updates"))
        self._examples.load_counts(counts)

    def replay(self) -> State | None:
        """A copy of the labels, if they are to be saved."""
        if isinstance(self._examples, TaughtExamples) and self._hyper.saves_replay:
            return self._examples.replay.state()
        return None

    def load_replay(self, replay: State) -> None:
        """Restore them. Raises CheckpointError, and changes nothing, when they do not fit."""
        if isinstance(self._examples, TaughtExamples):
            self._examples.replay.load(replay)
        else:
            super().load_replay(replay)
