"""Policies: from observations to actions.

Shapes: N agents, D observation columns, M memory columns, H head columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import torch

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.action_sampler import ActionSampler
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.learning.networks.actor import Actor
from rl_tui.engine.learning.networks.flat import layer_names
from rl_tui.engine.learning.networks.normalizer import normalize
from rl_tui.engine.learning.networks.numpy.dense import Activation
from rl_tui.engine.learning.networks.numpy.lstm import LSTMStep
from rl_tui.engine.learning.networks.numpy.mlp import apply_layers
from rl_tui.engine.specs import Actions, BehaviorSpec, Choice, DecisionSteps, Float32, Policy, Weights


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
    return TorchPolicy(layout, sampler, Actor(np.random.default_rng(0), layout, spec.actions, network, is_squashed))


class ActorPolicy(ABC):
    """A policy whose actions are drawn from the head of an actor, here or in a class that derives from this one."""

    def __init__(self, layout: FeatureLayout, memory_size: int, sampler: ActionSampler):
        self.version = -1
        self.memory_size = memory_size
        self._layout = layout
        self._sampler = sampler
        self.state, self.load_state = sampler.state, sampler.load_state
        self.before_bounds = sampler.before_bounds
        self._normalize: Callable[[Float32], Float32] | None = None

    @abstractmethod
    def load(self, weights: Weights) -> None:
        """Arrays: the parameters of `Actor` by name; normalizer.mean and .scale f32[D] if vectors are normalized."""

    @abstractmethod
    def _head(self, decisions: DecisionSteps, memories: Float32 | None) -> tuple[Float32, Float32 | None]:
        """The head f32[N, H] and the memories after it f32[N, M], None without memory."""

    def act(self, decisions: DecisionSteps, memories: Float32 | None = None) -> Choice:
        """One action for every waiting agent."""
        head, after = self._head(decisions, memories)
        return self._sampler.choose(head, decisions.action_mask, after)

    def evaluate(
        self,
        decisions: DecisionSteps,
        actions: Actions,
        memories: Float32 | None = None,
        continuous: Float32 | None = None,
    ) -> Choice:
        """What `act` would have returned had it chosen these actions. continuous: f32[N, A], where it is known what
        they were before any bounds."""
        head, after = self._head(decisions, memories)
        if continuous is None:
            continuous = self.before_bounds(actions.continuous)
        log_probs = self._sampler.log_probs(head, decisions.action_mask, continuous, actions.discrete)
        return Choice(actions, continuous, log_probs, after)


class NumpyPolicy(ActorPolicy):
    """Layers over vector observations, in numpy: for a handful of agents a torch call costs three times as much."""

    def __init__(self, layout: FeatureLayout, network: NetworkSettings, sampler: ActionSampler):
        super().__init__(layout, network.memory.memory_size if network.memory else 0, sampler)
        self._activation: Activation = network.activation
        self._layers: list[tuple[Float32, Float32]] = []
        self._memory: LSTMStep | None = None
        self._final: tuple[Float32, Float32] = (np.empty((0, 0), np.float32), np.empty(0, np.float32))

    def load(self, weights: Weights) -> None:
        """See ActorPolicy."""
        arrays = weights.arrays
        names = layer_names(arrays, "body.core.layers.")
        self._layers = [(np.ascontiguousarray(arrays[weight].T), arrays[bias]) for weight, bias in names]
        self._memory = LSTMStep(arrays, "body.core.memories.0.cell.") if self.memory_size else None
        self._final = np.ascontiguousarray(arrays["head.weight"].T), arrays["head.bias"]
        self._normalize = _normalization(arrays)
        self._sampler.load(arrays.get("log_sigma"))
        self.version = weights.version

    def _head(self, decisions: DecisionSteps, memories: Float32 | None) -> tuple[Float32, Float32 | None]:
        hidden = self._layout.vectors(decisions.observations)
        if self._normalize is not None:
            hidden = self._normalize(hidden)
        hidden = apply_layers(self._layers, self._activation, hidden)
        after = None
        if self._memory is not None:
            if memories is None:
                memories = np.zeros((len(hidden), self.memory_size), np.float32)
            hidden, after = self._memory(hidden, memories)
        weight, bias = self._final
        return hidden @ weight + bias, after


class TorchPolicy(ActorPolicy):
    """Any actor, in torch on the CPU."""

    def __init__(self, layout: FeatureLayout, sampler: ActionSampler, actor: Actor):
        """actor: its parameters are overwritten by `load`."""
        super().__init__(layout, actor.memory_size, sampler)
        self._actor = actor.eval()

    def load(self, weights: Weights) -> None:
        """See ActorPolicy."""
        self._actor.load_arrays(weights.arrays)
        self._normalize = _normalization(weights.arrays)
        self._sampler.load(weights.arrays.get("log_sigma"))
        self.version = weights.version

    def _head(self, decisions: DecisionSteps, memories: Float32 | None) -> tuple[Float32, Float32 | None]:
        if memories is None:
            memories = np.zeros((len(decisions.agent_ids), self.memory_size), np.float32)
        features = self._layout.split(decisions.observations, self._normalize)
        with torch.no_grad():
            head, after = self._actor.step(tuple(map(torch.from_numpy, features)), torch.from_numpy(memories))
        return head.numpy(), after.numpy() if self.memory_size else None


def _normalization(arrays: Mapping[str, Float32]) -> Callable[[Float32], Float32] | None:
    mean, scale = arrays.get("normalizer.mean"), arrays.get("normalizer.scale")
    return None if mean is None or scale is None else partial(normalize, mean=mean, scale=scale)
