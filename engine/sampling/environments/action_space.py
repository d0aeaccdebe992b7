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
from rl_tui.engine.sampling.environments.returned import as_numbers
from rl_tui.engine.sampling.environments.spaces import (
    Array,
    Path,
    Space,
    leaf_name,
    leaves,
    refused_space,
    require_few_choices,
)
from rl_tui.engine.specs import Actions, ActionSpec, Bool, Float32, Int64

Float64 = NDArray[np.float64]

MOST_WHOLE_NUMBERS = 256  # of one dimension, those of a byte; beyond that, neighbors have more in common than choices


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

    def decode(self, batch: Array) -> Int64:
        """i64[N, branches] of elements [N, *shape]; raises EnvironmentFailure for one that is not in the space."""
        given, start = batch.reshape(len(batch), -1), 0 if self.start is None else self.start
        chosen: Int64 = given.astype(np.int64) - start
        if np.any((chosen < 0) | (chosen >= np.array(self.branches))) or np.any(chosen + start != given):
            raise EnvironmentFailure("must be in the action space, got other choices")
        return chosen


@dataclass(frozen=True, slots=True)
class Rescaling:
    """How values in [-1, 1] fill dimensions with two bounds; with one, their range is moved until it keeps to it."""

    center: Float64
    half_range: Float64
    low: Float64
    high: Float64

    def apply(self, values: Float32) -> Float64:
        """Rescaled values, clipped to the bounds, which rounding may exceed slightly."""
        scaled: Float64 = np.clip(self.center + values * self.half_range, self.low, self.high)
        return scaled

    def undo(self, scaled: Float64) -> Float64:
        """What was rescaled; 0 where the bounds leave one value only."""
        size = np.where(self.half_range == 0, 1.0, self.half_range)
        values: Float64 = np.where(self.half_range == 0, 0.0, (scaled - self.center) / size)
        return values


@dataclass(frozen=True, slots=True)
class Numbers:
    """Continuous dimensions `first` and following of the policy, rescaled to the space's bounds where needed."""

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

    def decode(self, batch: Array) -> Float32:
        """f32[N, size], -1 to 1 within the bounds, of elements [N, *shape]."""
        values = batch.reshape(len(batch), -1).astype(np.float64)
        return (values if self.rescaling is None else self.rescaling.undo(values)).astype(np.float32)


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
        self._boxes = {path for path, leaf in leaves(space) if isinstance(leaf, spaces.Box)}
        self.spec = ActionSpec(continuous, branches)

    def batch(self, actions: Actions) -> Any:  # Any: an array, or dicts and tuples of arrays as the space is nested
        """The batched action of all copies."""
        if self._bare is not None:
            return self._bare.encode(actions)
        return _nested(self._space, (), {path: leaf.encode(actions) for path, leaf in self._leaves.items()})

    def rows(self, actions: Actions) -> Sequence[Any]:  # Any: an element of the space
        """The action of each copy, in order."""
        if self._bare is not None and self._bare.shape:
            rows: Sequence[Any] = self._bare.encode(actions)  # type: ignore[assignment]  # an array is its rows
            return rows
        arrays = {path: leaf.encode(actions) for path, leaf in self._leaves.items()}
        return [self._row(arrays, row) for row in range(len(actions.continuous))]

    def columns(self, batch: Any, count: int | None) -> Actions:  # Any: as `batch` returns it
        """The columns of N actions of the environment; count: N, None for a single action.

        Raises EnvironmentFailure for what is not of the space.
        """
        rows = 1 if count is None else count
        continuous, discrete = [np.empty((rows, 0), np.float32)], [np.empty((rows, 0), np.int64)]
        for path, leaf in self._leaves.items():
            array = as_numbers(leaf_name(path, "each"), _picked(batch, path))
            expected = leaf.shape if count is None else (count, *leaf.shape)
            if array.shape not in (expected, (count, 1) if leaf.shape == () else expected):
                name = f"{leaf_name(path, '')} " if path else ""
                raise EnvironmentFailure(f"{name}must have the shape {expected} of its space, got {array.shape}")
            array = array.reshape(rows, *leaf.shape)
            if isinstance(leaf, Numbers):
                continuous.append(leaf.decode(array))
            else:
                discrete.append(leaf.decode(array))
        return Actions(np.concatenate(continuous, 1), np.concatenate(discrete, 1))

    def _row(self, arrays: Mapping[Path, Any], row: int) -> Any:  # Any: as above
        """A Box without axes has arrays as elements, a Discrete has numbers."""
        elements = {path: a[row, ...] if path in self._boxes else a[row] for path, a in arrays.items()}
        return _nested(self._space, (), elements)

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


def _picked(batch: Any, path: Path) -> Any:  # Any: see columns
    for key in path:
        try:
            batch = batch[key]
        except (KeyError, IndexError, TypeError):
            raise EnvironmentFailure(f"must be nested as the action space, with {leaf_name(path, '')}") from None
    return batch


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
            return _whole_numbers(space, num_branches, refused)
        case spaces.Discrete():
            return _choices(num_branches, space.n, space.start, space, refused)
        case spaces.MultiDiscrete():
            return _choices(num_branches, space.nvec, space.start, space, refused)
        case spaces.MultiBinary():
            return _choices(num_branches, np.full(space.shape, 2), np.int64(0), space, refused)
        case _:
            raise refused_space(refused, space)


def _choices(first: int, sizes: Any, start: Any, space: Space, refused: str) -> Choices:  # Any: numbers or arrays
    """A branch for each entry of `sizes`; the first choice of each is the value in `start`."""
    branches = tuple(int(size) for size in np.ravel(sizes))
    instead = "Make them several smaller choices, such as the row and the column of a place, in a MultiDiscrete"
    require_few_choices(refused, sum(branches), instead)
    starts = np.ravel(start).astype(np.int64)
    return Choices(first, branches, starts if starts.any() else None, space.shape or (), np.dtype(space.dtype))


def _whole_numbers(space: spaces.Box, first: int, refused: str) -> Choices:
    """A branch for each entry, with a choice for each number from its lowest to its highest."""
    sizes = [high - low + 1 for low, high in zip(space.low.ravel().tolist(), space.high.ravel().tolist(), strict=True)]
    if max(sizes, default=0) > MOST_WHOLE_NUMBERS:
        raise NotSupportedError(
            f"{refused}: a Box of {space.dtype} must have at most {MOST_WHOLE_NUMBERS} values in each dimension, got"
            f" {max(sizes):,}. Make it a Box of floats and round its values in the environment"
        )
    return _choices(first, sizes, space.low, space, refused)


def _rescaling(space: spaces.Box) -> Rescaling | None:
    """None when every dimension already reaches from -1 to 1, which a dimension without bounds does."""
    low, high = space.low.astype(np.float64).ravel(), space.high.astype(np.float64).ravel()
    largest = float(np.finfo(space.low.dtype.name).max)  # spaces also write "no bound" as the largest float
    has_low, has_high = low > -largest, high < largest
    only_low, only_high = has_low & ~has_high, has_high & ~has_low
    from_ = np.select([only_low, has_low, only_high], [np.maximum(low, -1), low, np.minimum(high, 1) - 2], -1.0)
    to = np.select([only_low, has_high], [from_ + 2, np.where(only_high, from_ + 2, high)], 1.0)
    if np.all((from_ == -1.0) & (to == 1.0)):
        return None
    bounds = np.where(has_low, low, -np.inf), np.where(has_high, high, np.inf)
    return Rescaling(to / 2 + from_ / 2, to / 2 - from_ / 2, *bounds)  # halves: their sum may be infinite
