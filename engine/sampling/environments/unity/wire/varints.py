"""Whole numbers of seven bits a byte, as protobuf writes them; every byte but the last has its highest bit set.

Shapes: N numbers of B bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.specs import Int64


def write_varint(number: int) -> bytes:
    """The bytes of a number from 0."""
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    written.append(number)
    return bytes(written)


def read_varint(data: bytes, position: int, end: int, most: int = 4) -> tuple[int, int]:
    """A number of at most so many bytes and the position after it; (-1, position) for any other."""
    number = shift = 0
    for at in range(position, min(position + most, end)):
        byte = data[at]
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at + 1
        shift += 7
    return -1, position


def join_varints(columns: NDArray[np.uint8]) -> Int64:
    """i64[N] of u8[N, B], all numbers being of B <= 10 bytes, of which ten are a number below zero."""
    numbers = (columns[:, 0] & 127).astype(np.int64)
    for byte in range(1, columns.shape[1]):
        numbers |= (columns[:, byte] & 127).astype(np.int64) << 7 * byte
    return numbers
