"""Random numbers of agents in several copies of an environment, each drawn by a generator of its copy.

So what is drawn for an agent does not depend on which copies act together.

Shapes: N agents.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.learning.random_generators import generator_state, load_generator
from rl_tui.engine.specs import Float32, Int64, Json, State

Shape: TypeAlias = tuple[int, ...]


class CopyGenerators:
    """Stands in for a generator: call `select`, then draw with a first axis of N. Used by one thread."""

    def __init__(self, seed: int, copies: range, num_instances: int, num_restarts: int, states: Mapping[str, Json]):
        """num_instances: that hold the copies, each as many, with agents that are named id * num_instances + instance;
        agent id of an instance with C copies is of its copy id % C. states: of generators that go on, by copy."""
        self._copies, self._num_instances = copies, num_instances
        self._per_instance = max(1, len(copies) // num_instances)
        self._generators = [np.random.Generator(np.random.PCG64([seed, copy, num_restarts])) for copy in copies]
        for copy, generator in zip(copies, self._generators, strict=True):
            if str(copy) in states:
                load_generator(generator, State({}, cast("dict[str, Json]", states[str(copy)])))
        self._agents: Int64 = np.empty(0, np.int64)
        self._parts: list[tuple[np.random.Generator, slice]] = []

    def select(self, agent_ids: Int64) -> None:
        """The next draws are for these agents, i64[N]."""
        if agent_ids is self._agents:
            return
        ids, instances = np.divmod(agent_ids, self._num_instances)
        copies = instances * self._per_instance + ids % self._per_instance
        begins = np.flatnonzero(np.diff(copies, prepend=-1)).tolist()
        ends = [*begins[1:], len(copies)]
        self._parts = [(self._generators[copies[a]], slice(a, b)) for a, b in zip(begins, ends, strict=True)]
        self._agents = agent_ids

    def standard_normal(self, shape: Shape, dtype: Any = np.float32) -> Float32:
        """f32 of this shape."""
        drawn: Float32 = np.empty(shape, dtype)
        for generator, rows in self._parts:
            generator.standard_normal(out=drawn[rows], dtype=dtype)
        return drawn

    def random(self, shape: Shape) -> NDArray[np.float64]:
        """f64 of this shape, in [0, 1)."""
        drawn = np.empty(shape)
        for generator, rows in self._parts:
            generator.random(out=drawn[rows])
        return drawn

    def states(self) -> dict[str, Json]:
        """Of all generators, by copy."""
        generators = zip(self._copies, self._generators, strict=True)
        return {str(copy): generator_state(generator).values for copy, generator in generators}
