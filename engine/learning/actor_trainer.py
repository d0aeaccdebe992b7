"""What every trainer of one actor does alike: normalized features, reward streams, live hyperparameters, the policy.

Shapes: N rows of a block, S reward streams.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.hyperparameters import Hyperparameters
from rl_tui.engine.learning.feature_layout import FeatureLayout, Features
from rl_tui.engine.learning.networks.normalizer import Normalizer
from rl_tui.engine.learning.policies import make_policy
from rl_tui.engine.learning.rewards.streams import RewardStreams
from rl_tui.engine.learning.train_step import TrainStepHook
from rl_tui.engine.learning.trainer import Trainer, require_finite
from rl_tui.engine.specs import BehaviorSpec, Float32, Observations, Policy, State, Trajectories, Weights

Array: TypeAlias = Any  # numpy array on the CPU, torch tensor elsewhere
H = TypeVar("H", bound=Hyperparameters)


class ActorTrainer(Trainer, Generic[H]):
    """Owns what is named above, and a random generator. A trainer derives from it and adds networks and `update`."""

    def __init__(self, hyper: H, spec: BehaviorSpec, config: BehaviorConfig, seed: int, device: torch.device):
        self._hyper, self._spec, self._config = hyper, spec, config
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._streams = RewardStreams(spec, config, seed, device)
        self._layout = FeatureLayout(spec.observations)
        is_normalized = config.network_settings.normalize and self._layout.columns > 0
        self._normalizer = Normalizer(self._layout.columns) if is_normalized else None
        self.time_horizon = config.time_horizon
        self.num_updates = 0
        self._train_step_hooks: list[TrainStepHook] = []

    @abstractmethod
    def _place(self, array: np.ndarray[Any, Any]) -> Array:
        """The array on the device of the networks."""

    @abstractmethod
    def _actor_arrays(self) -> dict[str, Float32]:
        """A copy of the parameters of `Actor` by name."""

    def hyperparameters(self) -> dict[str, float]:
        """The changeable ones that are in use; schedules start from them."""
        return self._hyper.changeable_values()

    def set_hyperparameter(self, name: str, value: float) -> None:
        """Use that value from the next update on. Raises ConfigError."""
        self._hyper = self._hyper.with_value(name, value)

    def on_train_step(self, hook: TrainStepHook) -> None:
        """Call the hook after every gradient step from now on; what it raises ends the update."""
        self._train_step_hooks.append(hook)

    def _evaluate(self, block: Trajectories) -> Float32:
        """f32[N, S]: what each stream pays for a new block; the normalizer includes it. Raises NonFiniteError."""
        require_finite(block)
        if self._normalizer is not None:
            self._normalizer.update(self._layout.vectors(block.observations))
        return self._streams.evaluate(block)

    def _features(self, observations: Observations) -> Features:
        """Normalized, on the device of the networks; images stay unscaled."""
        return tuple(map(self._place, self._layout.split(observations, self._normalizer)))

    def make_policy(self, seed: int) -> Policy:
        """A new policy that acts with `weights()`."""
        policy = make_policy(self._spec, self._config.network_settings, self._hyper.squashes_actions, seed)
        policy.load(self.weights())
        return policy

    def weights(self) -> Weights:
        """The parameters of `Actor` by name, and the normalizer's."""
        normalizer = {} if self._normalizer is None else self._normalizer.arrays()
        return Weights(self.num_updates, self._actor_arrays() | normalizer)

    def _shared_state(self) -> dict[str, State]:
        """The parts of the state that every trainer has: normalizer and reward signals."""
        normalizer = {} if self._normalizer is None else {"normalizer": self._normalizer.state()}
        return normalizer | self._streams.state()

    def _load_shared(self, state: State) -> None:
        """Restore what `_shared_state` has."""
        if self._normalizer is not None:
            self._normalizer.load(state.part("normalizer"))
        self._streams.load(state)
