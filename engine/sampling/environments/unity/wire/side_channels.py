"""Messages of side channels: what is not about agents, in both directions.

All messages that travel together are written one after another: 16 bytes of the channel, the payload's length, the
payload.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias
from uuid import UUID

from rl_tui.engine.sampling.environments.unity.wire.errors import WireError
from rl_tui.engine.sampling.environments.unity.wire.payload import INT32, PayloadReader, PayloadWriter

ENGINE_CONFIGURATION = UUID("e951342c-4f7e-11ea-b238-784f4387d1f7")  # to Unity
ENVIRONMENT_PARAMETERS = UUID("534c891e-810f-11ea-a9d0-822485860400")  # to Unity
STATISTICS = UUID("a1d8f7b7-cec8-50f9-b78b-d3e165a78520")  # from Unity
FLOAT_PROPERTIES = UUID("60ccf7d0-4f7e-11ea-b238-784f4387d1f7")  # in both directions, for a user's own
TRAINING_ANALYTICS = UUID("b664a4a9-d86f-5a5f-95cb-e8353a7e8356")  # to Unity

Method: TypeAlias = Literal["average", "last", "sum", "histogram"]
Sampler: TypeAlias = Literal["uniform", "gaussian", "multirange"]

METHODS: tuple[Method, ...] = ("average", "last", "sum", "histogram")  # by their numbers on the wire
SAMPLERS: tuple[Sampler, ...] = ("uniform", "gaussian", "multirange")

_HEADER_BYTES = 20


def write_message(channel: UUID, payload: bytes) -> bytes:
    """One message for a side channel; those that travel together are joined."""
    return channel.bytes_le + INT32.pack(len(payload)) + payload


def read_messages(data: bytes) -> list[tuple[UUID, bytes]]:
    """The channel and the payload of each message, in order. Raises WireError where the bytes end too early."""
    messages = []
    position = 0
    while position < len(data):
        begin = position + _HEADER_BYTES
        if begin > len(data):
            raise WireError(f"side channels: a message must begin with 20 bytes, got {len(data) - position}")
        channel = UUID(bytes_le=data[position : position + 16])
        (length,) = INT32.unpack_from(data, position + 16)
        position = begin + length
        if not begin <= position <= len(data):
            raise WireError(f"side channel {channel}: a message of {length} bytes must follow, got {len(data) - begin}")
        messages.append((channel, data[begin:position]))
    return messages


def resolution(width: int, height: int) -> bytes:
    """Message for the engine: the size of its window, in pixels."""
    return _engine(PayloadWriter().int32(0).int32(width).int32(height))


def quality_level(level: int) -> bytes:
    """Message for the engine: the number of a quality level of the project."""
    return _engine(PayloadWriter().int32(1).int32(level))


def time_scale(scale: float) -> bytes:
    """Message for the engine: simulated seconds in a second."""
    return _engine(PayloadWriter().int32(2).float32(scale))


def target_frame_rate(rate: int) -> bytes:
    """Message for the engine: frames in a second, -1 = as many as it can."""
    return _engine(PayloadWriter().int32(3).int32(rate))


def capture_frame_rate(rate: int) -> bytes:
    """Message for the engine: simulated frames in a simulated second, 0 = as time passes."""
    return _engine(PayloadWriter().int32(4).int32(rate))


def environment_parameter(name: str, value: float) -> bytes:
    """Message that sets a number that the world asks for by name."""
    return write_message(ENVIRONMENT_PARAMETERS, PayloadWriter().text(name).int32(0).float32(value).data)


def sampled_parameter(name: str, seed: int, sampler: Sampler, numbers: Sequence[float]) -> bytes:
    """Message that lets the world draw a number itself.

    numbers: lowest and highest for uniform, mean and standard deviation for gaussian, the bounds of each interval one
    after another for multirange.
    """
    writer = PayloadWriter().text(name).int32(1).int32(seed).int32(SAMPLERS.index(sampler))
    if sampler == "multirange":
        writer.floats(numbers)
    else:
        lowest, highest = numbers
        writer.float32(lowest).float32(highest)
    return write_message(ENVIRONMENT_PARAMETERS, writer.data)


def float_property(name: str, value: float) -> bytes:
    """Message with a number of a user's own."""
    return write_message(FLOAT_PROPERTIES, PayloadWriter().text(name).float32(value).data)


def read_float_property(payload: bytes) -> tuple[str, float]:
    """Its name and value. Raises WireError."""
    reader = PayloadReader(payload, "side channel of float properties")
    return reader.text(), reader.float32()


def read_statistic(payload: bytes) -> tuple[str, float, Method]:
    """Its name, its value, and how the values of one summary are combined. Raises WireError."""
    reader = PayloadReader(payload, "side channel of statistics")
    name, value, method = reader.text(), reader.float32(), reader.int32()
    if not 0 <= method < len(METHODS):
        raise WireError(f"statistic {name!r}: the method must be a number from 0 to {len(METHODS) - 1}, got {method}")
    return name, value, METHODS[method]


def read_engine_setting(payload: bytes) -> tuple[str, tuple[float, ...]]:
    """The name of the function above that made it, and its arguments. Raises WireError."""
    reader = PayloadReader(payload, "side channel of the engine")
    match reader.int32():
        case 0:
            return "resolution", (reader.int32(), reader.int32())
        case 1:
            return "quality_level", (reader.int32(),)
        case 2:
            return "time_scale", (reader.float32(),)
        case 3:
            return "target_frame_rate", (reader.int32(),)
        case 4:
            return "capture_frame_rate", (reader.int32(),)
        case number:
            raise WireError(f"side channel of the engine: a setting must have a number from 0 to 4, got {number}")


def read_environment_parameter(payload: bytes) -> tuple[str, float | tuple[int, Sampler, list[float]]]:
    """Its name, and its value or the seed, sampler and numbers it is drawn with. Raises WireError."""
    reader = PayloadReader(payload, "side channel of environment parameters")
    name, kind = reader.text(), reader.int32()
    if kind == 0:
        return name, reader.float32()
    seed, sampler = reader.int32(), reader.int32()
    if kind != 1 or not 0 <= sampler < len(SAMPLERS):
        raise WireError(f"environment parameter {name!r}: must be a value or one of {len(SAMPLERS)} samplers")
    numbers = reader.floats() if SAMPLERS[sampler] == "multirange" else [reader.float32(), reader.float32()]
    return name, (seed, SAMPLERS[sampler], numbers)


def _engine(writer: PayloadWriter) -> bytes:
    return write_message(ENGINE_CONFIGURATION, writer.data)
