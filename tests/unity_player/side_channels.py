"""Side channels, as a player reads and writes them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TypeAlias
from uuid import UUID

from tests.unity_player import analytics

Json: TypeAlias = "float | int | str | list[float] | list[int]"

ENGINE = UUID("e951342c-4f7e-11ea-b238-784f4387d1f7")
PARAMETERS = UUID("534c891e-810f-11ea-a9d0-822485860400")
STATISTICS = UUID("a1d8f7b7-cec8-50f9-b78b-d3e165a78520")
PROPERTIES = UUID("60ccf7d0-4f7e-11ea-b238-784f4387d1f7")
ANALYTICS = UUID("b664a4a9-d86f-5a5f-95cb-e8353a7e8356")
ECHO = UUID("621f0a70-4f87-11ea-a6bf-784f4387d1f7")  # what comes on it goes back with the next message

ENGINE_SETTINGS = {
    0: ("resolution", "<ii"),
    1: ("quality_level", "<i"),
    2: ("time_scale", "<f"),
    3: ("target_frame_rate", "<i"),
    4: ("capture_frame_rate", "<i"),
}
SAMPLERS = {0: "uniform", 1: "gaussian", 2: "multirange"}


def packed(channel: UUID, payload: bytes) -> bytes:
    """One message of a channel."""
    return channel.bytes_le + struct.pack("<i", len(payload)) + payload


def text(words: str) -> bytes:
    """A string of ASCII characters."""
    return struct.pack("<i", len(words)) + words.encode("ascii")


def statistic(name: str, value: float, method: int) -> bytes:
    """A message of statistics. method: 0 average, 1 most recent, 2 sum, 3 histogram."""
    return packed(STATISTICS, text(name) + struct.pack("<fi", value, method))


def float_property(name: str, value: float) -> bytes:
    """A message of float properties."""
    return packed(PROPERTIES, text(name) + struct.pack("<f", value))


def unpacked(content: bytes) -> Iterator[tuple[UUID, bytes]]:
    """The messages of a reply. Raises ValueError where one is truncated, as Unity does."""
    place = 0
    while place < len(content):
        if len(content) < place + 20:
            raise ValueError(f"side channels: truncated at byte {place} of {len(content)}")
        channel = UUID(bytes_le=content[place : place + 16])
        (length,) = struct.unpack_from("<i", content, place + 16)
        place += 20 + length
        if length < 0 or len(content) < place:
            raise ValueError(f"side channels: a message of {length} bytes at byte {place - length} of {len(content)}")
        yield channel, content[place - length : place]


def described(channel: UUID, payload: bytes) -> dict[str, Json]:
    """What a message says, for the log."""
    match channel:
        case _ if channel == ENGINE:
            return _engine(payload)
        case _ if channel == PARAMETERS:
            return _parameter(payload)
        case _ if channel == PROPERTIES:
            name, place = _text(payload)
            return {"channel": "float properties", "key": name, "value": struct.unpack_from("<f", payload, place)[0]}
        case _ if channel == ANALYTICS:
            return {"channel": "training analytics", **analytics.described(payload)}
    return {"channel": str(channel), "payload": payload.hex()}


def _text(payload: bytes) -> tuple[str, int]:
    (length,) = struct.unpack_from("<i", payload)
    return payload[4 : 4 + length].decode("ascii"), 4 + length


def _engine(payload: bytes) -> dict[str, Json]:
    name, form = ENGINE_SETTINGS[struct.unpack_from("<i", payload)[0]]
    values = struct.unpack(form, payload[4:])
    return {"channel": "engine configuration", "key": name, "value": values[0] if len(values) == 1 else list(values)}


def _parameter(payload: bytes) -> dict[str, Json]:
    key, place = _text(payload)
    (kind,) = struct.unpack_from("<i", payload, place)
    said: dict[str, Json] = {"channel": "environment parameters", "key": key}
    if kind == 0:
        (value,) = struct.unpack("<f", payload[place + 4 :])
        return said | {"value": value}
    seed, sampler = struct.unpack_from("<ii", payload, place + 4)
    rest = payload[place + 12 :]
    if sampler == 2:  # a list has its length before it
        rest = rest[4:]
    numbers = list(struct.unpack(f"<{len(rest) // 4}f", rest))
    return said | {"sampler": SAMPLERS[sampler], "seed": seed, "arguments": numbers}
