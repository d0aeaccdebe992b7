"""What all reward signals with a network of their own have in common.

Shapes: N rows of a block, B steps, C columns of an action.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from rl_tui.engine.config.reward_signals import RewardSignalSettings
from rl_tui.engine.learning.distributions import one_hot
from rl_tui.engine.learning.feature_layout import FeatureLayout, Features
from rl_tui.engine.learning.networks.flat import FlatParameters
from rl_tui.engine.learning.networks.normalizer import Normalizer
from rl_tui.engine.learning.optimization import GradientStep, Snapshot
from rl_tui.engine.learning.random_generators import generator_state, load_generator
from rl_tui.engine.learning.rewards.base import Numbers, RewardContext, RewardSignal
from rl_tui.engine.learning.rewards.settings import LearnedSettings
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.specs import Float32, Observations, State, Trajectories

S = TypeVar("S", bound=LearnedSettings)
N = TypeVar("N", bound=nn.Module)
ADAM_EPSILON = 1e-8
ROWS_OF_VECTORS, ROWS_OF_IMAGES = 2048, 256  # that are evaluated at once: a convolution needs much memory


@dataclass(frozen=True, slots=True)
class LearnedSnapshot:
    """A copy of what a signal changes while it learns, networks on their device. generator: as numpy has its state."""

    step: Snapshot
    buffers: list[Tensor]
    generator: Mapping[str, Any]
    normalizer: State | None


class LearnedSignal(RewardSignal, ABC, Generic[S, N]):
    """Owns a network, its optimizer (Adam), a generator, and a normalizer if its `network_settings` have `normalize`.

    A signal derives from it and defines `make_network`, `rewards` and `loss`. These use `settings`, of which the
    changeable ones may have changed since the last update; `context`; `layout`, that of `features`; `network`; and
    `random`, of which every rank has another one once the network is made. Parameters of the network that require no
    gradient stay as they are; `loss` may change buffers in place. All of it is saved.
    """

    def __init__(self, settings: S, context: RewardContext):
        """Raises ConfigError for settings that do not fit the behavior."""
        self.settings, self.context = settings, context
        self.layout = FeatureLayout.of(context.spec.observations, settings.network_settings)
        is_normalized = settings.network_settings.normalize and self.layout.columns > 0
        self._normalizer = Normalizer(self.layout.columns, context.sync) if is_normalized else None
        self.random = np.random.Generator(np.random.PCG64(context.seed))
        self.network = self.make_network()
        if context.sync.size > 1:
            self.random = np.random.Generator(np.random.PCG64(context.sync.seed(context.seed)))
        self._trained = FlatParameters(self.network, context.device, only_trained=True)
        self._step = GradientStep(self._trained, ADAM_EPSILON, None)

    @abstractmethod
    def make_network(self) -> N:
        """A new network, with parameters drawn from `random` alone. Called once, by the constructor."""

    @abstractmethod
    def rewards(self, transitions: Transitions) -> Tensor:
        """f32[B]: what `evaluate_transitions` returns, on the network's device. Called without gradients."""

    @abstractmethod
    def loss(self, transitions: Transitions) -> tuple[Tensor, Numbers]:
        """The loss, f32[], a mean over these steps, and metrics."""

    def features(self, observations: Observations) -> Features:
        """Normalized where that is done, on the network's device; images stay unscaled."""
        return tuple(map(self._trained.place, self.layout.split(observations, self._normalizer)))

    def actions(self, transitions: Transitions) -> Tensor:
        """f32[B, C] on the network's device: continuous actions, then a 1 for the choice of each branch among zeros."""
        chosen = one_hot(transitions.discrete_actions, self.context.spec.actions.branches)
        return self._trained.place(np.concatenate([transitions.continuous_actions, chosen], 1))

    @property
    def num_parameters(self) -> int:
        """How many numbers it trains."""
        return self._step.num_parameters

    def evaluate(self, block: Trajectories) -> Float32:
        """f32[N]; the normalizer includes the block. All ranks call it together."""
        if self._normalizer is not None:
            self._normalizer.update(self.layout.vectors(block.observations))
        size = ROWS_OF_VECTORS if self.layout.has_only_vectors else ROWS_OF_IMAGES
        starts = range(0, max(block.num_rows, 1), size)
        parts = [np.arange(start, min(start + size, block.num_rows)) for start in starts]
        return np.concatenate([self.evaluate_transitions(Transitions.of(block, rows)) for rows in parts])

    def evaluate_transitions(self, transitions: Transitions) -> Float32:
        """f32[B]: what `rewards` says, as a numpy array."""
        with torch.no_grad():
            paid: Float32 = self.rewards(transitions).cpu().numpy()
        return paid

    def update(self, transitions: Transitions) -> Numbers:
        """Take one step by the gradient of `loss`, averaged over the rows of all ranks, which call it together."""
        loss, metrics = self.loss(transitions)
        gradient = self._trained.gradient.zero_()
        loss.backward()  # type: ignore[no-untyped-call]  # torch's signature
        self.context.sync.average_gradients([gradient], transitions.num_rows)
        self._step(gradient, self.settings.learning_rate)
        return metrics

    def change_settings(self, settings: RewardSignalSettings) -> None:
        """Use these, of the same class, from the next update on."""
        assert isinstance(settings, type(self.settings))
        self.settings = settings

    @property
    def is_finite(self) -> bool:
        """Whether all that it has learned is. Waits for the device."""
        return self._step.is_finite

    def snapshot(self) -> LearnedSnapshot:
        """A copy for `restore`; cheap, on the device."""
        buffers = [buffer.clone() for buffer in self.network.buffers()]
        normalizer = None if self._normalizer is None else self._normalizer.state()
        return LearnedSnapshot(self._step.snapshot(), buffers, self.random.bit_generator.state, normalizer)

    def restore(self, snapshot: LearnedSnapshot) -> None:
        """Undo everything since `snapshot`."""
        self._step.restore(snapshot.step)
        for buffer, kept in zip(self.network.buffers(), snapshot.buffers, strict=True):
            buffer.copy_(kept)
        self.random.bit_generator.state = snapshot.generator
        if self._normalizer is not None and snapshot.normalizer is not None:
            self._normalizer.load(snapshot.normalizer)

    def state(self) -> State:
        """Network, optimizer, generator, and the normalizer if there is one."""
        fixed = {name: tensor.cpu().numpy().copy() for name, tensor in self._untrained().items()}
        parts = {"network": self._step.state(), "fixed": State(fixed), "random": generator_state(self.random)}
        return State.merge(parts if self._normalizer is None else parts | {"normalizer": self._normalizer.state()})

    def load(self, state: State) -> None:
        """Restore `state`."""
        self._step.load(state.part("network"))
        fixed = state.part("fixed").tensors
        for name, tensor in self._untrained().items():
            tensor.copy_(torch.from_numpy(fixed[name]))
        load_generator(self.random, state.part("random"), self.context.sync.rank)
        if self._normalizer is not None:
            self._normalizer.load(state.part("normalizer"))

    def _untrained(self) -> dict[str, Tensor]:
        """Parameters that are not trained and the buffers that torch saves, sharing memory with the network."""
        return {name: t for name, t in self.network.state_dict().items() if name not in self._trained.shapes}
