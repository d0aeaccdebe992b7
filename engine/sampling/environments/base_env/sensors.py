"""What the agents of a BaseEnv observe: its description, and its arrays as columns.

Shapes: N agents; H, W, C height, width and channels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.environments.base_env import interface
from rl_tui.engine.sampling.environments.observation_names import unique_names
from rl_tui.engine.sampling.wrong_values import in_words
from rl_tui.engine.specs import ActionSpec, Observation, ObservationSpec

_TRANSLATIONAL, _VARIABLE_SIZE = 2, 4  # bits of an axis' dimension property
_GOAL_SIGNAL = 1


@dataclass(frozen=True, slots=True)
class Sensor:
    """One observation. has_channels_first: its arrays are [N, C, H, W]."""

    spec: ObservationSpec
    has_channels_first: bool = False

    def read(self, values: NDArray[Any]) -> Observation:
        """The column [N, ...] of an array. One of another shape stays as it is: the pool refuses it by name."""
        if self.has_channels_first and values.ndim == 4:
            values = values.transpose(0, 2, 3, 1)
        return np.ascontiguousarray(values, self.spec.dtype)


def sensors_of(
    behavior: str, specs: Sequence[interface.ObservationSpec], first: Sequence[NDArray[Any]]
) -> tuple[Sensor, ...]:
    """The sensors of a behavior's agents. first: arrays of some of them, whose type says what an image's is.

    Raises EnvironmentFailure for what cannot be learned from.
    """
    require_count(behavior, first, specs)
    names = unique_names(str(getattr(spec, "name", "") or "") for spec in specs)
    return tuple(
        _sensor(behavior, name, spec, np.asarray(values))
        for name, spec, values in zip(names, specs, first, strict=True)
    )


def require_count(behavior: str, found: Sequence[object], expected: Sequence[object]) -> None:
    """There are as many arrays as observations. Raises EnvironmentFailure."""
    if not hasattr(found, "__len__"):
        raise EnvironmentFailure(f"{behavior}: obs must be a list of arrays, got {in_words(found)}")
    if len(found) != len(expected):
        raise EnvironmentFailure(f"{behavior}: obs must have {len(expected)} arrays, got {len(found)}")


def action_spec_of(behavior: str, found: interface.ActionSpec) -> ActionSpec:
    """The actions of a behavior's agents. Raises EnvironmentFailure."""
    continuous, branches = int(found.continuous_size), tuple(map(int, found.discrete_branches))
    if continuous < 0 or any(size < 1 for size in branches):
        raise EnvironmentFailure(
            f"{behavior}: actions must have at least 0 continuous dimensions and 1 choice in each branch, "
            f"got {continuous} and {list(branches)}"
        )
    return ActionSpec(continuous, branches)


def _sensor(behavior: str, name: str, found: interface.ObservationSpec, first: NDArray[Any]) -> Sensor:
    shape, properties = tuple(map(int, found.shape)), tuple(map(int, found.dimension_property))
    where = f"{behavior}: observation {name!r}"
    if not 1 <= len(shape) <= 3 or math.prod(shape) < 1:
        raise EnvironmentFailure(f"{where} must have one to three axes of at least 1, got the shape {list(shape)}")
    if len(shape) == 2 and not (properties and properties[0] & _VARIABLE_SIZE):
        raise EnvironmentFailure(
            f"{where} has two axes: the first must be of variable size, got the dimension_property {list(properties)}"
        )
    is_goal = getattr(found.observation_type, "value", found.observation_type) == _GOAL_SIGNAL
    if len(shape) < 3:
        return Sensor(ObservationSpec(name, shape, is_goal=is_goal))
    dtype: Literal["float32", "uint8"] = "uint8" if first.dtype == np.uint8 else "float32"
    # before version 1.0 of mlagents_envs an image was H, W, C, of which the first two are those to convolve over
    has_channels_first = not (properties and properties[0] & _TRANSLATIONAL)
    if has_channels_first:
        shape = shape[1], shape[2], shape[0]
    return Sensor(ObservationSpec(name, shape, dtype, is_goal), has_channels_first)
