"""Proximal policy optimization (Schulman et al. 2017), with ML-Agents' defaults.

Shapes: N rows of a rollout, B rows of a mini-batch, A continuous dimensions, K branches, R reward streams.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.errors import NonFiniteError
from rl_tui.engine.learning.actor_trainer import ActorTrainer
from rl_tui.engine.learning.agent_state import AgentState
from rl_tui.engine.learning.large_observations import largest_observation
from rl_tui.engine.learning.loss_inputs import CustomLoss
from rl_tui.engine.learning.networks.flat import views
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.learning.on_policy.actor_critic import make_actor_critic
from rl_tui.engine.learning.on_policy.networks import PPONetworks
from rl_tui.engine.learning.on_policy.rollout import (
    Columns,
    Part,
    Rollout,
    RolloutBuffer,
    minibatches,
    num_parts,
    split_rows,
)
from rl_tui.engine.learning.optimization import AdamState, GradientStep
from rl_tui.engine.learning.ppo.batch import Batch, advantage_columns, normalized
from rl_tui.engine.learning.ppo.custom_loss import CustomLosses
from rl_tui.engine.learning.ppo.loss import Coefficients, Loss, surrogate_loss
from rl_tui.engine.learning.ppo.prepared import FEATURES, PreparedRollout, features_of
from rl_tui.engine.learning.ppo.settings import PPOSettings
from rl_tui.engine.learning.ppo.terms import DIVERGENCE, NO_TERMS, Terms, means, metrics, terms_of, unsigned
from rl_tui.engine.learning.random_generators import generator_state, load_generator
from rl_tui.engine.learning.schedules import MIN_BETA, MIN_EPSILON, scheduled, scheduled_learning_rate
from rl_tui.engine.learning.sync import ONE_RANK, Sync
from rl_tui.engine.learning.train_step import TrainStep
from rl_tui.engine.learning.trainer import Metrics, Samples, always
from rl_tui.engine.learning.value_estimates import ValueEstimator
from rl_tui.engine.learning.value_function import Values
from rl_tui.engine.specs import BehaviorSpec, Float32, State, Trajectories

Array: TypeAlias = Any  # numpy array on the CPU, torch tensor elsewhere
ROWS_OF_VECTORS = 2048  # per call of the critic: they are small, and a memory reads many sequences in the time of one
KEPT = "the state before this update was kept"


class PPOTrainer(ActorTrainer[PPOSettings]):
    """Owns networks, optimizer, rollout and critic memories; its generator shuffles."""

    is_on_policy = True
    actor_prefix = "network.parameters.actor."

    def __init__(
        self, spec: BehaviorSpec, config: BehaviorConfig, seed: int, device: torch.device, sync: Sync = ONE_RANK
    ):
        hyper, memory = config.hyperparameters, config.network_settings.memory
        assert isinstance(hyper, PPOSettings)
        super().__init__(hyper, spec, config, seed, device, sync)
        activation = config.network_settings.activation
        self._network = make_actor_critic(self._make_networks(self._random), self._layout, activation, device)
        self._custom = CustomLosses(self._network, spec, hyper.joint_ratio)
        self._differ_by_rank(seed)
        self._step = GradientStep(self._network, hyper.adam_epsilon, hyper.max_grad_norm)
        rows_per_call = max(hyper.batch_size, ROWS_OF_VECTORS if self._layout.has_only_vectors else 1)
        self._estimator = ValueEstimator(self._network, memory, rows_per_call, hyper.shared_critic)
        self._agents = AgentState.empty(memory.memory_size if memory else 0, np.float32)
        self._rollout = RolloutBuffer()
        self._updated_at = 0  # step
        if (streams := self._streams).learn:
            self.on_train_step(lambda step: streams.update(step.sample))
        self.rows_per_update = math.ceil(hyper.buffer_size / sync.size)
        self.num_parameters = self._step.num_parameters + self._streams.num_parameters

    @property
    def _make_networks(self) -> Callable[[np.random.Generator], PPONetworks]:
        settings, num_streams, is_shared = self._config.network_settings, len(self._streams), self._hyper.shared_critic
        return partial(
            PPONetworks,
            layout=self._layout,
            actions=self._spec.actions,
            network=settings,
            num_streams=num_streams,
            is_shared=is_shared,
        )

    def on_loss(self, loss: CustomLoss) -> None:
        """See Trainer."""
        self._custom.functions.append(loss)

    def remove_loss(self, loss: CustomLoss) -> None:
        """See Trainer."""
        self._custom.functions.remove(loss)

    def modules(self) -> Mapping[str, nn.Module]:
        """The actor, the critic's body unless it is shared, and the values' head."""
        return dict(self._network.networks.named_children())

    def optimizers(self) -> Mapping[str, AdamState]:
        """One for all networks."""
        return {"network": self._step.opened()}

    def value_function(self) -> Values:
        """What the critic expects with its present parameters, without memory."""
        arrays = views(self._step.parameters(), self._network.shapes)
        return self._value_function(self._make_networks, lambda networks, features: networks.value(features)[0], arrays)

    def add(self, block: Trajectories) -> Samples:
        """Keep a block for the next update, and return each stream's returns of the episodes that ended in it.

        On several ranks `update` returns the means of that.
        """
        return self._include_now(block, self._include)

    def _include(self, block: Trajectories) -> Samples:
        rewards = self._evaluate(block)
        self._rollout.add(block, rewards)
        return self._streams.episodes(block, rewards)

    def is_ready(self) -> bool:
        """Whether there are `buffer_size` rows, or this rank's part of them."""
        return self._rollout.num_rows + self._num_waiting >= self.rows_per_update

    def update(self, step: int, should_continue: Callable[[], bool] = always) -> Metrics:
        """Make `num_epoch` shuffled passes over the rows since the last update, while `should_continue` allows.

        Several ranks do so together, with the rows of all; see Sync.
        """
        before, signals = self._step.snapshot(), self._streams.snapshot()
        overflow_is_reported = np.errstate(over="ignore", invalid="ignore")
        try:
            with overflow_is_reported, self._undoing_statistics(), self._sync.together(KEPT):
                step = self._agreed_step(step)
                learning_rate = scheduled_learning_rate(self._hyper, step, self._config.max_steps)
                coefficients = self._coefficients(step)
                returns = self._include_waiting(self._include)
                prepared = self._prepare(self._rollout.drain(), self._sync)
                by_minibatch = self._learn(prepared, learning_rate, coefficients, should_continue)
                terms = means(by_minibatch, [1] * len(by_minibatch))  # ML-Agents averages over mini-batches, not rows
                if not (math.isfinite(terms[0]) and self._step.is_finite):
                    large = largest_observation(self._spec.observations, prepared.rollout.experience.observations)
                    raise NonFiniteError(f"the loss is not finite at step {step}{large}; {KEPT}")
                reported = self._streams.metrics()
        except BaseException:
            self._step.restore(before)
            self._streams.restore(signals)
            raise
        self._agents = prepared.agents
        self.num_updates += 1
        self._updated_at = step
        return metrics(terms) | {
            "Policy/Learning Rate": learning_rate,
            "Policy/Epsilon": coefficients.epsilon,
            "Policy/Beta": coefficients.beta,
            **self._streams.named(prepared.mean_values.tolist(), "Value Estimate"),
            **reported,
            **returns,
        }

    def loss(self, block: Trajectories) -> Metrics:
        """The losses of the current networks on this experience, with the coefficients of the last update."""
        coefficients = self._coefficients(self._updated_at)
        terms, counts = [], []
        with np.errstate(over="ignore", invalid="ignore"):
            prepared = self._prepare(Rollout.of([(block, self._streams.peek(block))]), ONE_RANK)
            for columns, sequences in minibatches(prepared.columns, self._hyper.batch_size, None, prepared.sequences):
                advantage = self._advantage(columns, ONE_RANK)
                loss = self._loss(*self._forward(columns, sequences, advantage), coefficients)
                terms.append(unsigned(terms_of(loss)))
                counts.append(len(advantage))
        return metrics(means(terms, counts))

    def _coefficients(self, step: int) -> Coefficients:
        hyper, end = self._hyper, self._config.max_steps
        epsilon = scheduled(hyper.epsilon_schedule, hyper.epsilon, min(MIN_EPSILON, hyper.epsilon), step, end)
        return Coefficients(
            epsilon=epsilon,
            beta=scheduled(hyper.beta_schedule, hyper.beta, min(MIN_BETA, hyper.beta), step, end),
            value=hyper.value_coefficient,
            value_clip=epsilon if hyper.value_clip == "epsilon" else hyper.value_clip,
            joint_ratio=hyper.joint_ratio,
        )

    def _prepare(self, rollout: Rollout, sync: Sync) -> PreparedRollout:
        """Prepare a rollout with estimates of the current networks. sync: with which ranks means are taken."""
        block = rollout.experience
        features = self._features(block.observations)
        estimates = self._estimator(features, self._features(block.next_observations), block, self._agents)
        columns = advantage_columns(rollout, estimates, self._streams, self._spec.actions.branches, self._hyper, sync)
        placed = {name: self._network.place(column) for name, column in columns.items()}
        placed |= {f"{FEATURES}{index}": feature for index, feature in enumerate(features)}
        return PreparedRollout(placed, estimates.sequences, sync.mean(estimates.values), estimates.agents, rollout)

    def _place(self, array: NDArray[Any]) -> Array:
        return self._network.place(array)

    def _learn(
        self,
        prepared: PreparedRollout,
        learning_rate: float,
        coefficients: Coefficients,
        should_continue: Callable[[], bool],
    ) -> list[Terms]:
        """Terms of every mini-batch of every pass; a pass that moved further than `target_kl` is the last."""
        terms: list[Terms] = []
        parts = num_parts(self._sync.sum(prepared.rollout.experience.num_rows), self._hyper.batch_size)
        for _ in range(self._hyper.num_epoch):
            learned, rows, may_continue = [], [], True
            for part, is_shared in self._plan(prepared, parts):
                learned.append(self._take_step(prepared, part, is_shared, learning_rate, coefficients))
                rows.append(len(part.rows))
                may_continue = self._sync.all(should_continue())
                if not may_continue:
                    break
            last = [unsigned(averaged) for averaged in self._sync.means(learned, rows)]
            terms += last
            target, divergences = self._hyper.target_kl, [term[DIVERGENCE] for term in last]
            if not may_continue or (target is not None and sum(divergences) > target * len(divergences)):
                break
        return terms

    def _plan(self, prepared: PreparedRollout, parts: int) -> list[tuple[Part, bool]]:
        """This rank's rows of every mini-batch of a pass, and whether every rank has some; those of none are left out.

        All ranks so have the same number of mini-batches, planned before the first one.
        """
        plan = split_rows(prepared.rollout.experience.num_rows, parts, self._random, prepared.sequences)
        of_ranks = self._sync.gather(np.array([len(part.rows) for part in plan], np.float64)).T.tolist()
        return [(part, all(rows)) for part, rows in zip(plan, of_ranks, strict=True) if any(rows)]

    def _take_step(
        self, prepared: PreparedRollout, part: Part, is_shared: bool, learning_rate: float, coefficients: Coefficients
    ) -> Terms:
        """Take one step by the rows of all ranks; returns the terms of this one's, zeros without any.

        is_shared: whether every rank has some; otherwise no hooks are called. Reward signals that learn are hooks.
        """
        columns = part.of(prepared.columns)
        custom = self._custom.functions
        terms: Terms = NO_TERMS + (0.0,) * bool(custom)
        advantage = self._advantage(columns, self._sync)
        sample = prepared.sample(part.rows, columns, advantage) if custom or self._train_step_hooks else None
        if len(part.rows):
            head, values, batch = self._forward(columns, part.sequences, advantage)
            loss = self._loss(head, values, batch, coefficients)
            if custom and sample is not None:
                terms = self._custom.backward(loss, head, values, batch, features_of(columns), sample)
            else:
                self._network.backward(loss.grad_head, loss.grad_values, loss.grad_log_sigma)
                terms = terms_of(loss)
        self._sync.average_gradients([self._network.gradient], len(part.rows))
        self._step(self._network.gradient, learning_rate)
        if sample is not None and is_shared:
            for hook in self._train_step_hooks:
                hook(TrainStep(self._spec.name, sample, metrics(unsigned(terms))))
        return terms

    def _advantage(self, columns: Columns, sync: Sync) -> Array:
        """f32[B], normalized if that is done for each mini-batch."""
        advantage = columns["advantage"]
        return normalized(advantage, sync) if self._hyper.normalize_advantage == "minibatch" else advantage

    def _forward(self, columns: Columns, sequences: Sequences | None, advantage: Array) -> tuple[Array, Array, Batch]:
        """The networks' outputs for these rows, and the rows."""
        head, values = self._network.forward(features_of(columns), sequences)
        batch = Batch(
            continuous=columns["continuous"],
            chosen=columns["chosen"],
            allowed=columns.get("allowed"),
            log_probs=columns["log_probs"],
            advantage=advantage,
            returns=columns["returns"],
            values=columns["values"],
        )
        return head, values, batch

    def _loss(self, head: Array, values: Array, batch: Batch, coefficients: Coefficients) -> Loss:
        """The loss of these rows, and its gradients with respect to the networks' outputs."""
        return surrogate_loss(head, values, self._network.log_sigma, batch, self._spec.actions, coefficients)

    def _actor_arrays(self) -> dict[str, Float32]:
        parameters = views(self._step.parameters(), self._network.shapes).items()
        return {name.removeprefix("actor."): array for name, array in parameters if name.startswith("actor.")}

    def _load_actor(self, arrays: Mapping[str, Float32]) -> None:
        self._step.overwrite({f"actor.{name}": array for name, array in arrays.items()})

    def state(self) -> State:
        """Networks, optimizer, normalizer, reward signals, shuffling.

        Without rows that wait for an update and memories of unfinished episodes: environments restart. Of several ranks
        only the generator differs: the state of rank 0 is the one to save, and every rank loads it.
        """
        parts = {"network": self._step.state(), "shuffling": generator_state(self._random)}
        parts["trainer"] = State({}, {"num_updates": self.num_updates, "updated_at": self._updated_at})
        return State.merge(parts | self._shared_state())

    def load(self, state: State) -> None:
        """Restore `state` and drop the rows that wait for an update."""
        self._rollout = RolloutBuffer()
        self._agents = AgentState.empty(self._agents.columns.shape[1], np.float32)
        self._step.load(state.part("network"))
        load_generator(self._random, state.part("shuffling"), self._sync.rank)
        self._load_shared(state)
        counts = state.part("trainer")
        self.num_updates, self._updated_at = int(counts.number("num_updates")), int(counts.number("updated_at"))
