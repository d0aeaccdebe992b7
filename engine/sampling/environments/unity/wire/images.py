"""Images that come as PNG files, one after another, with the channel of the image that each of their channels is for.

Shapes: H, W, C height, width and channels of the image; T channels of all its files.
"""

from __future__ import annotations

import struct
import zlib
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rl_tui.engine.sampling.environments.unity.wire.errors import WireError
from rl_tui.engine.specs import Observation

Pixels: TypeAlias = NDArray[np.uint8]

SIGNATURE = b"\x89PNG\r\n\x1a\n"

_CHUNK = struct.Struct(">I4s")  # the length of its content, and its kind; a checksum follows the content
_CHECKSUM = struct.Struct(">I")
_HEADER = struct.Struct(">IIBBBBB")  # width, height, bits, color type, compression, filter, interlacing
_MODES = {0: "L", 2: "RGB", 6: "RGBA"}  # Pillow's names of the color types


def decode(data: bytes, mapping: tuple[int, ...], image: Observation) -> None:
    """Fill `image` [H, W, C], which is uint8, or float32 from 0 to 1.

    mapping: for each of the T channels, the one of the image that it counts towards, -1 for none; empty without one.
    Several channels for one are averaged, bytes then rounded. Raises WireError for files that are damaged, or that do
    not have this size.
    """
    height, width, num_channels = image.shape
    files = _decode_files(data, (width, height))
    pixels = files[0] if len(files) == 1 else np.concatenate(files, axis=2)
    sources = _sources(mapping or _implied(files, num_channels), pixels.shape[2], num_channels)
    if all(len(channels) == 1 for channels in sources):
        order = [channel for (channel,) in sources]
        chosen = pixels if order == list(range(pixels.shape[2])) else pixels[:, :, order]
    else:
        chosen = np.stack([pixels[:, :, list(channels)].mean(2, np.float32) for channels in sources], axis=2)
    if image.dtype == np.uint8:
        image[:] = chosen if chosen.dtype == np.uint8 else np.rint(chosen)
    else:
        np.divide(chosen, np.float32(255), out=image, dtype=np.float32)


def _implied(files: list[Pixels], num_channels: int) -> tuple[int, ...]:
    """The mapping where there is none: gray is the mean of the first file's channels, else the first ones are kept."""
    total: int = sum(file.shape[2] for file in files)
    if num_channels == 1:
        first: int = files[0].shape[2]
        return (0,) * first + (-1,) * (total - first)
    return tuple(channel if channel < num_channels else -1 for channel in range(total))


@lru_cache(maxsize=64)
def _sources(mapping: tuple[int, ...], total: int, num_channels: int) -> tuple[tuple[int, ...], ...]:
    """For each of the C channels, those of the T that it is made of. Raises WireError."""
    if len(mapping) != total:
        raise WireError(f"its PNG files must have the {len(mapping)} channels of its mapping, got {total}")
    sources = tuple(tuple(i for i, to in enumerate(mapping) if to == channel) for channel in range(num_channels))
    if min(mapping) < -1 or max(mapping) >= num_channels or not all(sources):
        found = list(mapping)
        raise WireError(f"its PNG files must give each of its {num_channels} channels, got the mapping {found}")
    return sources


def _decode_files(data: bytes, size: tuple[int, int]) -> list[Pixels]:
    """u8[H, W, channels] of each file; what is between files is skipped."""
    files = []
    begin = 0 if data.startswith(SIGNATURE) else -1
    while begin >= 0:
        pixels, end = _decode_file(data, begin, size)
        files.append(pixels)
        begin = data.find(SIGNATURE, end)
    if not files:
        raise WireError(f"it must be a PNG file, got {len(data)} bytes that begin with {data[:8]!r}")
    return files


def _decode_file(data: bytes, begin: int, size: tuple[int, int]) -> tuple[Pixels, int]:
    """u8[H, W, channels] of the file at `begin`, and its end. Raises WireError.

    Pillow's reader of PNG files takes a third longer for a small image than its decoder of their pixels alone.
    """
    kind, header, position = _chunk(data, begin + len(SIGNATURE))
    if kind != b"IHDR" or len(header) != _HEADER.size:
        raise WireError(f"a PNG file must begin with its header, got {kind!r}")
    width, height, bits, color, _, _, is_interlaced = _HEADER.unpack(header)
    if (width, height) != size:
        raise WireError(f"a PNG file must be {size[0]}x{size[1]} pixels large, got {width}x{height}")
    if bits != 8 or color not in _MODES:
        raise WireError(f"a PNG file must have 8 bits for gray, RGB or RGBA, got {bits} bits of color type {color}")
    parts = []
    while kind != b"IEND":
        kind, content, position = _chunk(data, position)
        if kind == b"IDAT":
            parts.append(content)
    try:
        pixels = np.asarray(
            Image.frombytes(_MODES[color], size, b"".join(parts), "zip", _MODES[color], int(is_interlaced != 0))
        )
    except (ValueError, OSError) as error:
        raise WireError(f"a PNG file must hold an image, got {error}") from error
    return pixels.reshape(height, width, -1), position


def _chunk(data: bytes, position: int) -> tuple[bytes, bytes, int]:
    """The kind and the content of a chunk, and where the next one begins. Raises WireError for one that is damaged."""
    begin = position + _CHUNK.size
    if begin > len(data):
        raise WireError(f"a PNG file must end with IEND, got {len(data)} bytes without it")
    length, kind = _CHUNK.unpack_from(data, position)
    end = begin + length
    if end + _CHECKSUM.size > len(data):
        raise WireError(f"a PNG file must have {length} bytes in {kind!r}, got {len(data) - begin}")
    content = data[begin:end]
    (checksum,) = _CHECKSUM.unpack_from(data, end)
    if zlib.crc32(content, zlib.crc32(kind)) != checksum:
        raise WireError(f"a PNG file must have the checksum of its content in {kind!r}, got {checksum:08x}")
    return kind, content, end + _CHECKSUM.size
