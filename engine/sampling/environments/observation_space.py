"""Observation spaces as vectors and images.

Shapes: N copies; H, W, C height, width and channels. A leaf is one space inside a nested observation; its values are
gathered raw, [N, *raw_shape], and encoded for all copies at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rl_tui.engine.errors import EnvironmentFailure, NotSupportedError
from rl_tui.engine.sampling.environments.returned import as_numbers
from rl_tui.engine.sampling.environments.spaces import (
    Array,
    Path,
    Space,
    is_empty,
    leaf_name,
    leaves,
    refused_space,
    require_few_choices,
)
from rl_tui.engine.sampling.wrong_values import in_words
from rl_tui.engine.specs import Float32, Int64, Observation, Observations, ObservationSpec

Bounds: TypeAlias = tuple[NDArray[Any], NDArray[Any]]  # lowest, highest; of the space's own type

GOAL_KEY = "desired_goal"  # the key of goals in Gymnasium-Robotics and others


@dataclass(frozen=True, slots=True)
class OneHot:
    """Choices as columns: the number of values of each choice, i64[entries], and its first value."""

    sizes: Int64
    start: Int64

    def encode(self, raw: Array, name: str) -> Float32:
        """f32[N, sum of sizes] of raw choices [N, ...]; raises EnvironmentFailure for one outside its space."""
        chosen = raw.reshape(len(raw), -1).astype(np.int64, copy=False) - self.start
        if np.any((chosen < 0) | (chosen >= self.sizes)):
            raise EnvironmentFailure(f"observation {name!r} has a value outside its space")
        columns = np.zeros((len(raw), int(self.sizes.sum())), np.float32)
        columns[np.arange(len(raw))[:, None], chosen + (np.cumsum(self.sizes) - self.sizes)] = 1.0
        return columns


@dataclass(frozen=True, slots=True)
class ObservationLeaf:
    """One observation of an agent and its path in a nested one. Without one_hot: numbers, used as they are."""

    spec: ObservationSpec
    path: Path
    raw_shape: tuple[int, ...]
    one_hot: OneHot | None = None
    has_channels_first: bool = False  # an image that comes as [C, H, W]

    def empty(self, count: int) -> Array:
        """Room for the raw values of `count` copies; an image is [count, H, W, C] in memory."""
        if self.one_hot is not None:
            return np.empty((count, *self.raw_shape), np.int64)
        rows = np.empty((count, *self.spec.shape), self.spec.dtype)
        return rows.transpose(0, 3, 1, 2) if self.has_channels_first else rows.reshape(count, *self.raw_shape)

    def pick(self, observation: Any) -> Any:  # Any: as the environment returned it
        """This leaf's value inside a nested observation, single or batched."""
        whole = observation
        for key in self.path:
            try:
                observation = observation[key]
            except (KeyError, IndexError, TypeError):
                text = f"observation {self.spec.name!r} must be in what is returned, got {in_words(whole)} without it"
                raise EnvironmentFailure(text) from None
        return observation

    def write(self, raw: Array, row: int, observation: Any) -> None:  # Any: as the environment returned it
        """Write one copy's value into its row; raises EnvironmentFailure if it does not fit the space."""
        value = self.pick(observation)
        if self.spec.dtype == "uint8":
            self.require_bytes(value)
        numbers = as_numbers(f"observation {self.spec.name!r}", value)
        if numbers.shape != self.raw_shape:
            raise EnvironmentFailure(self.misshaped(numbers.shape, self.raw_shape))
        raw[row] = numbers

    def batch(self, observation: Any, count: int) -> Observation:  # Any: as the environment returned it
        """[count, ...] of a batched observation; raises EnvironmentFailure if it does not fit the space."""
        value = self.pick(observation)
        if self.spec.dtype == "uint8":
            self.require_bytes(value)
        numbers = as_numbers(f"observation {self.spec.name!r}", value)
        raw = np.asarray(numbers, dtype=self.spec.dtype if self.one_hot is None else None)
        if raw.shape != (count, *self.raw_shape):
            raise EnvironmentFailure(self.misshaped(raw.shape, (count, *self.raw_shape)))
        return self.encode(raw)

    def encode(self, raw: Array) -> Observation:
        """[N, ...] as the spec says, of raw values; numbers are a view of them."""
        if self.one_hot is not None:
            return self.one_hot.encode(raw, self.spec.name)
        columns: NDArray[Any] = raw.transpose(0, 2, 3, 1) if self.has_channels_first else raw
        return columns if columns.ndim == 2 else columns.reshape(len(raw), *self.spec.shape)

    def require_bytes(self, value: Any) -> None:  # Any: as the environment returned it
        """Raise EnvironmentFailure for anything that converting to bytes would change."""
        dtype = getattr(value, "dtype", type(value).__name__)
        if dtype != np.uint8:
            raise EnvironmentFailure(f"observation {self.spec.name!r} must be uint8 like its space, got {dtype}")

    def misshaped(self, found: tuple[int, ...], expected: tuple[int, ...]) -> str:
        """The message about a wrong shape."""
        return f"observation {self.spec.name!r} must have the shape {expected} of its space, got {found}"


@runtime_checkable
class Bounded(Protocol):
    """An environment that knows the bounds of its observations."""

    @property
    def observation_bounds(self) -> Sequence[Bounds | None]:
        """The lowest and highest values of each observation; None where its kind implies them."""


@runtime_checkable
class Limited(Protocol):
    """An environment that may know when its episodes end at the latest."""

    @property
    def max_episode_steps(self) -> int | None:
        """The time limit of an episode; None where none is known."""


def bounds_of(space: Space) -> tuple[Bounds | None, ...]:
    """The bounds of each leaf's numbers, flat; of an image, the lowest and highest of all."""

    def of(leaf: Space) -> Bounds | None:
        if not isinstance(leaf, spaces.Box):
            return None
        if _is_image(leaf):
            return np.array(leaf.low.min()), np.array(leaf.high.max())
        return leaf.low.ravel(), leaf.high.ravel()

    return tuple(of(leaf) for _, leaf in leaves(space) if not is_empty(leaf))


def observation_leaves(space: Space, behavior: str) -> tuple[ObservationLeaf, ...]:
    """Every leaf of an observation space that is not empty, in the space's own order; a bare one is "observation".

    Raises NotSupportedError naming the observation for spaces that are neither numbers nor choices.
    """
    found = tuple(_leaf(leaf, path, behavior) for path, leaf in leaves(space) if not is_empty(leaf))
    if not found:
        raise NotSupportedError(f"{behavior}: the observation space is empty")
    return found


def stack(observation_leaves: Sequence[ObservationLeaf], observations: Sequence[Any]) -> Observations:  # Any: as above
    """[n, ...] per leaf of n single observations."""
    raws = [leaf.empty(len(observations)) for leaf in observation_leaves]
    for row, observation in enumerate(observations):
        for leaf, raw in zip(observation_leaves, raws, strict=True):
            leaf.write(raw, row, observation)
    return tuple(leaf.encode(raw) for leaf, raw in zip(observation_leaves, raws, strict=True))


def _leaf(space: Space, path: Path, behavior: str) -> ObservationLeaf:
    name, is_goal = leaf_name(path, "observation"), GOAL_KEY in path
    refused = f"{behavior}: observation {name!r}"
    one_hot: OneHot | None = None
    match space:
        case spaces.Box() if _is_image(space):
            return _image(space, path, name, is_goal, refused)
        case spaces.Box() | spaces.MultiBinary():
            raw_shape, size = space.shape, math.prod(space.shape)
        case spaces.Discrete():
            one_hot = OneHot(np.array([space.n], np.int64), np.array([space.start], np.int64))
            raw_shape, size = (), int(space.n)
        case spaces.MultiDiscrete():
            one_hot = OneHot(space.nvec.astype(np.int64).ravel(), space.start.astype(np.int64).ravel())
            raw_shape, size = space.nvec.shape, int(space.nvec.sum())
        case _:
            raise refused_space(refused, space)
    if one_hot is not None:
        require_few_choices(
            refused, size, "Return numbers instead, such as the row and the column of a place, as a Box"
        )
    return ObservationLeaf(ObservationSpec(name, (size,), is_goal=is_goal), path, raw_shape, one_hot)


def _is_image(space: spaces.Box) -> bool:
    """Whether it is an image: three axes, or bytes in two axes or more."""
    return len(space.shape) == 3 or (space.dtype == np.uint8 and len(space.shape) >= 2)


def _image(space: spaces.Box, path: Path, name: str, is_goal: bool, refused: str) -> ObservationLeaf:
    """An image of the space's axes in the order height, width, channels."""
    has_channels_first = False
    match space.shape:
        case (height, width):
            shape = height, width, 1
        case (first, second, third):
            # Stacked frames, or the order that PyTorch prefers; not a board with more planes than rows, like chess.
            has_channels_first = first < third and first != second
            shape = (second, third, first) if has_channels_first else (first, second, third)
        case _:
            raise NotSupportedError(
                f"{refused}: an image of shape {space.shape} is not supported: stack frames along its channels"
            )
    dtype: Literal["float32", "uint8"] = "uint8" if space.dtype == np.uint8 else "float32"
    return ObservationLeaf(
        ObservationSpec(name, shape, dtype, is_goal), path, space.shape, has_channels_first=has_channels_first
    )
