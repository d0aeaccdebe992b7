"""The leaves of nested observation and action spaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.generic]
Path: TypeAlias = tuple[str | int, ...]
Space: TypeAlias = spaces.Space[Any]  # Any: only the space knows the type of its elements


def leaves(space: Space, path: Path = ()) -> Iterator[tuple[Path, Space]]:
    """Every space inside Dict and Tuple spaces, with the keys that lead to it, in the space's own order."""
    if isinstance(space, spaces.Dict):
        for key, child in space.spaces.items():
            yield from leaves(child, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for index, child in enumerate(space.spaces):
            yield from leaves(child, (*path, index))
    else:
        yield path, space


def leaf_name(path: Path, whole: str) -> str:
    """The keys joined by dots; `whole` for a space that is not nested."""
    return ".".join(map(str, path)) or whole
