"""What every trainer of one actor does alike: normalized features, reward streams, live hyperparameters, the policy.

Shapes: N rows of a block, S reward streams.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from rl_tui.engine.config.behavior import BehavioralCloningSettings, BehaviorConfig
from rl_tui.engine.config.changeable import require_changeable
from rl_tui.engine.config.hyperparameters import Hyperparameters
from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.errors import NotSupportedError
from rl_tui.engine.experience import join_by_agent
from rl_tui.engine.learning.actor_module import ActorModule
from rl_tui.engine.learning.cloning.behavioral_cloning import BehavioralCloning
from rl_tui.engine.learning.cloning.imitation import ClonedActor
from rl_tui.engine.learning.demonstrations import Demonstrations
from rl_tui.engine.learning.feature_layout import FeatureLayout, Features
from rl_tui.engine.learning.given_weights import GivenWeights, require_weights
from rl_tui.engine.learning.networks.actor import Actor
from rl_tui.engine.learning.networks.flat import FlatPart
from rl_tui.engine.learning.networks.normalizer import Normalizer
from rl_tui.engine.learning.policies import CPU, make_policy
from rl_tui.engine.learning.policy_copies import MakePolicy
from rl_tui.engine.learning.policy_module import PolicyModule
from rl_tui.engine.learning.rewards.streams import RewardStreams
from rl_tui.engine.learning.sync import ONE_RANK, Sync
from rl_tui.engine.learning.train_step import TrainStepHook
from rl_tui.engine.learning.trainer import Metrics, Samples, Trainer, require_finite
from rl_tui.engine.learning.value_function import ValueFunction, Values, no_values
from rl_tui.engine.specs import BehaviorSpec, Float32, Observations, Policy, State, Trajectories, Weights

Array: TypeAlias = Any  # numpy array on the CPU, torch tensor elsewhere
H = TypeVar("H", bound=Hyperparameters)


class ActorTrainer(Trainer, Generic[H]):
    """Owns what is named above, and a random generator. A trainer derives from it and adds networks and `update`.

    On several ranks, blocks arrive at different times: they wait for the update, where all ranks evaluate theirs
    together.

    actor_prefix: what precedes the names of `Actor`'s parameters in `state()`, so that the policy can be made from a
    saved state alone. A subclass does not inherit it, since it may act otherwise.
    """

    actor_prefix: ClassVar[str] = ""

    def __init__(
        self,
        hyper: H,
        spec: BehaviorSpec,
        config: BehaviorConfig,
        seed: int,
        device: torch.device,
        sync: Sync = ONE_RANK,
    ):
        """seed: the same on all ranks; so are the first weights, which are drawn from `_random`."""
        self._hyper, self._spec, self._config, self._sync = hyper, spec, config, sync
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._streams = RewardStreams(spec, config, seed, device, sync)
        self._waiting: list[Trajectories] = []  # blocks, on several ranks
        self._layout = FeatureLayout.of(spec.observations, config.network_settings)
        is_normalized = config.network_settings.normalize and self._layout.columns > 0
        self._normalizer = Normalizer(self._layout.columns, sync) if is_normalized else None
        self.time_horizon = config.time_horizon
        self.num_updates = 0
        self._train_step_hooks: list[TrainStepHook] = []
        self._cloning: BehavioralCloning | None = None  # see `_make_cloning`
        self._acting_device = CPU

    @abstractmethod
    def _place(self, array: np.ndarray[Any, Any]) -> Array:
        """The array on the device of the networks."""

    @abstractmethod
    def _actor_arrays(self) -> dict[str, Float32]:
        """A copy of the parameters of `Actor` by name."""

    def _load_actor(self, arrays: Mapping[str, Float32]) -> None:  # a trainer of a package may lack it
        """Set what `_actor_arrays` has."""
        raise NotSupportedError(f"{type(self).__name__} cannot load weights")

    def hyperparameters(self) -> dict[str, float]:
        """The changeable ones that are in use, and those of reward signals; schedules start from them."""
        return self._hyper.changeable_values() | self._streams.changeable_values()

    def set_hyperparameter(self, name: str, value: float) -> None:
        """Use that value from the next update on. Raises ConfigError."""
        require_changeable(name, self.hyperparameters())
        if name in self._streams.changeable_values():
            self._streams.set_value(name, value)
        else:
            self._hyper = self._hyper.with_value(name, value)

    def on_train_step(self, hook: TrainStepHook) -> None:
        """Call the hook after every gradient step from now on; what it raises ends the update."""
        self._train_step_hooks.append(hook)

    def use_demonstrations(self, demonstrations: Mapping[str, Demonstrations]) -> None:
        """See Trainer."""
        self._streams.use_demonstrations(demonstrations)
        if self._config.behavioral_cloning is None:
            return
        if self._cloning is None:
            raise NotSupportedError(f"{type(self).__name__} has no behavioral cloning")
        self._cloning.use(demonstrations)

    def _make_cloning(
        self, settings: BehavioralCloningSettings, actor: Actor, flat: FlatPart, batch_size: int, seed: int
    ) -> BehavioralCloning:
        """What `behavioral_cloning` asks for. A subclass with an actor assigns it to `_cloning` where that is not null,
        and calls `_clone` where the actor is to learn from demonstrations.

        flat: the actor's parameters. batch_size, seed: of the trainer.
        """
        memory = self._config.network_settings.memory
        own_seed = np.random.SeedSequence(seed, spawn_key=(0,))  # apart from the generator of the trainer
        longest = memory.sequence_length if memory else 1
        return BehavioralCloning(settings, self._cloned(actor, flat), batch_size, longest, own_seed, self._sync)

    def _cloned(self, actor: Actor, flat: FlatPart) -> ClonedActor:
        return ClonedActor(actor, flat, partial(self._layout.split, normalize=self._normalizer))

    def _clone(self, learning_rate: float, step: int, should_continue: Callable[[], bool]) -> Metrics:
        """Let the actor learn from demonstrations, wholly or not at all. Raises NonFiniteError, DemonstrationError."""
        if self._cloning is None:
            return {}
        with self._cloning.undoing():
            return self._cloning.update(learning_rate, step, should_continue)

    def _undoing_cloning(self) -> AbstractContextManager[None]:
        """What raises in here leaves the actor and its cloning as they were."""
        return nullcontext() if self._cloning is None else self._cloning.undoing()

    def _differ_by_rank(self, seed: int) -> None:
        """From now on, each of several ranks draws other numbers; to be called once there are weights."""
        if self._sync.size > 1:
            self._random = np.random.Generator(np.random.PCG64(self._sync.seed(seed)))

    def _include_now(self, block: Trajectories, include: Callable[[Trajectories], Samples]) -> Samples:
        """What `include` returns for a new block; on several ranks nothing yet, and the block waits."""
        if self._sync.size == 1:
            return include(block)
        self._waiting.append(block)
        return {}

    def _include_waiting(self, include: Callable[[Trajectories], Samples]) -> Metrics:
        """Include the blocks that wait as one, while other ranks do; the means of the samples that `include` returns.

        What each rank returns is of its own blocks.
        """
        if self._sync.size == 1:
            return {}
        blocks, self._waiting = self._waiting, []
        samples = include(join_by_agent(blocks))
        return {tag: math.fsum(numbers) / len(numbers) for tag, numbers in samples.items()}

    @property
    def _num_waiting(self) -> int:
        """Rows of the blocks that wait."""
        return sum(block.num_rows for block in self._waiting)

    @contextmanager
    def _undoing_statistics(self) -> Iterator[None]:
        """What raises in here leaves normalizer and reward signals as before, without unfinished episodes.

        On one rank it leaves them as they are: `add` has changed them before.
        """
        if self._sync.size == 1:
            yield
            return
        normalizer = None if self._normalizer is None else self._normalizer.state()
        signals = self._streams.snapshot_of_all()
        try:
            yield
        except BaseException:
            if self._normalizer is not None and normalizer is not None:
                self._normalizer.load(normalizer)
            self._streams.restore(signals)
            self._streams.forget_episodes()
            self._waiting = []
            raise

    def _agreed_step(self, step: int) -> int:
        """The step of rank 0, for schedules."""
        return step if self._sync.size == 1 else int(self._sync.gather(np.array([step], np.float64))[0, 0])

    def _evaluate(self, block: Trajectories) -> Float32:
        """f32[N, S]: what each stream pays for a new block; the normalizer includes it. Raises NonFiniteError."""
        require_finite(block)
        if self._normalizer is not None:
            self._normalizer.update(self._layout.vectors(block.observations))
        return self._streams.evaluate(block)

    def _features(self, observations: Observations) -> Features:
        """Normalized, on the device of the networks; images stay unscaled."""
        return tuple(map(self._place, self._layout.split(observations, self._normalizer)))

    def make_policy(self, seed: int, is_greedy: bool = False) -> Policy:
        """A new policy that acts with `weights()`; those of several ranks draw other actions.

        A class that defines its own also defines `policy_module`, if exports are to act as it does.
        """
        policy = make_policy(*self._actor_settings, self._sync.seed(seed), is_greedy, self._acting_device)
        policy.load(self.weights())
        return policy

    def act_on(self, device: torch.device) -> None:
        """See Trainer."""
        self._acting_device = device

    def policy_maker(self, seed: int) -> MakePolicy:
        """See Trainer. Nothing is kept where `make_policy` is the one above."""
        return partial(make_policy, *self._actor_settings, seed) if self._acts else super().policy_maker(seed)

    def policy_module(self) -> PolicyModule:
        """See Trainer."""
        return ActorModule(*self._actor_settings) if self._acts else super().policy_module()

    @property
    def _acts(self) -> bool:
        """Whether its policies are those of an `Actor`."""
        return type(self).make_policy is ActorTrainer.make_policy

    @property
    def _actor_settings(self) -> tuple[BehaviorSpec, NetworkSettings, bool]:
        return self._spec, self._config.network_settings, self._hyper.squashes_actions

    def _value_function(
        self,
        make: Callable[[np.random.Generator], nn.Module],
        read: Callable[[Any, Features], Tensor],
        arrays: Mapping[str, Float32],
    ) -> Values:
        """Of a network with these parameters."""
        if self._config.network_settings.memory is not None:
            return no_values(f"{self._spec.name}: a critic with memory has no values of single observations")
        to_features = partial(self._layout.split, normalize=copy.deepcopy(self._normalizer))
        return ValueFunction(make, read, arrays, to_features)

    def weights(self) -> Weights:
        """The parameters of `Actor` by name, and the normalizer's."""
        normalizer = {} if self._normalizer is None else self._normalizer.arrays()
        return Weights(self.num_updates, self._actor_arrays() | normalizer)

    def load_weights(self, arrays: GivenWeights, num_rows: int = 0) -> None:
        """See Trainer. Critics and the optimizer's moments stay."""
        given = require_weights(arrays, self.weights().arrays)
        if self._normalizer is not None:
            self._normalizer.load_arrays(given.pop("normalizer.mean"), given.pop("normalizer.scale"), num_rows)
        self._load_actor(given)

    def _shared_state(self) -> dict[str, State]:
        """The parts of the state that every trainer has: normalizer, reward signals, and behavioral cloning."""
        normalizer = {} if self._normalizer is None else {"normalizer": self._normalizer.state()}
        cloning = {} if self._cloning is None else {"behavioral_cloning": self._cloning.state()}
        return normalizer | self._streams.state() | cloning

    def _load_shared(self, state: State) -> None:
        """Restore what `_shared_state` has, and drop the blocks that wait."""
        self._waiting = []
        if self._normalizer is not None:
            self._normalizer.load(state.part("normalizer"))
        self._streams.load(state)
        if self._cloning is not None:
            self._cloning.load(state.part("behavioral_cloning"))
