"""Policies: from observations to actions.

Shapes: N agents, D observation columns, M memory columns, H head columns.
"""

from __future__ import annotations

import numpy as np
import torch

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.acting.action_sampler import ActionSampler
from rl_tui.engine.learning.acting.normalization import normalization
from rl_tui.engine.learning.acting.policy import ActorPolicy, NumpyPolicy, parts_of
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.learning.networks.actor import Actor
from rl_tui.engine.specs import BehaviorSpec, DecisionSteps, Float32, Json, Policy, Weights


def make_policy(
    spec: BehaviorSpec, network: NetworkSettings, is_squashed: bool, seed: int, is_greedy: bool | None = None
) -> Policy:
    """A policy for these settings: in numpy if all observations are vectors, in torch on the CPU otherwise.

    is_greedy: it takes the likeliest actions; None: as `network.deterministic` says.
    """
    sampler = ActionSampler(spec.actions, is_squashed, network.deterministic if is_greedy is None else is_greedy, seed)
    layout = FeatureLayout.of(spec.observations, network)
    if layout.is_plain(network):
        return NumpyPolicy(layout, network, sampler)
    return TorchPolicy(layout, network, sampler)


class TorchPolicy(ActorPolicy):
    """Any actor, in torch on the CPU."""

    maker = f"{__name__}:torch_policy"

    def __init__(self, layout: FeatureLayout, network: NetworkSettings, sampler: ActionSampler):
        actor = Actor(np.random.default_rng(0), layout, sampler.actions, network, sampler.is_squashed)
        super().__init__(layout, network, actor.memory_size, sampler)
        self._actor = actor.eval()  # its parameters are overwritten by `load`

    def load(self, weights: Weights) -> None:
        """See ActorPolicy."""
        self._actor.load_arrays(weights.arrays)
        self._normalize = normalization(weights.arrays)
        self._sampler.load(weights.arrays.get("log_sigma"))
        self.version = weights.version

    def _head(self, decisions: DecisionSteps, memories: Float32 | None) -> tuple[Float32, Float32 | None]:
        if memories is None:
            memories = np.zeros((len(decisions.agent_ids), self.memory_size), np.float32)
        features = self._layout.split(decisions.observations, self._normalize)
        with torch.no_grad():
            head, after = self._actor.step(tuple(map(torch.from_numpy, features)), torch.from_numpy(memories))
        return head.numpy(), after.numpy() if self.memory_size else None


def torch_policy(**recipe: Json) -> TorchPolicy:
    """The policy of a recipe."""
    return TorchPolicy(*parts_of(recipe))
