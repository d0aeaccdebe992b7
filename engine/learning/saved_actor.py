"""The policy in the saved state of a trainer, without the trainer: acting needs neither critics nor reward signals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.learning.networks.actor import Actor
from rl_tui.engine.learning.networks.normalizer import Normalizer
from rl_tui.engine.learning.policies import make_policy
from rl_tui.engine.specs import BehaviorSpec, Policy, State, Weights

NORMALIZER = "normalizer."


@dataclass(frozen=True, slots=True)
class SavedActor:
    """prefix: what precedes the names of `Actor`'s parameters in the trainer's state."""

    prefix: str
    spec: BehaviorSpec
    network: NetworkSettings
    is_squashed: bool

    def expected(self) -> Mapping[str, np.ndarray[Any, Any]]:
        """The arrays that a state of such a trainer has for acting, untrained."""
        layout = FeatureLayout.of(self.spec.observations, self.network)
        actor = Actor(np.random.default_rng(0), layout, self.spec.actions, self.network, self.is_squashed)
        arrays = {f"{self.prefix}{name}": array.detach().numpy() for name, array in actor.named_parameters()}
        if self.network.normalize and layout.columns:
            arrays |= {NORMALIZER + name: array for name, array in Normalizer(layout.columns).state().tensors.items()}
        return arrays

    def found(self, state: State) -> Mapping[str, np.ndarray[Any, Any]]:
        """Those in this state."""
        return {name: array for name, array in state.tensors.items() if name.startswith((self.prefix, NORMALIZER))}

    def policy(self, state: State, seed: int, is_greedy: bool = False) -> Policy:
        """The policy of the trainer that saved this state, which the caller has checked against `expected`."""
        found = self.found(state)
        weights = {
            name.removeprefix(self.prefix): array for name, array in found.items() if name.startswith(self.prefix)
        }
        if any(name.startswith(NORMALIZER) for name in found):
            normalizer = Normalizer(FeatureLayout.of(self.spec.observations, self.network).columns)
            normalizer.load(state.part("normalizer"))
            weights |= normalizer.arrays()
        policy = make_policy(self.spec, self.network, self.is_squashed, seed, is_greedy)
        policy.load(Weights(0, weights))
        return policy
