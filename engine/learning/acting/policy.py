"""Policies whose actions are drawn from the head of an actor, and that of layers over vectors.

Shapes: N agents, D observation columns, M memory columns, H head columns.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

import numpy as np

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.acting.action_sampler import ActionSampler
from rl_tui.engine.learning.acting.layers import Activation, apply_layers, layer_names
from rl_tui.engine.learning.acting.lstm_step import LSTMStep
from rl_tui.engine.learning.acting.normalization import normalization
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.specs import Actions, ActionSpec, Choice, DecisionSteps, Float32, Json, PolicyRecipe, Weights


class ActorPolicy(ABC):
    """A policy whose actions are drawn from the head of an actor, here or in a class that derives from this one.

    maker: what makes such a policy by a recipe, module:function. It is not inherited: a class may act otherwise.
    """

    maker: ClassVar[str] = ""

    def __init__(self, layout: FeatureLayout, network: NetworkSettings, memory_size: int, sampler: ActionSampler):
        self.version = -1
        self.memory_size = memory_size
        self._network = network
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
        self._sampler.select(decisions.agent_ids)
        return self._sampler.choose(head, decisions.action_mask, after)

    def recipe(self, copies: range, num_instances: int, num_restarts: int = 0) -> PolicyRecipe | None:
        """See CopyPolicy. Classes without a maker of their own have none."""
        if "maker" not in vars(type(self)):
            return None
        parts: dict[str, Json] = {
            "layout": self._layout.to_json(),
            "network": self._network.model_dump(mode="json"),
            "sampler": self._sampler.to_json(copies, num_restarts),
            "copies": [copies.start, len(copies)],
            "num_instances": num_instances,
            "num_restarts": num_restarts,
        }
        return PolicyRecipe(self.maker, parts)

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

    maker = f"{__name__}:numpy_policy"

    def __init__(self, layout: FeatureLayout, network: NetworkSettings, sampler: ActionSampler):
        super().__init__(layout, network, network.memory.memory_size if network.memory else 0, sampler)
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
        self._normalize = normalization(arrays)
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
        return hidden.dot(weight) + bias, after


def numpy_policy(**recipe: Json) -> NumpyPolicy:
    """The policy of a recipe."""
    return NumpyPolicy(*parts_of(recipe))


def parts_of(recipe: Mapping[str, Json]) -> tuple[FeatureLayout, NetworkSettings, ActionSampler]:
    """What a policy is made of, from `ActorPolicy.recipe`."""
    read = cast("Mapping[str, Any]", recipe)
    of = read["sampler"]
    actions = ActionSpec(of["continuous"], tuple(of["branches"]))
    sampler = ActionSampler(actions, of["is_squashed"], of["is_deterministic"], of["seed"])
    first, count = read["copies"]
    sampler.divide(range(first, first + count), read["num_instances"], read["num_restarts"], of["states"])
    network = NetworkSettings.model_validate_json(json.dumps(read["network"]))
    return FeatureLayout.from_json(read["layout"]), network, sampler
