"""What the agent of a .demo file observes, as its first record says."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Literal

from rl_tui.engine.sampling.environments.observation_names import unique_names
from rl_tui.engine.sampling.environments.unity.unity_messages_pb2 import GOAL_SIGNAL, NONE, ObservationProto
from rl_tui.engine.sampling.environments.unity.wire.errors import WireError
from rl_tui.engine.sampling.environments.unity.wire.images import SIGNATURE
from rl_tui.engine.sampling.environments.unity.wire.sensors import Sensor
from rl_tui.engine.specs import ObservationSpec

_TRANSLATIONAL = 2  # a bit of an axis' dimension property
_LARGEST = 2**26  # values of an observation: more is a mistake, and would need gigabytes for a few steps
_PNG_SIZE = struct.Struct(">II")  # width and height
_PNG_SIZE_BEGIN = len(SIGNATURE) + 8  # after the length and the kind of the first chunk

ImageOrder = Literal["CHW", "HWC"]


def sensors_of_file(
    behavior: str, observations: Sequence[ObservationProto], image_order: ImageOrder
) -> tuple[Sensor | None, ...]:
    """A sensor for each observation; None for one without values, as old packages write for an agent without vectors.

    image_order: of the floats of images that are not compressed; see wire/packages.py. Raises WireError.
    """
    names = unique_names(found.name for found in observations)
    return tuple(_sensor(behavior, name, found, image_order) for name, found in zip(names, observations, strict=True))


def _sensor(behavior: str, name: str, found: ObservationProto, image_order: ImageOrder) -> Sensor | None:
    shape = tuple(found.shape)
    where = f"{behavior}: observation {name!r}"
    if not 1 <= len(shape) <= 3 or any(size < 0 for size in shape):
        raise WireError(f"{where} must have one to three axes of at least 0, got the shape {list(shape)}")
    if math.prod(shape) > _LARGEST:
        raise WireError(f"{where} must have at most {_LARGEST:,} values, got the shape {list(shape)}")
    if math.prod(shape) == 0:
        return None
    dtype: Literal["float32", "uint8"] = "float32"
    has_rows_first = False
    if len(shape) == 3:
        dtype = "float32" if found.compression_type == NONE else "uint8"
        is_announced_so = _announces_rows_first(found, shape)
        has_rows_first = is_announced_so or image_order == "HWC"
        if not is_announced_so:
            shape = shape[1], shape[2], shape[0]
    spec = ObservationSpec(name, shape, dtype, is_goal=found.observation_type == GOAL_SIGNAL)
    return Sensor(behavior, spec, tuple(found.shape), has_rows_first)


def _announces_rows_first(found: ObservationProto, shape: tuple[int, ...]) -> bool:
    """Whether the shape of an image is H, W, C, as in packages before version 3.0.0, instead of C, H, W.

    Version 2 says so with the properties of the axes. Older ones have none; other programs may leave them out, too, so
    that a PNG file's own size decides where it can.
    """
    properties = found.dimension_properties
    if properties:
        return bool(properties[0] & _TRANSLATIONAL)
    if found.compression_type == NONE or len(found.compressed_data) < _PNG_SIZE_BEGIN + _PNG_SIZE.size:
        return True
    width, height = _PNG_SIZE.unpack_from(found.compressed_data, _PNG_SIZE_BEGIN)
    return (height, width) != shape[1:]
