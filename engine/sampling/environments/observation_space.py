"""Observation spaces as float32 columns.

Shapes: N copies. A leaf is one space inside a nested observation; its values are gathered raw, [N, *raw_shape],
and encoded for all copies at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from engine.errors import EnvironmentFailure, NotSupportedError
from engine.sampling.environments.spaces import Array, Path, Space, leaf_name, leaves
from engine.specs import Float32, Int64, Observations, ObservationSpec


@dataclass(frozen=True, slots=True)
class OneHot:
    """How choices become columns: the sizes of all choices, i64[entries], and the value of their first choice."""

    sizes: Int64
    start: Int64

    def encode(self, raw: Array, name: str) -> Float32:
        """f32[N, sum of sizes] of raw choices [N, ...]; raises EnvironmentFailure for one outside its space."""
        chosen = raw.reshape(len(raw), -1).astype(np.int64, copy=False) - self.start
        if np.any((chosen < 0) | (chosen >= self.sizes)):
            raise EnvironmentFailure(f"observation {name!r} holds a choice outside its space")
        columns = np.zeros((len(raw), int(self.sizes.sum())), np.float32)
        columns[np.arange(len(raw))[:, None], chosen + (np.cumsum(self.sizes) - self.sizes)] = 1.0
        return columns


@dataclass(frozen=True, slots=True)
class ObservationLeaf:
    """One observation of an agent and where it stands in a nested one. Without one_hot: numbers, used as they are."""

    spec: ObservationSpec
    path: Path
    raw_shape: tuple[int, ...]
    one_hot: OneHot | None = None

    def empty(self, count: int) -> Array:
        """Room for the raw values of `count` copies."""
        return np.zeros((count, *self.raw_shape), np.float32 if self.one_hot is None else np.int64)

    def pick(self, observation: Any) -> Any:  # Any: whatever the environment returned
        """This leaf's value inside a nested observation, single or batched."""
        for key in self.path:
            observation = observation[key]
        return observation

    def write(self, raw: Array, row: int, observation: Any) -> None:  # Any: whatever the environment returned
        """Put one copy's value into its row; raises EnvironmentFailure when its shape is not the space's."""
        value = self.pick(observation)
        shape = value.shape if isinstance(value, np.ndarray) else np.shape(value)
        if shape != self.raw_shape:
            raise EnvironmentFailure(self.misshaped(shape, self.raw_shape))
        raw[row] = value

    def batch(self, observation: Any, count: int) -> Float32:  # Any: whatever the environment returned
        """f32[count, size] of a batched observation; raises EnvironmentFailure when its shape is not the space's."""
        raw = np.asarray(self.pick(observation), dtype=np.float32 if self.one_hot is None else None)
        if raw.shape != (count, *self.raw_shape):
            raise EnvironmentFailure(self.misshaped(raw.shape, (count, *self.raw_shape)))
        return self.encode(raw)

    def encode(self, raw: Array) -> Float32:
        """f32[N, size] of raw values; numbers are a view of them."""
        if self.one_hot is not None:
            return self.one_hot.encode(raw, self.spec.name)
        columns: NDArray[np.float32] = raw.astype(np.float32, copy=False)
        return columns if columns.ndim == 2 else columns.reshape(len(raw), *self.spec.shape)

    def misshaped(self, found: tuple[int, ...], expected: tuple[int, ...]) -> str:
        """The sentence that names the wrong shape."""
        return f"observation {self.spec.name!r} has shape {found}, its space has {expected}"


def observation_leaves(space: Space, behavior: str) -> tuple[ObservationLeaf, ...]:
    """Every leaf of an observation space, in the space's own order; a bare one is called "observation".

    Raises NotSupportedError naming the observation for images and for spaces that are not columns of numbers.
    """
    found = tuple(_leaf(leaf, path, behavior) for path, leaf in leaves(space))
    if not found:
        raise NotSupportedError(f"{behavior}: the observation space is empty")
    return found


def stack(observation_leaves: Sequence[ObservationLeaf], observations: Sequence[Any]) -> Observations:  # Any: as above
    """f32[n, size] per leaf of n single observations."""
    raws = [leaf.empty(len(observations)) for leaf in observation_leaves]
    for row, observation in enumerate(observations):
        for leaf, raw in zip(observation_leaves, raws, strict=True):
            leaf.write(raw, row, observation)
    return tuple(leaf.encode(raw) for leaf, raw in zip(observation_leaves, raws, strict=True))


def _leaf(space: Space, path: Path, behavior: str) -> ObservationLeaf:
    name = leaf_name(path, "observation")
    refused = f"{behavior}: observation {name!r}"
    one_hot: OneHot | None = None
    match space:
        case spaces.Box() if _is_image(space):
            raise NotSupportedError(f"{refused}: image observations are not supported yet")
        case spaces.Box() | spaces.MultiBinary():
            raw_shape, size = space.shape, math.prod(space.shape)
        case spaces.Discrete():
            one_hot = OneHot(np.array([space.n], np.int64), np.array([space.start], np.int64))
            raw_shape, size = (), int(space.n)
        case spaces.MultiDiscrete():
            one_hot = OneHot(space.nvec.astype(np.int64).ravel(), space.start.astype(np.int64).ravel())
            raw_shape, size = space.nvec.shape, int(space.nvec.sum())
        case _:
            raise NotSupportedError(f"{refused}: {type(space).__name__} spaces are not supported")
    if size == 0:
        raise NotSupportedError(f"{refused} is empty: leave it out of the observation space")
    return ObservationLeaf(ObservationSpec(name, (size,)), path, raw_shape, one_hot)


def _is_image(space: spaces.Box) -> bool:
    """Whether a picture: three axes, or bytes in two axes or more."""
    return len(space.shape) == 3 or (space.dtype == np.uint8 and len(space.shape) >= 2)
