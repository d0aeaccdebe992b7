"""Images that come as PNG files."""

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from rl_tui.engine.sampling.environments.unity.unity_messages_pb2 import AgentInfoProto
from rl_tui.engine.sampling.environments.unity.wire.agents import BehaviorReader
from rl_tui.engine.sampling.environments.unity.wire.errors import WireError
from rl_tui.engine.sampling.environments.unity.wire.images import SIGNATURE, decode
from tests.sampling.unity.agent_infos import VERSION, brain, image, listed, png

CHANCE = np.random.default_rng(3)
FIRST, SECOND = (CHANCE.integers(0, 256, (6, 5, 3), np.uint8) for _ in range(2))
BOTH = np.concatenate((FIRST, SECOND), axis=2)


def decoded(data: bytes, mapping: tuple[int, ...] = (), num_channels: int = 3, dtype: str = "uint8") -> np.ndarray:
    pixels = np.empty((6, 5, num_channels), dtype)
    decode(data, mapping, pixels)
    return pixels


@pytest.mark.parametrize("mapping", [(), (0, 1, 2)])
def test_one_file_is_the_image(mapping):
    np.testing.assert_array_equal(decoded(png(FIRST), mapping), FIRST)


def test_a_file_may_be_gray_or_have_transparency_or_come_in_many_chunks():
    np.testing.assert_array_equal(decoded(png(FIRST[:, :, 0]), (), 1)[:, :, 0], FIRST[:, :, 0])
    np.testing.assert_array_equal(decoded(png(BOTH[:, :, :4]), (), 4), BOTH[:, :, :4])
    large = CHANCE.integers(0, 256, (200, 200, 3), np.uint8)
    pixels = np.empty_like(large)
    decode(png(large), (), pixels)
    assert png(large).count(b"IDAT") > 1
    np.testing.assert_array_equal(pixels, large)


def test_channels_are_those_of_the_mapping():
    data = png(FIRST) + png(SECOND)
    np.testing.assert_array_equal(decoded(data, (0, 1, 2, 3, -1, -1), 4), BOTH[:, :, :4])
    np.testing.assert_array_equal(decoded(data, (5, 4, 3, 2, 1, 0), 6), BOTH[:, :, ::-1])


def test_channels_for_one_are_averaged():
    gray = decoded(png(FIRST) + png(SECOND), (0, 0, 0, 1, 1, 1), 2)
    np.testing.assert_array_equal(gray[:, :, 0], np.rint(FIRST.mean(2)))
    np.testing.assert_array_equal(gray[:, :, 1], np.rint(SECOND.mean(2)))
    exact = decoded(png(FIRST), (0, 0, 0), 1, "float32")
    np.testing.assert_allclose(exact[:, :, 0], FIRST.mean(2) / 255, atol=1e-7)


def test_without_a_mapping_gray_is_the_mean_of_the_first_file_and_else_the_first_channels_count():
    data = png(FIRST) + png(SECOND)
    np.testing.assert_array_equal(decoded(data, (), 1)[:, :, 0], np.rint(FIRST.mean(2)))
    np.testing.assert_array_equal(decoded(data, (), 4), BOTH[:, :, :4])


def test_what_is_between_two_files_is_skipped():
    np.testing.assert_array_equal(decoded(png(FIRST) + b"padding" + png(SECOND), (), 6), BOTH)


@pytest.mark.parametrize(
    ("mapping", "num_channels", "message"),
    [
        ((0, 1), 2, "the 2 channels of its mapping, got 3"),
        ((0, 0, 0), 3, r"each of its 3 channels, got the mapping \[0, 0, 0\]"),
        ((0, 2, 2), 3, "each of its 3 channels"),
        ((0, 1, 3), 3, "each of its 3 channels"),
        ((0, 1, -2), 2, "each of its 2 channels"),
        ((), 4, r"each of its 4 channels, got the mapping \[0, 1, 2\]"),
    ],
)
def test_a_mapping_that_does_not_give_every_channel_is_refused(mapping, num_channels, message):
    with pytest.raises(WireError, match=message):
        decoded(png(FIRST), mapping, num_channels)


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def rewritten(data: bytes, begin: int, new: bytes) -> bytes:
    """A file with other bytes in its header, and the right checksum."""
    header = data[16 : 16 + begin] + new + data[16 + begin + len(new) : 29]
    return SIGNATURE + chunk(b"IHDR", header) + data[33:]


def test_a_file_may_be_interlaced():
    passes = [(0, 8, 0, 8), (0, 8, 4, 8), (4, 8, 0, 4), (0, 4, 2, 4), (2, 4, 0, 2), (0, 2, 1, 2), (1, 2, 0, 1)]
    parts = [FIRST[row::down, column::right] for row, down, column, right in passes]
    lines = b"".join(b"\x00" + line.tobytes() for part in parts if part.size for line in part)
    data = rewritten(png(FIRST), 12, b"\x01")[:33] + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    np.testing.assert_array_equal(decoded(data), FIRST)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "must be a PNG file, got 0 bytes"),
        (b"GIF89a..", "must be a PNG file, got 8 bytes that begin with b'GIF89a..'"),
        (b"x" + png(FIRST), "must be a PNG file"),
        (SIGNATURE, "must end with IEND"),
        (SIGNATURE + png(FIRST)[33:], "must begin with its header, got b'IDAT'"),
        (png(FIRST)[:-12], "must end with IEND"),
        (png(FIRST)[:60], "bytes in b'IDAT', got"),
        (png(FIRST[:5]), "must be 5x6 pixels large, got 5x5"),
        (rewritten(png(FIRST), 0, struct.pack(">II", 2**31 - 1, 2**31 - 1)), "5x6 pixels large, got 2147483647x"),
        (rewritten(png(FIRST), 8, b"\x10"), "8 bits for gray, RGB or RGBA, got 16 bits of color type 2"),
        (png(FIRST[:, :, 0].astype(np.uint16) * 257), "got 16 bits of color type 0"),
        (png(np.asarray(Image.fromarray(FIRST).convert("1"))), "got 1 bits of color type 0"),
        (png(FIRST).replace(b"IEND", b"IENT"), "must"),
    ],
)
def test_a_damaged_file_or_one_of_another_kind_is_refused(data, message):
    with pytest.raises(WireError, match=message):
        decoded(data)


def test_bytes_that_were_changed_on_the_way_are_refused():
    data = bytearray(png(FIRST))
    data[45] ^= 1
    with pytest.raises(WireError, match="the checksum of its content in b'IDAT'"):
        decoded(bytes(data))


@pytest.mark.parametrize("content", [b"", b"nothing", zlib.compress(b"\x00" * 10), zlib.compress(b"\x09" * 96)])
def test_pixels_that_cannot_be_decoded_are_refused(content):
    data = png(FIRST)
    with pytest.raises(WireError, match="must hold an image"):
        decoded(data[:33] + chunk(b"IDAT", content) + data[-12:])


def test_a_file_that_unpacks_to_more_than_its_image_takes_no_more_memory():
    content = zlib.compress(b"\x00" * 50_000_000)
    data = png(FIRST)
    assert not decoded(data[:33] + chunk(b"IDAT", content) + data[-12:]).any()


@settings(max_examples=300)
@given(st.data())
def test_no_damage_does_more_than_raise_a_wire_error(data):
    damaged = bytearray(png(FIRST) + png(SECOND))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded(bytes(damaged[: data.draw(st.integers(0, len(damaged)))]), (), 6)
    except WireError:
        return


@pytest.mark.parametrize("count", [1, 30])
def test_each_agent_gets_its_own_image(count):
    images = CHANCE.integers(0, 256, (count, 6, 5, 3), np.uint8)
    data = listed(
        *(AgentInfoProto(id=i, observations=[image(png(pixels), [3, 6, 5])]) for i, pixels in enumerate(images))
    )
    reader = BehaviorReader("Walker", brain(1), data, VERSION)
    np.testing.assert_array_equal(reader.read(data).decisions.observations[0], images)


@pytest.mark.parametrize("wrong", [0, 1, 29])
def test_a_damaged_image_among_many_is_refused_by_name(wrong):
    infos = [AgentInfoProto(id=i, observations=[image(png(FIRST), [3, 6, 5])]) for i in range(30)]
    reader = BehaviorReader("Walker", brain(1), listed(*infos), VERSION)
    infos[wrong].observations[0].compressed_data = b"nothing"
    with pytest.raises(WireError, match="Walker: observation 'Camera': it must be a PNG file, got 7 bytes"):
        reader.read(listed(*infos))
