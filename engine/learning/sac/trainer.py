"""Soft actor-critic (Haarnoja et al. 2018), with ML-Agents' defaults.

Shapes: N rows of a block, B rows of a mini-batch, A continuous dimensions, K branches, S reward streams.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.network import MemorySettings
from rl_tui.engine.errors import NonFiniteError
from rl_tui.engine.learning.actor_trainer import ActorTrainer
from rl_tui.engine.learning.large_observations import largest_observation
from rl_tui.engine.learning.networks.critics import StateCritic
from rl_tui.engine.learning.networks.flat import FlatPart
from rl_tui.engine.learning.optimization import AdamState, GradientStep
from rl_tui.engine.learning.random_generators import generator_state, load_generator
from rl_tui.engine.learning.replay.buffer import Minibatch, ReplayBuffer
from rl_tui.engine.learning.replay.layout import ReplayLayout
from rl_tui.engine.learning.sac.batch import soft_batch
from rl_tui.engine.learning.sac.gradients import Array, soft_gradients
from rl_tui.engine.learning.sac.losses import SoftLosses
from rl_tui.engine.learning.sac.networks import soft_networks, soft_parameters
from rl_tui.engine.learning.sac.recurrent_state import CriticMemory, CriticReader
from rl_tui.engine.learning.sac.settings import SACSettings
from rl_tui.engine.learning.schedules import scheduled, scheduled_learning_rate
from rl_tui.engine.learning.sync import ONE_RANK, Sync
from rl_tui.engine.learning.train_step import TrainStep
from rl_tui.engine.learning.trainer import Metrics, Samples, always
from rl_tui.engine.learning.value_function import Values, no_values
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, Float32, State, Trajectories

LONGEST_SEGMENT = 16  # steps: longer segments would only delay learning, since values bootstrap the rest


def _with_target(hyper: SACSettings, actions: ActionSpec) -> SACSettings:
    """With a number as target entropy of continuous actions: by default -1 for each."""
    if hyper.target_entropy is not None or not actions.continuous:
        return hyper
    return hyper.model_copy(update={"target_entropy": -float(actions.continuous)})


class SACTrainer(ActorTrainer[SACSettings]):
    """Owns networks, optimizers and replay buffer; its generator draws."""

    is_on_policy = False
    actor_prefix = "actor.parameters."

    def __init__(
        self, spec: BehaviorSpec, config: BehaviorConfig, seed: int, device: torch.device, sync: Sync = ONE_RANK
    ):
        assert isinstance(config.hyperparameters, SACSettings)
        hyper = _with_target(config.hyperparameters, spec.actions)
        super().__init__(hyper, spec, config, seed, device, sync)
        longest = max(LONGEST_SEGMENT, hyper.n_step, self._memory.sequence_length if self._memory else 0)
        self.time_horizon = min(config.time_horizon, longest)
        network, actions = config.network_settings, spec.actions
        self._networks = soft_networks(
            self._random, self._layout, actions, network, len(self._streams), with_value=not hyper.target_q
        )
        self._differ_by_rank(seed)
        self._parameters = soft_parameters(self._networks, hyper.init_entcoef, len(actions.branches), device)
        self._gradients = soft_gradients(self._networks, self._parameters, self._layout, actions, network)
        self._steps = {
            name: GradientStep(flat, hyper.adam_epsilon, hyper.max_grad_norm)
            for name, flat in self._parameters.trained().items()
        }
        if (cloning := config.behavioral_cloning) is not None:
            flat = self._parameters.actor
            of_actor = FlatPart.of(flat.parameters, flat.gradient, flat.shapes)
            self._cloning = self._make_cloning(cloning, self._networks.actor, of_actor, hyper.batch_size, seed)
        reevaluate = self._streams.reevaluate if self._streams.are_reevaluated else None
        self._replay = ReplayBuffer(self._replay_layout(), reevaluate)
        self._critic_memory = self._make_critic_memory()
        self._due_steps = 0.0  # of all ranks, since the last mini-batch
        self._due_signal_steps = 0.0  # since the last one that reward signals learned from
        self.replay_bytes = self._replay.layout.bytes
        own = sum(step.num_parameters for step in self._steps.values())
        self.num_parameters = own + self._streams.num_parameters  # without targets
        if hyper.prioritized_replay is not None:
            self.on_train_step(partial(_update_priorities, self._replay))

    def _replay_layout(self) -> ReplayLayout:
        hyper, priorities = self._hyper, self._hyper.prioritized_replay
        return ReplayLayout(
            spec=self._spec,
            capacity=self._part(hyper.buffer_size),
            time_horizon=self.time_horizon,
            num_streams=len(self._streams),
            memory_size=self._memory.memory_size if self._memory else 0,
            value_memory_size=self._memory.memory_size if self._memory and not hyper.target_q else 0,
            sequence_length=self._memory.sequence_length if self._memory else 1,
            alpha=None if priorities is None else priorities.alpha,
        )

    def _make_critic_memory(self) -> CriticMemory | None:
        value, flat = self._networks.value, self._parameters.value
        if self._memory is None or value is None or flat is None:
            return None
        reader = CriticReader(value, flat)
        return CriticMemory(reader, self._memory, self._hyper.batch_size)

    @property
    def _memory(self) -> MemorySettings | None:
        return self._config.network_settings.memory

    @property
    def rows_per_update(self) -> int:  # type: ignore[override]  # it follows a changeable hyperparameter
        """An update is due after this many rows."""
        return max(1, self._part(self._hyper.steps_per_update))

    def _part(self, steps: float) -> int:
        """This rank's part of so many steps, rounded up."""
        share = self._sync.share
        return math.ceil(steps * share.numerator / share.denominator)

    def add(self, block: Trajectories) -> Samples:
        """Keep a block; returns the size of the buffer, and each stream's returns of the episodes that ended in it.

        On several ranks `update` returns their means.
        """
        return self._include_now(block, self._include)

    def _include(self, block: Trajectories) -> Samples:
        rewards = self._evaluate(block)
        counts = np.array([block.num_rows, max(0, block.num_rows - self._missing_steps)], np.float64)
        num_added, new = self._sync.sum(counts).tolist()
        self._replay.add(block, rewards, self._critic_memories(block), int(num_added))
        self._due_steps += new
        self._due_signal_steps += new if self._streams.learn else 0
        return {"Policy/Replay Steps": [float(self._replay.num_steps)], **self._streams.episodes(block, rewards)}

    @property
    def _missing_steps(self) -> int:
        """Initial steps that the buffer does not hold yet."""
        initial = self._part(self._hyper.buffer_init_steps)
        return 0 if self._has(initial) else initial - self._replay.num_steps

    def _critic_memories(self, block: Trajectories) -> Float32 | None:
        """f32[N, M]: the state critic's memory where a sequence of the block begins; None without memory."""
        if self._critic_memory is None:
            return None
        features, following = self._features(block.observations), self._features(block.next_observations)
        return self._critic_memory.follow(block, features, following)

    def _place(self, array: NDArray[Any]) -> Array:
        return self._gradients.place(array)

    def is_ready(self) -> bool:
        """Whether an update is due, and the buffer holds a mini-batch and the initial steps, or this rank's part.

        A rank expects others to have collected their share, too.
        """
        waiting, needed = self._num_waiting, self._part(max(self._hyper.batch_size, self._hyper.buffer_init_steps))
        share = self._sync.share
        due = self._due_steps + max(0, waiting - self._missing_steps) * share.denominator / share.numerator
        is_filled = self._has(needed) or self._replay.num_steps + waiting >= needed
        return due >= self._hyper.steps_per_update and is_filled

    def _has(self, num_steps: int) -> bool:
        """Whether the buffer holds this many steps or is full: short episodes take more rows than steps."""
        return self._replay.num_steps >= num_steps or (self._replay.is_full and self._replay.num_steps > 0)

    def update(self, step: int, should_continue: Callable[[], bool] = always) -> Metrics:
        """Learn from one mini-batch per `steps_per_update` new steps, while `should_continue` allows.

        Reward signals do the same afterwards, by `reward_signal_steps_per_update`. The next update makes up for the
        rest. Several ranks draw their parts of a mini-batch, each from its own replay buffer; see Sync. Raises
        NonFiniteError; the mini-batches before it are learned, except by reward signals, and everything is finite.
        """
        terms, rows, cloning, signals = [], [], list[Metrics](), self._streams.snapshot()
        overflow_is_found_in_gradients = np.errstate(over="ignore", invalid="ignore")
        try:
            with overflow_is_found_in_gradients, self._sync.together("what was learned before is kept"):
                step = self._agreed_step(step)
                learning_rate = scheduled_learning_rate(self._hyper, step, self._config.max_steps)
                with self._undoing_statistics():
                    returns = self._include_waiting(self._include)
                while self._due_steps >= self._hyper.steps_per_update:
                    minibatch = self._draw(step)
                    own, may_continue = self._learn(minibatch, learning_rate, step, should_continue())
                    terms.append(own)
                    rows.append(0 if minibatch is None else minibatch.num_rows)
                    self._due_steps -= self._hyper.steps_per_update
                    cloning.append(self._clone(self._hyper.learning_rate, step, should_continue))
                    if not may_continue:
                        break
                else:
                    self._update_signals(should_continue)
                means = self._gradients.mean(self._sync.means(terms, rows))
                reported = self._streams.metrics()
        except BaseException:
            self._streams.restore(signals)
            raise
        self.num_updates += 1
        return {**self._metrics(means), "Policy/Learning Rate": learning_rate, **_means(cloning), **reported, **returns}

    def _update_signals(self, should_continue: Callable[[], bool]) -> None:
        """Let reward signals learn from one mini-batch per `reward_signal_steps_per_update` new steps."""
        while self._streams.learn and self._due_signal_steps >= self._hyper.reward_signal_steps_per_update:
            if self._sync.all(self._replay.num_steps > 0):
                count = max(1, len(self._sync.own_part(self._hyper.batch_size)))
                self._streams.update(self._replay.sample_transitions(count, self._random))
            self._due_signal_steps -= self._hyper.reward_signal_steps_per_update
            if not self._sync.all(should_continue()):
                return

    def _learn(
        self, minibatch: Minibatch | None, learning_rate: float, step: int, may_continue: bool
    ) -> tuple[list[Array], bool]:
        """Take one step on these rows and those of other ranks; returns the `_terms` of these, zeros without any, and
        whether all ranks may continue."""
        parameters = self._parameters
        losses = None if minibatch is None else self._losses(minibatch, self._random)
        gradients = [flat.gradient for flat in parameters.trained().values()]
        rows = 0 if minibatch is None else minibatch.num_rows
        may_continue = self._sync.average_gradients(gradients, rows, may_continue)
        if not parameters.has_finite_gradients():
            seen = () if minibatch is None else minibatch.observations
            large = largest_observation(self._spec.observations, seen) if seen else ""
            kept = "the state before this mini-batch was kept"
            raise NonFiniteError(f"a gradient is not finite at step {step}{large}; {kept}")
        for name, flat in parameters.trained().items():
            self._steps[name](flat.gradient, learning_rate)
        followed = parameters.q if parameters.value is None else parameters.value
        parameters.target.parameters.lerp_(followed.parameters, self._hyper.tau)
        if minibatch is None or losses is None:
            return [0.0] * self._num_terms, may_continue
        terms = _terms(losses)
        for hook in self._train_step_hooks:
            hook(TrainStep(self._spec.name, minibatch, self._metrics(terms), losses.errors))
        return terms, may_continue

    def _draw(self, step: int) -> Minibatch | None:
        """This rank's rows of a mini-batch, None if there are none."""
        hyper, beta = self._hyper, 0.0
        count = len(self._sync.own_part(hyper.batch_size))
        if not count or not self._replay.num_steps:
            return None
        if hyper.prioritized_replay is not None:
            beta = scheduled("linear", hyper.prioritized_replay.beta, 1.0, step, self._config.max_steps)
        gammas = self._streams.gammas
        if self._memory is not None:
            return self._replay.sample_sequences(count, self._random, gammas)
        return self._replay.sample(count, self._random, hyper.n_step, gammas, beta)

    def _losses(self, minibatch: Minibatch, random: np.random.Generator) -> SoftLosses:
        """The losses of rows, their gradients in `_parameters`."""
        actions = self._spec.actions
        batch = soft_batch(
            minibatch,
            self._networks,
            actions,
            self._streams.masks_terminal,
            noise=random.standard_normal((2, len(minibatch.rows), actions.continuous), np.float32),
            split=lambda observations: self._layout.split(observations, self._normalizer),
            place_all=self._gradients.place_all,
        )
        return self._gradients(batch, self._hyper.target_entropy or 0.0)

    @property
    def _num_terms(self) -> int:
        """How many `_terms` returns."""
        return 6 + len(self._streams) + len(self._spec.actions.branches)

    def _metrics(self, terms: Sequence[Any]) -> dict[str, Any]:
        policy, value, entropy, q1, q2, *rest = terms
        values, (continuous, *branches) = rest[: len(self._streams)], rest[len(self._streams) :]
        metrics = {
            "Losses/Policy Loss": policy,
            "Losses/Q1 Loss": q1,
            "Losses/Q2 Loss": q2,
            "Policy/Entropy": entropy,
            **self._streams.named(values, "Value"),
        }
        if self._networks.value is not None:
            metrics["Losses/Value Loss"] = value
        if self._spec.actions.continuous:
            metrics["Policy/Continuous Entropy Coeff"] = continuous
        if branches:
            metrics["Policy/Discrete Entropy Coeff"] = sum(branches) / len(branches)
        return metrics

    def loss(self, block: Trajectories) -> Metrics:
        """The losses of the current networks on this experience, with noise of its own. Changes nothing.

        With memory the state critic begins every segment at zero.
        """
        replay = ReplayBuffer(replace(self._replay.layout, capacity=block.num_rows, time_horizon=1, alpha=None))
        memories = None
        if self._critic_memory is not None:
            memories = np.zeros((block.num_rows, replay.layout.value_memory_size), np.float32)
        replay.add(block, self._streams.peek(block), memories)
        minibatch = replay.all_steps(self._hyper.n_step, self._streams.gammas)
        losses = self._losses(minibatch, np.random.Generator(np.random.PCG64(0)))
        return self._metrics(self._gradients.mean([_terms(losses)]))

    def modules(self) -> Mapping[str, nn.Module]:
        """The actor, the critics, the value network if there is one, and the target."""
        found = {field.name: getattr(self._networks, field.name) for field in fields(self._networks)}
        return {name: module for name, module in found.items() if module is not None}

    def optimizers(self) -> Mapping[str, AdamState]:
        """One for each network but the target, and one for the temperatures."""
        return {name: step.opened() for name, step in self._steps.items()}

    def value_function(self) -> Values:
        """What the value network expects with its present parameters, without memory."""
        if self._parameters.value is None:
            return no_values(f"{self._spec.name}: there is no value network where target_q is set")
        network, streams = self._config.network_settings, len(self._streams)
        make = partial(StateCritic, layout=self._layout, network=network, streams=streams)
        return self._value_function(make, lambda critic, features: critic(features), self._parameters.value.arrays())

    def _actor_arrays(self) -> dict[str, Float32]:
        return self._parameters.actor.arrays()

    def _load_actor(self, arrays: Mapping[str, Float32]) -> None:
        self._steps["actor"].overwrite(arrays)

    def state(self) -> State:
        """Networks, optimizers, normalizer, reward signals, generator; of the replay buffer only its count.

        Of several ranks only the generator differs: the state of rank 0 is the one to save, and every rank loads it.
        """
        parts = {name: step.state() for name, step in self._steps.items()}
        parts["target"] = State(dict(self._parameters.target.arrays()))
        parts["drawing"] = generator_state(self._random)
        counts = {"num_updates": self.num_updates, "owed": self._due_steps, "num_added": self._replay.num_added}
        if self._streams.learn:
            counts["due_signal_steps"] = self._due_signal_steps
        parts["trainer"] = State({}, dict(counts))
        return State.merge(parts | self._shared_state())

    def load(self, state: State) -> None:
        """Restore `state` and drop what was added to the replay buffer after it."""
        for name, step in self._steps.items():
            step.load(state.part(name))
        self._parameters.target.load(state.part("target").tensors)
        load_generator(self._random, state.part("drawing"), self._sync.rank)
        self._critic_memory = self._make_critic_memory()
        self._load_shared(state)
        counts = state.part("trainer")
        self.num_updates, self._due_steps = int(counts.number("num_updates")), counts.number("owed")
        self._due_signal_steps = counts.number("due_signal_steps", 0.0)
        self._replay.drop_newer(int(counts.number("num_added")))

    def replay(self) -> State | None:
        """A copy of the replay buffer, if it is to be saved."""
        return self._replay.state() if self._hyper.save_replay_buffer else None

    def load_replay(self, replay: State) -> None:
        """Restore the replay buffer. Raises CheckpointError, and changes nothing, when it does not fit."""
        self._replay.load(replay)


def _terms(losses: SoftLosses) -> list[Array]:
    """Metrics of a mini-batch, f32[] each, in the order in which `_metrics` reads them."""
    value = 0 * losses.policy if losses.value is None else losses.value
    return [losses.policy, value, losses.entropy, *losses.q, *losses.values, *losses.alpha]


def _means(reported: Sequence[Metrics]) -> Metrics:
    """Of metrics that are all reported alike."""
    tags = reported[0] if reported else ()
    return {tag: math.fsum(each[tag] for each in reported) / len(reported) for tag in tags}


def _update_priorities(replay: ReplayBuffer, step: TrainStep) -> None:
    assert isinstance(step.sample, Minibatch)
    assert step.errors is not None
    replay.update_priorities(step.sample.rows, np.asarray(step.errors.tolist(), np.float32))
