"""Action spaces as continuous values and discrete branches.

Shapes: N copies. A leaf is one space inside a nested action. Every encoded array is newly allocated: an environment
may keep its action.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rl_tui.engine.errors import EnvironmentFailure, NotSupportedError
from rl_tui.engine.sampling.environments.spaces import Array, Path, Space, leaf_name, leaves
from rl_tui.engine.specs import Actions, ActionSpec, Bool, Float32, Int64

Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Choices:
    """Branches `first` and following of the policy, each plus the value of its first choice (None: all zero)."""

    first: int
    branches: tuple[int, ...]
    start: Int64 | None
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    def encode(self, actions: Actions) -> Array:
        """[N, *shape] in the space's own dtype."""
        chosen = actions.discrete[:, self.first : self.first + len(self.branches)]
        moved = chosen if self.start is None else chosen + self.start
        return moved.astype(self.dtype).reshape(len(chosen), *self.shape)


@dataclass(frozen=True, slots=True)
class Rescaling:
    """How values in [-1, 1] fill the bounded dimensions; the others are used as they are (their bounds infinite)."""

    center: Float64
    half_range: Float64
    low: Float64
    high: Float64

    def apply(self, values: Float32) -> Float64:
        """Rescaled values, clipped to the bounds, which rounding may exceed slightly."""
        scaled: Float64 = np.clip(self.center + values * self.half_range, self.low, self.high)
        return scaled


@dataclass(frozen=True, slots=True)
class Numbers:
    """Continuous dimensions `first` and following of the policy, rescaled to the space's bounds where it has any."""

    first: int
    size: int
    rescaling: Rescaling | None
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    def encode(self, actions: Actions) -> Array:
        """[N, *shape] in the space's own dtype."""
        values = actions.continuous[:, self.first : self.first + self.size]
        scaled = values if self.rescaling is None else self.rescaling.apply(values)
        return scaled.astype(self.dtype).reshape(len(values), *self.shape)


class ActionCodec:
    """Converts a policy's columns into elements of one action space, for all copies at once.

    Raises NotSupportedError naming the action for spaces that are neither floating numbers nor choices.
    """

    def __init__(self, space: Space, behavior: str) -> None:
        self._space = space
        self._leaves: dict[Path, Choices | Numbers] = {}
        continuous = 0
        branches: tuple[int, ...] = ()
        for path, leaf in leaves(space):
            encoder = _encoder(leaf, continuous, len(branches), f"{behavior}: action {leaf_name(path, 'action')!r}")
            self._leaves[path] = encoder
            if isinstance(encoder, Numbers):
                continuous += encoder.size
            else:
                branches += encoder.branches
        if continuous == 0 and not branches:
            raise NotSupportedError(f"{behavior}: the action space is empty")
        self._bare = self._leaves.get(())
        self.spec = ActionSpec(continuous, branches)

    def batch(self, actions: Actions) -> Any:  # Any: an array, or dicts and tuples of arrays as the space is nested
        """The batched action of all copies."""
        if self._bare is not None:
            return self._bare.encode(actions)
        return _nested(self._space, (), {path: leaf.encode(actions) for path, leaf in self._leaves.items()})

    def rows(self, actions: Actions) -> Sequence[Any]:  # Any: an element of the space
        """The action of each copy, in order."""
        if self._bare is not None:
            rows: Sequence[Any] = self._bare.encode(actions)  # type: ignore[assignment]  # an array is its rows
            return rows
        arrays = {path: leaf.encode(actions) for path, leaf in self._leaves.items()}
        num_rows = len(actions.continuous)
        return [_nested(self._space, (), {path: a[row] for path, a in arrays.items()}) for row in range(num_rows)]

    def mask(self, value: Any) -> Bool:  # Any: as the environment returned it
        """bool[sum of branches] of one copy's action mask: an array over all branches, or a tuple of one for each."""
        parts = value if isinstance(value, tuple | list) else [value]
        flat = np.concatenate([np.ravel(part) for part in parts])
        if flat.shape != (self.spec.mask_size,):
            raise EnvironmentFailure(f"action_mask must have {self.spec.mask_size} entries, got {flat.size}")
        return flat.astype(np.bool_)

    def mask_rows(self, values: Sequence[Any]) -> Bool | None:  # Any: as above
        """bool[N, sum of branches] of one mask per copy, None meaning all is allowed; None when all are None."""
        if all(value is None for value in values):
            return None
        rows = np.ones((len(values), self.spec.mask_size), np.bool_)
        for row, value in enumerate(values):
            if value is not None:
                rows[row] = self.mask(value)
        return rows


def _nested(space: Space, path: Path, arrays: Mapping[Path, Any]) -> Any:  # Any: see batch and rows
    if isinstance(space, spaces.Dict):
        return {key: _nested(child, (*path, key), arrays) for key, child in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_nested(child, (*path, index), arrays) for index, child in enumerate(space.spaces))
    return arrays[path]


def _encoder(space: Space, continuous: int, num_branches: int, refused: str) -> Choices | Numbers:
    """The encoder of one leaf, whose columns follow those of the leaves before it."""
    dtype = np.dtype(space.dtype)
    match space:
        case spaces.Box() if np.issubdtype(dtype, np.floating):
            return Numbers(continuous, math.prod(space.shape), _rescaling(space), space.shape, dtype)
        case spaces.Box():
            raise NotSupportedError(f"{refused}: must be a Box of floats or a MultiDiscrete, got a Box of {dtype}")
        case spaces.Discrete():
            start = np.array([space.start], np.int64)
            return Choices(num_branches, (int(space.n),), start if start.any() else None, (), dtype)
        case spaces.MultiDiscrete():
            start = space.start.astype(np.int64).ravel()
            sizes = tuple(int(size) for size in space.nvec.ravel())
            return Choices(num_branches, sizes, start if start.any() else None, space.nvec.shape, dtype)
        case spaces.MultiBinary():
            return Choices(num_branches, (2,) * math.prod(space.shape), None, space.shape, dtype)
        case _:
            raise NotSupportedError(f"{refused}: {type(space).__name__} spaces are not supported")


def _rescaling(space: spaces.Box) -> Rescaling | None:
    """None when every bounded dimension already reaches from -1 to 1."""
    low, high = space.low.astype(np.float64).ravel(), space.high.astype(np.float64).ravel()
    largest = float(np.finfo(space.low.dtype.name).max)  # spaces also write "no bound" as the largest float
    bounded = (low > -largest) & (high < largest)
    if np.all(~bounded | ((low == -1.0) & (high == 1.0))):
        return None
    from_, to = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
    bounds = np.where(bounded, low, -np.inf), np.where(bounded, high, np.inf)
    return Rescaling((to + from_) / 2, (to - from_) / 2, *bounds)
