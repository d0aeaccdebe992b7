"""The leaves of nested observation and action spaces, and what is said of those that cannot be used."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rl_tui.engine.errors import NotSupportedError

Array: TypeAlias = NDArray[np.generic]
Path: TypeAlias = tuple[str | int, ...]
Space: TypeAlias = spaces.Space[Any]  # Any: only the space knows the type of its elements

MOST_CHOICES = 10_000  # of one leaf: each is a column of an observation, or an output of a policy

_INSTEAD = {
    "Text": "use numbers, such as the place of the text in a list, as a Discrete",
    "Graph": "use Boxes of a fixed size for its nodes and edges",
    "OneOf": "use a Dict of its spaces, with a Discrete that says which of them counts",
    "Sequence": "their length is not bounded. Use a Box of as many rows as there are at most; an environment of"
    " rl-tui's own protocol may have a set, as an ObservationSpec of shape (most entities, features)",
}


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


def is_empty(leaf: Space) -> bool:
    """Whether its elements hold no numbers, since an axis has the length 0."""
    return leaf.shape is not None and math.prod(leaf.shape) == 0


def leaf_name(path: Path, whole: str) -> str:
    """The keys joined by dots; `whole` for a space that is not nested."""
    return ".".join(map(str, path)) or whole


def refused_space(refused: str, space: Space) -> NotSupportedError:
    """The error about a kind of spaces that is not supported, and what to use instead. refused: what has it."""
    kind = type(space).__name__
    instead = next((text for name, text in _INSTEAD.items() if kind == name), "use Box, Discrete, Dict or Tuple")
    return NotSupportedError(f"{refused}: {kind} spaces are not supported: {instead}")


def require_few_choices(refused: str, num_choices: int, instead: str) -> None:
    """Raise NotSupportedError for more choices than networks can have columns. instead: what to do."""
    if num_choices > MOST_CHOICES:
        raise NotSupportedError(
            f"{refused}: must have at most {MOST_CHOICES:,} choices, got {num_choices:,}. {instead}"
        )
