"""An actor as a module for exports.

Shapes: B rows, A continuous dimensions, M memory columns, H head columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.acting.distributions import MAX_LOG_SIGMA, MIN_LOG_SIGMA
from rl_tui.engine.learning.acting.normalization import LIMIT
from rl_tui.engine.learning.feature_layout import FeatureLayout, Features
from rl_tui.engine.learning.networks.actor import Actor
from rl_tui.engine.learning.policy_module import PolicyModule, PolicyOutputs
from rl_tui.engine.specs import BehaviorSpec, ObservationSpec, Weights


class ActorModule(PolicyModule):
    """An `Actor` behind its normalizer. It has neither before weights are loaded, and takes no memory."""

    def __init__(self, spec: BehaviorSpec, network: NetworkSettings, is_squashed: bool):
        """is_squashed: as in `Actor`."""
        super().__init__(spec)
        self.network = network
        self.is_squashed = is_squashed
        self.layout = FeatureLayout.of(spec.observations, network)
        self.memory_size = network.memory.memory_size if network.memory else 0

    def load(self, weights: Weights) -> None:
        """See PolicyModule."""
        self.actor = Actor(np.random.default_rng(0), self.layout, self.spec.actions, self.network, self.is_squashed)
        self.actor.load_arrays(weights.arrays)
        self.is_normalized = "normalizer.mean" in weights.arrays
        if self.is_normalized:
            self.register_buffer("mean", torch.tensor(weights.arrays["normalizer.mean"]))
            self.register_buffer("scale", torch.tensor(weights.arrays["normalizer.scale"]))

    def forward(self, observations: Sequence[Tensor], memories: Tensor) -> PolicyOutputs:
        """See PolicyModule."""
        head, memories = self.actor.step(self._features(observations), memories)
        if not self.spec.actions.branches:
            return PolicyOutputs(*self._gaussian(head), head[:, :0], memories)
        numbers = self.actor.head.out_features - self.spec.actions.mask_size
        return PolicyOutputs(*self._gaussian(head[:, :numbers]), head[:, numbers:], memories)

    def _gaussian(self, head: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and sigma."""
        size = self.spec.actions.continuous
        if self.is_squashed and size:
            mean, log_sigma = torch.split(head, size, 1)
            return mean, log_sigma.clamp(MIN_LOG_SIGMA, MAX_LOG_SIGMA).exp()
        return head, head if self.actor.log_sigma is None else self.actor.log_sigma.exp()

    def _features(self, observations: Sequence[Tensor]) -> Features:
        """As `FeatureLayout.split` returns them: images with channels last, vectors concatenated and normalized."""
        pairs = list(zip(observations, self.spec.observations, strict=True))
        is_vector = self.layout.is_vector
        others = [o.permute(0, 2, 3, 1) if spec.kind == "image" else o for o, spec in pairs if not is_vector(spec)]
        if not self.layout.columns:
            return tuple(others)
        found = [_as_vector(o, spec) for o, spec in pairs if is_vector(spec) and 0 not in spec.shape]
        vectors = found[0] if len(found) == 1 else torch.cat(found, 1)
        if self.is_normalized:
            vectors = ((vectors - self.get_buffer("mean")) * self.get_buffer("scale")).clamp(-LIMIT, LIMIT)
        return (vectors, *others)


def _as_vector(observation: Tensor, spec: ObservationSpec) -> Tensor:
    """A vector as it is; the numbers of an image f32[B, C, H, W], channels last, those of bytes from 0 to 255."""
    if spec.kind == "vector":
        return observation
    flat = observation.permute(0, 2, 3, 1).flatten(1)
    return flat * 255 if spec.dtype == "uint8" else flat
