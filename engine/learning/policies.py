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
from rl_tui.engine.learning.networks.flat import placed
from rl_tui.engine.specs import BehaviorSpec, DecisionSteps, Float32, Json, Policy, Weights

CPU = torch.device("cpu")


def make_policy(
    spec: BehaviorSpec,
    network: NetworkSettings,
    is_squashed: bool,
    seed: int,
    is_greedy: bool | None = None,
    device: torch.device = CPU,
) -> Policy:
    """A policy for these settings: on the CPU in numpy if all observations are vectors, in torch otherwise.

    is_greedy: it takes the likeliest actions; None: as `network.deterministic` says.
    """
    sampler = ActionSampler(spec.actions, is_squashed, network.deterministic if is_greedy is None else is_greedy, seed)
    layout = FeatureLayout.of(spec.observations, network)
    if layout.is_plain(network) and device.type == "cpu":
        return NumpyPolicy(layout, network, sampler)
    return TorchPolicy(layout, network, sampler, device)


class TorchPolicy(ActorPolicy):
    """Any actor, in torch. Actions are drawn on the CPU; what a recipe makes computes there altogether."""

    maker = f"{__name__}:torch_policy"

    def __init__(
        self, layout: FeatureLayout, network: NetworkSettings, sampler: ActionSampler, device: torch.device = CPU
    ):
        """device: of the network."""
        actor = Actor(np.random.default_rng(0), layout, sampler.actions, network, sampler.is_squashed)
        super().__init__(layout, network, actor.memory_size, sampler)
        self._actor = actor.eval().to(device)  # its parameters are overwritten by `load`
        self._device = device

    def load(self, weights: Weights) -> None:
        """See ActorPolicy."""
        self._actor.load_arrays(weights.arrays)
        self._normalize = normalization(weights.arrays)
        self._sampler.load(weights.arrays.get("log_sigma"))
        self.version = weights.version

    def _head(self, decisions: DecisionSteps, memories: Float32 | None) -> tuple[Float32, Float32 | None]:
        features = self._layout.split(decisions.observations, self._normalize)
        if memories is None or not self.memory_size:
            before = torch.zeros((len(decisions.agent_ids), self.memory_size), device=self._device)
        else:
            before = placed(memories, self._device)
        with torch.no_grad():
            head, after = self._actor.step(tuple([placed(each, self._device) for each in features]), before)
        return head.cpu().numpy(), after.cpu().numpy() if self.memory_size else None


def torch_policy(**recipe: Json) -> TorchPolicy:
    """The policy of a recipe."""
    return TorchPolicy(*parts_of(recipe))
