"""Checks that a saved replay buffer fits a layout."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.errors import CheckpointError
from rl_tui.engine.learning.replay.layout import ReplayLayout, stored_name
from rl_tui.engine.specs import Ending, State

VALUES = ("num_added", "end", "largest_priority")


def require_fit(saved: State, layout: ReplayLayout) -> None:
    """Raise CheckpointError naming the first column that does not fit this layout, or inconsistent segments."""
    num_rows = len(saved.tensors.get("remaining", ()))
    expected = {name: ((num_rows, *shape), dtype) for name, (shape, dtype) in layout.columns.items()}
    for column in layout.optional:
        if (name := stored_name(column)) in saved.tensors:
            expected[name] = (num_rows, *column.shape(layout.spec, 0)), np.dtype(column.dtype)
    if "priorities" in saved.tensors:  # optional with prioritized replay, ignored without
        expected["priorities"] = (num_rows,), np.dtype(np.float64)
    for name, (shape, dtype) in expected.items():
        described = f"{name}, expected {dtype}{list(shape)}"
        if name not in saved.tensors:
            raise CheckpointError(f"the saved replay buffer has no {described}")
        found = saved.tensors[name]
        if (found.shape, found.dtype) != (shape, dtype):
            raise CheckpointError(f"the saved replay buffer has {found.dtype}{list(found.shape)} as {described}")
    if unknown := sorted(saved.tensors.keys() - expected.keys()):
        raise CheckpointError(f"the saved replay buffer has {', '.join(unknown)}, which this run does not have")
    if any(not isinstance(saved.values.get(name), (int, float)) for name in VALUES):
        raise CheckpointError(f"the saved replay buffer lacks one of {', '.join(VALUES)}")
    if not _are_whole(saved):
        raise CheckpointError("the segments of the saved replay buffer are inconsistent")


def _are_whole(saved: State) -> bool:
    """Whether every step is followed by the next one of its segment, or by the row that closes it."""
    names = "remaining", "position", "ending", "added"
    columns: tuple[NDArray[Any], ...] = tuple(saved.tensors[name] for name in names)
    remaining, position, ending, added = columns
    if not len(remaining):
        return True
    if (added[1:] < added[:-1]).any():
        return False
    steps = np.flatnonzero(remaining)
    if remaining[-1] or remaining.min() < 0 or not np.isin(ending[steps], list(Ending)).all():
        return False
    inside = steps[remaining[steps] > 1]
    return bool(
        (remaining[steps + 1] == remaining[steps] - 1).all() and (position[inside + 1] == position[inside] + 1).all()
    )
