"""Acting: from what agents see to what they do.

Shapes: N agents, D observation columns, A continuous dimensions, K branches, H head columns.
"""

from __future__ import annotations

import numpy as np

from engine.learning.buffers import flat_observations
from engine.learning.generators import generator_state, load_generator
from engine.learning.networks.distributions import ACTION_LIMIT, EPSILON, FORBIDDEN, LOG_SQRT_TWO_PI
from engine.learning.networks.mlp import Activation, activate
from engine.learning.networks.normalizer import LIMIT
from engine.specs import Actions, ActionSpec, Bool, Choice, DecisionSteps, Float32, Int64, State, Weights


class VectorPolicy:
    """An MLP over vector observations, in numpy: for a handful of agents a torch call costs three times as much."""

    def __init__(self, actions: ActionSpec, activation: Activation, is_deterministic: bool, seed: int):
        self.version = -1
        self._actions = actions
        self._activation = activation
        self._is_deterministic = is_deterministic
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._layers: list[tuple[Float32, Float32]] = []
        self._mean: Float32 | None = None
        self._scale: Float32 | None = None
        self._sigma: Float32 = np.empty(0, np.float32)
        self._precision: Float32 = self._sigma
        self._log_scale: Float32 = self._sigma

    def load(self, weights: Weights) -> None:
        """Arrays: layers.<i>.weight f32[out, in] and .bias from features to head; log_sigma f32[A] if there are
        continuous actions; normalizer.mean and .scale f32[D] if observations are normalized."""
        arrays = weights.arrays
        depth = sum(name.startswith("layers.") for name in arrays) // 2
        self._layers = [
            (np.ascontiguousarray(arrays[f"layers.{i}.weight"].T), arrays[f"layers.{i}.bias"]) for i in range(depth)
        ]
        self._mean, self._scale = arrays.get("normalizer.mean"), arrays.get("normalizer.scale")
        if self._actions.continuous:
            self._sigma = np.exp(arrays["log_sigma"])
            self._precision = np.reciprocal(2 * self._sigma * self._sigma + np.float32(EPSILON))
            self._log_scale = np.log(self._sigma + np.float32(EPSILON)) + np.float32(LOG_SQRT_TWO_PI)
        self.version = weights.version

    def act(self, decisions: DecisionSteps) -> Choice:
        """One action for every agent that waits."""
        head = self._head(flat_observations(decisions.observations))
        columns = self._actions.continuous
        if not self._actions.branches:
            continuous, log_probs = self._continuous(head)
            discrete = np.empty((len(head), 0), np.int64)
        elif not columns:
            continuous = np.empty((len(head), 0), np.float32)
            discrete, log_probs = self._discrete(head, decisions.action_mask)
        else:
            continuous, continuous_log_probs = self._continuous(head[:, :columns])
            discrete, discrete_log_probs = self._discrete(head[:, columns:], decisions.action_mask)
            log_probs = np.concatenate([continuous_log_probs, discrete_log_probs], axis=1)
        bounded = np.clip(continuous, -ACTION_LIMIT, ACTION_LIMIT) / np.float32(ACTION_LIMIT) if columns else continuous
        return Choice(Actions(bounded, discrete), continuous, log_probs)

    def _head(self, hidden: Float32) -> Float32:
        if self._mean is not None and self._scale is not None:
            hidden = np.clip((hidden - self._mean) * self._scale, -LIMIT, LIMIT)
        for weight, bias in self._layers[:-1]:
            hidden = hidden @ weight
            hidden += bias
            hidden = activate(self._activation, hidden, np.empty_like(hidden))
        weight, bias = self._layers[-1]
        return hidden @ weight + bias

    def _continuous(self, mean: Float32) -> tuple[Float32, Float32]:
        if self._is_deterministic:
            noise = np.zeros_like(mean)
        else:
            noise = self._random.standard_normal(mean.shape, dtype=np.float32)
            noise *= self._sigma
        return mean + noise, -(noise * noise) * self._precision - self._log_scale

    def _discrete(self, logits: Float32, allowed: Bool | None) -> tuple[Int64, Float32]:
        if allowed is not None:
            logits = np.where(allowed, logits, np.float32(-FORBIDDEN))
        if len(self._actions.branches) == 1:
            chosen, log_prob = self._branch(logits)
            return chosen[:, None], log_prob[:, None]
        ends = np.cumsum(self._actions.branches)[:-1]
        branches = [self._branch(choices) for choices in np.split(logits, ends, axis=1)]
        return np.stack([chosen for chosen, _ in branches], 1), np.stack([log_prob for _, log_prob in branches], 1)

    def _branch(self, logits: Float32) -> tuple[Int64, Float32]:
        """Chosen i64[N] and log-probability f32[N] of logits f32[N, C], by the inverse of the cumulated probability."""
        weights = np.exp(logits - logits.max(1, keepdims=True))
        cumulated = weights.cumsum(1)
        total = cumulated[:, -1:]
        if self._is_deterministic:
            chosen = logits.argmax(1)
        else:  # in float64 random() * total stays below total, so that a choice without weight is never drawn
            chosen = (cumulated <= self._random.random(total.shape) * total).sum(1)
        picked = weights[np.arange(len(logits)), chosen]
        return chosen, np.log(picked / total[:, 0] + np.float32(EPSILON))

    def state(self) -> State:
        """Its random generator."""
        return generator_state(self._random)

    def load_state(self, state: State) -> None:
        """Draw on from `state`."""
        load_generator(self._random, state)
