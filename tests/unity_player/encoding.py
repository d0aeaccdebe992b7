"""AgentInfos of float observations, written without message objects: a player must not be what a run waits for."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import numpy as np

from tests.unity_player.messages import Sensor

REWARD = struct.Struct("<Bf")


def varint(number: int) -> bytes:
    """A number that is not negative, in 7 bits per byte, the lowest first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


class AgentTemplate:
    """Writes one element of AgentInfoListProto, without a mask, as protobuf would: zeros are left out."""

    def __init__(self, sensors: Sequence[Sensor]) -> None:
        ends = np.cumsum([4 * math.prod(sensor.shape) for sensor in sensors]).tolist()
        self._parts = [
            (*_around(sensor), begin, end) for sensor, begin, end in zip(sensors, [0, *ends], ends, strict=False)
        ]

    def info(
        self,
        id: int,
        reward: float,
        floats: bytes,
        interrupted: bool | None = None,
        group_id: int = 0,
        group_reward: float = 0.0,
    ) -> bytes:
        """floats: of all observations, one after another. interrupted: of an episode that is over."""
        parts = [REWARD.pack(0x3D, reward)] if reward else []
        if interrupted is not None:
            parts.append(b"\x40\x01\x48\x01" if interrupted else b"\x40\x01")
        if id:
            parts.append(b"\x50" + varint(id))
        for before, after, begin, end in self._parts:
            parts += (before, floats[begin:end], after)
        if group_id:
            parts.append(b"\x70" + varint(group_id))
        if group_reward:
            parts.append(REWARD.pack(0x7D, group_reward))
        content = b"".join(parts)
        return b"\x0a" + varint(len(content)) + content


def _around(sensor: Sensor) -> tuple[bytes, bytes]:
    """The bytes of an observation before its floats, and after them."""
    whole = sensor.message(np.full(sensor.shape, 1.5, np.float32)).SerializeToString()
    floats = np.full(sensor.shape, 1.5, "<f4").tobytes()
    place = whole.index(floats)
    return b"\x6a" + varint(len(whole)) + whole[:place], whole[place + len(floats) :]
