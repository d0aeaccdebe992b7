"""Whether experience that a Python program passes is of the behavior that learns from it."""

from __future__ import annotations

import numpy as np

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.experience import SEGMENT_FIELDS, columns_of
from rl_tui.engine.specs import BehaviorSpec, Trajectories

_COLUMNS = columns_of(Trajectories)


def require_experience(experience: object, spec: BehaviorSpec, memory_size: int) -> None:
    """It is a block of that behavior's trajectories. Raises ConfigError for anything else, with a line for each column.

    memory_size: of its policy.
    """
    if not isinstance(experience, Trajectories):
        raise ConfigError(f"experience: must be Trajectories, as collect() returns them, got {_described(experience)}")
    if wrong := [line for line in _differences(experience, spec, memory_size) if line]:
        raise ConfigError(f"experience: must be of {spec.name}:" + "".join(f"\n  {line}" for line in wrong))


def _differences(block: Trajectories, spec: BehaviorSpec, memory_size: int) -> list[str]:
    """A line for each column that is not as it must be, or an empty one."""
    rows, segments = np.size(block.rewards), np.size(block.lengths)
    found = [
        _observations(f"{prefix}observations", getattr(block, f"{prefix}observations"), spec, count)
        for prefix, count in (("", rows), ("next_", segments))
    ]
    mates, counts = block.next_mate_observations, block.next_mate_counts
    if mates is not None or counts is not None:
        found.append(
            _observations("next_mate_observations", mates, spec, int(np.sum(counts)) if counts is not None else 0)
        )
    for count, which in ((rows, _COLUMNS), (segments, SEGMENT_FIELDS)):
        for field in which:
            array, shape = getattr(block, field.name), (count, *field.shape(spec, memory_size))
            if array is not None or not field.is_optional:
                found.append(_difference(field.name, array, field.dtype, shape))
    if not any(found) and (rows == 0 or block.lengths.sum() != rows or block.lengths.min() < 1):
        found.append(f"lengths: must be at least 1 each and add up to the {rows} rows, got {block.lengths.sum()}")
    return found


def _observations(name: str, arrays: object, spec: BehaviorSpec, count: int) -> str:
    if not isinstance(arrays, tuple) or len(arrays) != len(spec.observations):
        number = len(arrays) if isinstance(arrays, tuple) else type(arrays).__name__
        return f"{name}: must be a tuple of {len(spec.observations)}, got {number}"
    pairs = zip(spec.observations, arrays, strict=True)
    lines = [_difference(f"{name}, {own.name}", array, own.dtype, (count, *own.shape)) for own, array in pairs]
    return "\n  ".join(line for line in lines if line)


def _difference(name: str, array: object, dtype: str, shape: tuple[int, ...]) -> str:
    found = f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else _described(array)
    must = f"{dtype}{list(shape)}"
    return "" if found == must else f"{name}: must be {must}, got {found}"


def _described(found: object) -> str:
    return "None" if found is None else f"a {type(found).__name__}"
