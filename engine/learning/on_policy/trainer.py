"""The update of every on-policy algorithm with mini-batches: what happens round its loss.

Shapes: N rows of a rollout, B rows of a mini-batch, R reward streams.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.errors import NonFiniteError
from rl_tui.engine.learning.actor_trainer import ActorTrainer
from rl_tui.engine.learning.agent_state import AgentState
from rl_tui.engine.learning.distributions import one_hot
from rl_tui.engine.learning.feature_layout import Features
from rl_tui.engine.learning.joint_steps import JointExperience, NextJointSteps, goes_on_without
from rl_tui.engine.learning.large_observations import largest_observation
from rl_tui.engine.learning.loss_inputs import CustomLoss
from rl_tui.engine.learning.networks.flat import FlatPart, placed_together, views
from rl_tui.engine.learning.on_policy import added_terms
from rl_tui.engine.learning.on_policy.actor_critic import ActorCritic, Outputs, make_actor_critic
from rl_tui.engine.learning.on_policy.added_terms import AddedTerm
from rl_tui.engine.learning.on_policy.custom_loss import CustomLosses
from rl_tui.engine.learning.on_policy.loss import DIVERGENCE, Loss, Terms, means, means_and_number, metrics, unsigned
from rl_tui.engine.learning.on_policy.minibatches import Part, num_parts, placed_parts, split_rows
from rl_tui.engine.learning.on_policy.networks import ActorCriticModule
from rl_tui.engine.learning.on_policy.prepared import Minibatch, PreparedRollout
from rl_tui.engine.learning.on_policy.rollout import Rollout, RolloutBuffer
from rl_tui.engine.learning.on_policy.settings import OnPolicySettings
from rl_tui.engine.learning.optimization import AdamState, GradientStep
from rl_tui.engine.learning.random_generators import generator_state, load_generator
from rl_tui.engine.learning.schedules import scheduled_learning_rate
from rl_tui.engine.learning.sync import ONE_RANK, Sync
from rl_tui.engine.learning.train_step import TrainStep
from rl_tui.engine.learning.trainer import Metrics, Samples, always
from rl_tui.engine.learning.value_estimates import Critic, GroupCritic, ValueEstimates, ValueEstimator
from rl_tui.engine.learning.value_function import Values
from rl_tui.engine.specs import BehaviorSpec, Float32, State, Trajectories

Array: TypeAlias = Any  # numpy array on the CPU, torch tensor elsewhere
S = TypeVar("S", bound=OnPolicySettings)
C = TypeVar("C")  # coefficients of a loss, fixed during an update
ROWS_OF_VECTORS = 2048  # per call of the critic: they are small, and a memory reads many sequences in the time of one
PASSES_AT_ONCE = 16  # planned together, with which ranks exchange once for all, and a GPU gets the rows of all
ACTOR = "network.parameters.actor."  # the `actor_prefix` of a trainer whose policies are those of an `Actor`
KEPT = "the state before this update was kept"


class OnPolicyTrainer(ActorTrainer[S], Generic[S, C]):
    """Owns networks, optimizer, rollout and critic memories; its generator shuffles.

    A trainer derives from it and defines what the columns of a rollout are, the coefficients and the loss of a
    mini-batch, with its gradients for the networks' outputs; further terms of the loss are left to autograd. Passes
    over mini-batches, several ranks, hooks, custom losses, undoing and numbers that are not finite are seen to here.

    tags: of the terms of `_loss`. The parameters of the actor are saved as `ACTOR` + their names.
    """

    is_on_policy = True
    tags: ClassVar[tuple[str, ...]]

    def __init__(
        self, spec: BehaviorSpec, config: BehaviorConfig, seed: int, device: torch.device, sync: Sync = ONE_RANK
    ):
        hyper, memory = config.hyperparameters, config.network_settings.memory
        assert isinstance(hyper, OnPolicySettings)
        super().__init__(hyper, spec, config, seed, device, sync)  # type: ignore[arg-type]  # S is the trainer's own
        self._network = self._make_network(device)
        self._custom = CustomLosses(spec)
        self._differ_by_rank(seed)
        self._step = GradientStep(self._network, hyper.adam_epsilon, hyper.max_grad_norm)
        rows_per_call = max(hyper.batch_size, ROWS_OF_VECTORS if self._layout.has_only_vectors else 1)
        self._estimator = ValueEstimator(
            self._critic, memory, rows_per_call, self._has_shared_critic, self._num_critic_memories
        )
        self._agents = AgentState.empty(self._estimator.memory_size, np.float32)
        if (cloning := config.behavioral_cloning) is not None:
            network = self._network
            of_actor = FlatPart.of(network.parameters, network.gradient, network.shapes, "actor.")
            self._cloning = self._make_cloning(cloning, network.networks.actor, of_actor, hyper.batch_size, seed)
        self._rollout = RolloutBuffer()
        self._updated_at = 0  # step
        if (streams := self._streams).learn:
            self.on_train_step(lambda step: streams.update(step.sample))
        self.rows_per_update = math.ceil(hyper.buffer_size * sync.share)
        self.num_parameters = self._step.num_parameters + self._streams.num_parameters

    @abstractmethod
    def _columns(self, rollout: Rollout, estimates: ValueEstimates, sync: Sync) -> Mapping[str, NDArray[Any]]:
        """The columns [N, ...] of `Minibatch`, and any others. sync: with which ranks means are taken."""

    @abstractmethod
    def _coefficients(self, step: int) -> C:
        """Of the loss, in an update at this step."""

    @abstractmethod
    def _loss(self, outputs: Outputs, minibatch: Minibatch, coefficients: C) -> Loss:
        """The loss of these rows, given the networks' outputs for them."""

    def _added_terms(self, coefficients: C) -> Sequence[AddedTerm]:
        """Terms that autograd differentiates, as many in every mini-batch of an update."""
        return ()

    def _completed(self, prepared: PreparedRollout, parts: Sequence[Part], sync: Sync) -> Sequence[Part]:
        """With the columns that are computed over the rows that all ranks have of each; this rank may have none."""
        return parts

    def _reported(self, coefficients: C) -> Metrics:
        """Coefficients by tag."""
        return {}

    def _begin_update(self, rollout: Rollout) -> None:
        """What the trainer keeps of these rows, before anything is estimated with them."""

    def _mean_estimates(self, means: list[float]) -> Metrics:
        """The means of the critic's estimates, by tag."""
        return self._streams.named(means, "Value Estimate")

    def _outputs(self, minibatch: Minibatch) -> Outputs:
        """What the networks return for these rows."""
        return self._network.forward(minibatch.features, minibatch.sequences)

    @property
    def _has_shared_critic(self) -> bool:
        """Whether the critic is a head on the actor's body."""
        return False

    @property
    def _num_critic_memories(self) -> int:
        """How many memories of an agent the critic keeps, each as large as the actor's."""
        return 1

    def _make_network(self, device: torch.device) -> ActorCritic:
        """Actor and critic, whose first weights are drawn from `_random`."""
        activation = self._config.network_settings.activation
        return make_actor_critic(self._make_module(self._random), self._layout, activation, device)

    @property
    def _critic(self) -> Critic | GroupCritic:
        """What estimates values."""
        return self._network

    @property
    def _make_module(self) -> Callable[[np.random.Generator], ActorCriticModule]:
        return partial(
            ActorCriticModule,
            layout=self._layout,
            actions=self._spec.actions,
            network=self._config.network_settings,
            num_streams=len(self._streams),
            is_shared=self._has_shared_critic,
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
        return self._value_function(self._make_module, lambda networks, features: networks.value(features)[0], arrays)

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
        with self._wholly_or_not_at_all():
            step = self._agreed_step(step)
            learning_rate = scheduled_learning_rate(self._hyper, step, self._config.max_steps)
            coefficients = self._coefficients(step)
            returns = self._include_waiting(self._include)
            rollout = self._rollout.drain()
            self._begin_update(rollout)
            prepared = self._prepare(rollout, self._sync)
            by_minibatch = self._learn(prepared, learning_rate, coefficients, should_continue)
            weights = [1] * len(by_minibatch)  # ML-Agents averages over mini-batches, not rows
            terms, finite = means_and_number(by_minibatch, weights, self._step.finite)
            self._require_finite(math.isfinite(terms[0]) and finite > 0, prepared, step)
            cloning = self._clone(self._hyper.learning_rate, step, should_continue)
            reported = self._streams.metrics()
        self._agents = prepared.agents
        self.num_updates += 1
        self._updated_at = step
        return self._metrics(terms, self._terms(coefficients)) | {
            "Policy/Learning Rate": learning_rate,
            **self._reported(coefficients),
            **self._mean_estimates(prepared.mean_values.tolist()),
            **cloning,
            **reported,
            **returns,
        }

    @contextmanager
    def _wholly_or_not_at_all(self) -> Iterator[None]:
        """The calls of one update. What raises in here, on any rank, leaves everything but the rows as it was."""
        before, signals = self._step.snapshot(), self._streams.snapshot()
        overflow_is_reported = np.errstate(over="ignore", invalid="ignore")
        try:
            with (
                overflow_is_reported,
                self._undoing_statistics(),
                self._undoing_cloning(),
                self._sync.together(KEPT),
            ):
                yield
        except BaseException:
            self._step.restore(before)
            self._streams.restore(signals)
            raise

    def _require_finite(self, is_finite: bool, prepared: PreparedRollout, step: int) -> None:
        """Raise NonFiniteError unless the loss and what was learned are finite."""
        if not is_finite:
            large = largest_observation(self._spec.observations, prepared.rollout.experience.observations)
            raise NonFiniteError(f"the loss is not finite at step {step}{large}; {KEPT}")

    def loss(self, block: Trajectories) -> Metrics:
        """The losses of the current networks on this experience, with the coefficients of the last update."""
        coefficients = self._coefficients(self._updated_at)
        added, found, counts = self._added_terms(coefficients), [], []
        values: Sequence[Array] = ()
        with np.errstate(over="ignore", invalid="ignore"):
            prepared = self._prepare(Rollout.of([(block, self._streams.peek(block))]), ONE_RANK)
            split = self._split(prepared, num_parts(prepared.num_rows, self._hyper.batch_size), None)
            parts = [part for part in split if len(part.rows)]
            for part in self._completed(prepared, parts, ONE_RANK):
                minibatch = prepared.minibatch(part)
                outputs = self._outputs(minibatch)
                loss = self._loss(outputs, minibatch, coefficients)
                if added:
                    loss, values = added_terms.with_added(loss, outputs, minibatch, added)
                found.append(unsigned(loss.read(self.tags, values), self.tags))
                counts.append(len(part.rows))
        return self._metrics(means(found, counts), added)

    def _prepare(self, rollout: Rollout, sync: Sync) -> PreparedRollout:
        """Prepare a rollout with estimates of the current networks. sync: with which ranks means are taken."""
        block = rollout.experience
        observed, after = (
            self._layout.split(each, self._normalizer) for each in (block.observations, block.next_observations)
        )
        arrived = self._place_all([*observed, *after])
        features, following = tuple(arrived[: len(observed)]), tuple(arrived[len(observed) :])
        joint, next_joint = self._joint_steps(rollout, features), self._next_joint_steps(block, following)
        estimates = self._estimator(features, following, block, self._agents, joint, next_joint)
        columns = self._columns(rollout, estimates, sync)
        columns = dict(zip(columns, self._place_all(list(columns.values())), strict=True))
        mean_values = sync.mean(estimates.values)
        return PreparedRollout(rollout, features, columns, estimates.sequences, mean_values, estimates.agents, joint)

    def _joint_steps(self, rollout: Rollout, features: Features) -> JointExperience | None:
        """Those of these rows, for a critic that sees mates."""
        if not self._estimator.sees_mates:
            return None
        block = rollout.experience
        chosen = one_hot(block.discrete_actions, self._spec.actions.branches)
        actions = np.concatenate([block.continuous_actions, chosen], axis=1)
        return JointExperience(rollout.joint_steps, features, self._place(actions))

    def _next_joint_steps(self, block: Trajectories, following: Features) -> NextJointSteps | None:
        """Those after the segments, for a critic that sees mates. following: of the segments' own agents."""
        if not self._estimator.sees_mates:
            return None
        observations, counts = block.next_mate_observations, block.next_mate_counts
        if observations is None or counts is None:
            no_mates = np.zeros(block.num_segments, np.int64)
            return NextJointSteps(tuple(column[:0] for column in following), no_mates, no_mates == 0)
        return NextJointSteps(self._features(observations), counts, ~goes_on_without(block))

    def _learn(
        self,
        prepared: PreparedRollout,
        learning_rate: float,
        coefficients: C,
        should_continue: Callable[[], bool],
    ) -> list[Terms]:
        """Terms of every mini-batch of every pass; a pass that moved further than `target_kl` is the last."""
        terms, rows, may_continue = list[Terms](), list[int](), True
        for parts in self._passes(prepared):
            begin = len(terms)
            for part in parts:
                may_continue = should_continue()
                own, may_continue = self._take_step(prepared, part, learning_rate, coefficients, may_continue)
                terms.append(own)
                rows.append(len(part.rows))
                if not may_continue:
                    break
            if not may_continue or self._moved_too_far(terms[begin:], rows[begin:]):
                break
        return self._averaged(terms, rows)

    def _moved_too_far(self, terms: Sequence[Terms], rows: Sequence[int]) -> bool:
        """Whether the policy moved further than `target_kl` in these mini-batches."""
        target = self._hyper.target_kl
        if target is None:
            return False
        divergences = [self._metrics(of)[DIVERGENCE] for of in self._averaged(terms, rows)]
        return bool(sum(divergences) > target * len(divergences))

    def _averaged(self, terms: Sequence[Terms], rows: Sequence[int]) -> list[Terms]:
        """Those of mini-batches, over the rows that all ranks have of each."""
        return [unsigned(averaged, self.tags) for averaged in self._sync.means(terms, rows)]

    def _passes(self, prepared: PreparedRollout) -> Iterator[list[Part]]:
        """The mini-batches of every pass, some passes planned together."""
        number = num_parts(self._sync.sum(prepared.num_rows), self._hyper.batch_size)
        for planned in range(0, self._hyper.num_epoch, PASSES_AT_ONCE):
            yield from self._plan(prepared, number, min(PASSES_AT_ONCE, self._hyper.num_epoch - planned))

    def _plan(self, prepared: PreparedRollout, number: int, num_passes: int) -> list[list[Part]]:
        """This rank's rows of so many mini-batches of each of some passes; those without any rows are left out.

        All ranks so have the same mini-batches, and exchange what is computed of them before the first one.
        """
        splits = [self._split(prepared, number, self._random) for _ in range(num_passes)]
        counts = np.array([len(part.rows) for split in splits for part in split], np.float64)
        of_ranks = iter(self._sync.gather(counts).T.tolist())
        passes = [
            [replace(part, is_shared=all(rows)) for part in split if any(rows := next(of_ranks))] for split in splits
        ]
        parts = [part for each in passes for part in each]
        if isinstance(parameters := self._network.parameters, Tensor) and parameters.device.type != "cpu":
            parts = placed_parts(parts, parameters.device)
        completed = iter(self._completed(prepared, parts, self._sync))
        return [list(islice(completed, len(each))) for each in passes]

    def _split(self, prepared: PreparedRollout, parts: int, random: np.random.Generator | None) -> list[Part]:
        """One pass; see `split_rows`. Joint steps stay whole, since their agents share most of the computation."""
        joint = None if prepared.joint is None else prepared.joint.steps.of_rows
        return split_rows(prepared.num_rows, parts, random, prepared.sequences, joint)

    def _take_step(
        self, prepared: PreparedRollout, part: Part, learning_rate: float, coefficients: C, may_continue: bool
    ) -> tuple[Terms, bool]:
        """Take one step by the rows of all ranks; returns the terms of this one's, zeros without any, and whether all
        ranks may continue.

        Hooks are called where every rank has some. Reward signals that learn are hooks.
        """
        added = self._terms(coefficients)
        terms: Terms = (0.0,) * (1 + len(self.tags) + len(added))
        minibatch = prepared.minibatch(part)
        if len(part.rows):
            terms = self._backward(minibatch, coefficients, added)
        may_continue = self._sync.average_gradients([self._network.gradient], len(part.rows), may_continue)
        self._step(self._network.gradient, learning_rate)
        if self._train_step_hooks and part.is_shared:
            step = TrainStep(self._spec.name, minibatch.sample, self._metrics(unsigned(terms, self.tags), added))
            for hook in self._train_step_hooks:
                hook(step)
        return terms, may_continue

    def _backward(self, minibatch: Minibatch, coefficients: C, added: Sequence[AddedTerm]) -> Terms:
        """The terms of these rows, with the gradient of their loss in the network's."""
        outputs = self._outputs(minibatch)
        loss = self._loss(outputs, minibatch, coefficients)
        if not added:
            self._network.backward(loss.gradients)
            return loss.read(self.tags)
        loss, values = added_terms.backward(self._network, loss, outputs, minibatch, added)
        return loss.read(self.tags, values)

    def _terms(self, coefficients: C) -> Sequence[AddedTerm]:
        """The trainer's own ones, and the user's."""
        return (*self._added_terms(coefficients), *self._custom.terms())

    def _metrics(self, terms: Terms, added: Sequence[AddedTerm] = ()) -> dict[str, Any]:
        return metrics(terms, (*self.tags, *[term.tag for term in added]))

    def _place(self, array: NDArray[Any]) -> Array:
        return self._network.place(array)

    def _place_all(self, arrays: Sequence[NDArray[Any]]) -> list[Array]:
        """`_place` of each, in one copy to a GPU."""
        parameters = self._network.parameters
        if isinstance(parameters, Tensor) and parameters.device.type == "cuda":
            return list(placed_together(arrays, parameters.device, parameters.dtype))
        return [self._place(array) for array in arrays]

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
