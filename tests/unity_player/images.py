"""PNG files as Unity writes them: 8 bits, red, green and blue, the top row first."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png(pixels: NDArray[np.uint8]) -> bytes:
    """The file of an image u8[H, W, 3]."""
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # every row begins with its filter: 0, none
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows.tobytes(), 1)) + _chunk(b"IEND")


def _chunk(kind: bytes, content: bytes = b"") -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def pngs(channels: NDArray[np.float32]) -> bytes:
    """The files of an image f32[T, H, W] from 0 to 1, one after another, for three channels each."""
    levels = np.round(channels * 255).astype(np.uint8)
    return b"".join(png(levels[first : first + 3].transpose(1, 2, 0)) for first in range(0, len(levels), 3))
