"""Random observations, masks and memories, with which an exported policy is checked.

Shapes: B agents, S mask columns, M memory columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rl_tui.engine.export.onnx_graph import graph_inputs
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.specs import (
    BehaviorSpec,
    Bool,
    DecisionSteps,
    Float32,
    Int64,
    Observation,
    Observations,
    ObservationSpec,
    Weights,
)

LARGE = 1e4  # times a standard normal: far beyond what a normalizer clips
KINDS = 4  # of observations, in turn: zeros, ordinary, familiar and large numbers
MASKS = 3  # kinds of masks: all, some or none is allowed
NUM_ROWS, FEWEST_ROWS = 60, KINDS * MASKS
NUM_SAMPLES, FEWEST_SAMPLES = 2048, 512  # detect a probability that is wrong by a tenth, or by a fifth
NUMBERS = 2**21  # observed in one check, unless FEWEST rows need more: large observations must not delay a run
PRODUCTS = 2**31  # multiplications in one check, likewise, if a network uses each parameter once
FAMILIAR_ROWS = 64  # at once: a goal may generate half a million weights for each


@dataclass(frozen=True, slots=True)
class AgentInputs:
    """B agents: their observations, and their mask bool[B, S], None without discrete actions."""

    spec: BehaviorSpec
    observations: Observations
    allowed: Bool | None

    @property
    def num_rows(self) -> int:
        """B."""
        return len(self.observations[0])

    def slice(self, start: int, stop: int) -> AgentInputs:
        """Some of the agents."""
        allowed = None if self.allowed is None else self.allowed[start:stop]
        return AgentInputs(self.spec, tuple(o[start:stop] for o in self.observations), allowed)

    def arrays(self, memories: Float32) -> dict[str, Float32]:
        """The inputs of a graph by name."""
        return graph_inputs(self.spec, self.observations, self.allowed, memories)

    def tensors(self, memories: Tensor) -> list[Tensor]:
        """The arguments of `ExportedPolicy`, in the type of memories [B, M]."""
        arrays = self.arrays(np.empty((self.num_rows, 0), np.float32)).values()
        tensors = [torch.from_numpy(array).to(memories.dtype) for array in arrays]
        return [*tensors, memories.unsqueeze(1)] if memories.shape[1] else tensors

    def decisions(self) -> DecisionSteps:
        """The argument of a policy's `act`."""
        zeros = np.zeros(self.num_rows, np.float32)
        return DecisionSteps(np.arange(self.num_rows), self.observations, zeros, self.allowed)


class InputGenerator:
    """Generates inputs for the policy of these weights: familiar observations are what its normalizer expects."""

    def __init__(self, spec: BehaviorSpec, layout: FeatureLayout, weights: Weights, random: np.random.Generator):
        """layout: as the networks of the policy have it."""
        self._spec = spec
        self._layout = layout
        self._random = random
        self._size = max(1, sum(math.prod(observation.shape) for observation in spec.observations))
        self._num_parameters = sum(array.size for array in weights.arrays.values())
        columns = layout.columns
        self._mean = weights.arrays.get("normalizer.mean", np.zeros(columns, np.float32))
        self._deviation = 1 / weights.arrays.get("normalizer.scale", np.ones(columns, np.float32))

    def zero(self) -> AgentInputs:
        """One agent whose observations and mask are all zero: Unity's first call when it loads a graph."""
        observations = tuple(np.zeros((1, *own.shape), own.dtype) for own in self._spec.observations)
        return self._inputs(observations, np.zeros((1, self._spec.actions.mask_size), np.bool_))

    def mixed(self) -> AgentInputs:
        """Rows of every kind in turn; in turns of KINDS rows, all, some or no actions are allowed."""
        rows = np.arange(self._affordable(FEWEST_ROWS, NUM_ROWS))
        some = self._random.random((len(rows), self._spec.actions.mask_size)) < 0.5
        masks = np.ones_like(some), some, np.zeros_like(some)
        return self._inputs(self._observations(rows % KINDS), np.choose(rows[:, None] // KINDS % MASKS, masks))

    def familiar(self) -> AgentInputs:
        """Rows for which many actions can be sampled; every branch allows at least one choice."""
        rows = min(FAMILIAR_ROWS, max(1, NUMBERS // self._size))
        allowed = self._random.random((rows, self._spec.actions.mask_size)) < 0.7
        for start in np.cumsum((0, *self._spec.actions.branches[:-1])):
            allowed[:, start : start + 1] = True
        return self._inputs(self._observations(np.full(rows, 2)), allowed)

    def num_draws(self, rows: int) -> int:
        """How often to sample actions for so many rows in order to check a distribution."""
        return -(-self._affordable(FEWEST_SAMPLES, NUM_SAMPLES) // rows)

    def memories(self, rows: int, memory_size: int) -> Float32:
        """f32[B, M], in the range of an LSTM's state."""
        return self._random.uniform(-1, 1, (rows, memory_size)).astype(np.float32)

    def _affordable(self, fewest: int, most: int) -> int:
        """A number of rows that can be computed quickly."""
        return min(most, max(fewest, min(NUMBERS // self._size, PRODUCTS // self._num_parameters)))

    def _inputs(self, observations: Observations, allowed: Bool) -> AgentInputs:
        return AgentInputs(self._spec, observations, allowed if self._spec.actions.branches else None)

    def _observations(self, kinds: Int64) -> Observations:
        """One row for each i64[B] of 0 (zeros), 1 (ordinary), 2 (familiar) and 3 (large)."""
        found, start = [], 0
        for own in self._spec.observations:
            width = math.prod(own.shape) if self._layout.is_vector(own) else 0
            found.append(self._observation(own, kinds, slice(start, start + width)))
            start += width
        return tuple(found)

    def _observation(self, own: ObservationSpec, kinds: Int64, columns: slice) -> Observation:
        """columns: its own among those of all vectors."""
        shape = len(kinds), *own.shape
        kind = kinds.reshape(-1, *[1] * len(own.shape))
        if own.dtype == "uint8":
            return self._random.integers(0, 256, shape, np.uint8) * (kind > 0)
        noise = self._random.standard_normal(shape, np.float32)
        if own.kind == "entities":
            noise[self._random.random(shape[:2]) < 0.5] = 0  # absent entities
        familiar: Float32 = noise
        if self._layout.is_vector(own):
            mean, deviation = (array[columns].reshape(own.shape) for array in (self._mean, self._deviation))
            familiar = (mean + noise * deviation).astype(np.float32)
        return np.choose(kind, (np.zeros_like(noise), noise, familiar, noise * np.float32(LARGE)))
