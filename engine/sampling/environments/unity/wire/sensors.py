"""What the agents of a behavior observe, and how it comes.

Shapes: N agents; H, W, C height, width and channels; D floats of an observation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.sampling.environments.observation_names import unique_names
from rl_tui.engine.sampling.environments.unity.unity_messages_pb2 import (
    GOAL_SIGNAL,
    NONE,
    BrainParametersProto,
    ObservationProto,
)
from rl_tui.engine.sampling.environments.unity.wire.errors import WireError
from rl_tui.engine.sampling.environments.unity.wire.packages import announces_rows_first
from rl_tui.engine.specs import ActionSpec, Float32, Observation, ObservationSpec, UnityPackage

Rows: TypeAlias = "slice | int | NDArray[np.intp]"  # which of the N

_TRANSLATIONAL, _VARIABLE_SIZE = 2, 4  # bits of an axis' dimension property
_LARGEST_IMAGE = 2**26  # 4096x4096 with four channels: more is a mistake, and would need gigabytes for a few agents


@dataclass(frozen=True, slots=True)
class Sensor:
    """One observation. wire_shape: as on the wire, an image being C, H, W. has_rows_first: its floats are H, W, C."""

    behavior: str
    spec: ObservationSpec
    wire_shape: tuple[int, ...]
    has_rows_first: bool

    @property
    def where(self) -> str:
        """The behavior and the observation, for errors."""
        return f"{self.behavior}: observation {self.spec.name!r}"

    def require(self, found: ObservationProto) -> None:
        """Return if an observation has this sensor's shape, and its floats if it is not compressed; else WireError."""
        if tuple(found.shape) != self.wire_shape:
            got = list(found.shape)
            raise WireError(f"{self.where} must keep the shape {list(self.wire_shape)} on the wire, got {got}")
        size = len(found.float_data.data)
        if found.compression_type == NONE and size != math.prod(self.wire_shape):
            raise WireError(f"{self.where} must have {math.prod(self.wire_shape)} floats, got {size}")
        if found.compression_type != NONE and self.spec.kind != "image":
            raise WireError(f"{self.where} must not be compressed: only images can be")

    def place(self, column: Observation, rows: Rows, floats: Float32) -> None:
        """Write floats [n, D] into these rows of `column` [N, ...]. Raises WireError for a byte that is not finite."""
        if self.spec.kind != "image" or self.has_rows_first:
            values = floats.reshape(-1, *self.spec.shape)
        else:
            values = floats.reshape(-1, *self.wire_shape).transpose(0, 2, 3, 1)
        if self.spec.dtype == "uint8":
            if not np.isfinite(values).all():
                raise WireError(f"{self.where} must be finite")
            values = np.rint(values * np.float32(255)).clip(0, 255)
        column[rows] = values


def sensors_of(behavior: str, observations: Sequence[ObservationProto], package: UnityPackage) -> tuple[Sensor, ...]:
    """The sensors of an agent with these observations. Raises WireError for what cannot be learned from."""
    names = unique_names(found.name for found in observations)
    return tuple(_sensor(behavior, name, found, package) for name, found in zip(names, observations, strict=True))


def action_spec_of(behavior: str, brain: BrainParametersProto) -> ActionSpec:
    """Its actions, from the deprecated fields of a package that has no other. Raises WireError."""
    found = brain.action_spec
    continuous, branches = found.num_continuous_actions, tuple(found.discrete_branch_sizes)
    if continuous == 0 and found.num_discrete_actions == 0:
        sizes = tuple(brain.vector_action_size_deprecated)
        is_continuous = brain.vector_action_space_type_deprecated == 1
        continuous, branches = (sum(sizes[:1]), ()) if is_continuous else (0, sizes)
    if continuous < 0 or any(size < 1 for size in branches):
        raise WireError(
            f"{behavior}: actions must have at least 0 continuous dimensions and 1 choice in each branch, "
            f"got {continuous} and {list(branches)}"
        )
    return ActionSpec(continuous, branches)


def _sensor(behavior: str, name: str, found: ObservationProto, package: UnityPackage) -> Sensor:
    shape, properties = tuple(found.shape), tuple(found.dimension_properties)
    where = f"{behavior}: observation {name!r}"
    if not 1 <= len(shape) <= 3 or any(size < 1 for size in shape):
        raise WireError(f"{where} must have one to three axes of at least 1, got the shape {list(shape)}")
    if len(shape) == 2 and not (properties and properties[0] & _VARIABLE_SIZE):
        raise WireError(f"{where} has two axes: the first must be of variable size, got the properties {properties}")
    dtype: Literal["float32", "uint8"] = "float32"
    if len(shape) == 3:
        _require_image(where, shape, properties, package.version)
        shape = shape[1], shape[2], shape[0]
        dtype = "float32" if found.compression_type == NONE else "uint8"
    spec = ObservationSpec(name, shape, dtype, is_goal=found.observation_type == GOAL_SIGNAL)
    return Sensor(behavior, spec, tuple(found.shape), package.image_order == "HWC")


def _require_image(where: str, shape: tuple[int, ...], properties: tuple[int, ...], package_version: str) -> None:
    """Return for channels, height and width; WireError for what packages before version 3 send, and for huge images."""
    if announces_rows_first(package_version) or (properties and properties[0] & _TRANSLATIONAL):
        raise WireError(
            f"{where} is an image of height, width and channels, as the package com.unity.ml-agents {package_version} "
            "sends it: build the player with version 3.0.0 of the package or a newer one"
        )
    if math.prod(shape) > _LARGEST_IMAGE:
        raise WireError(f"{where} must have at most {_LARGEST_IMAGE:,} values, got the shape {list(shape)}")
