"""Side channels: what is written is read again, and what ends too early is refused."""

import struct
from uuid import UUID

import pytest

from rl_tui.engine.sampling.environments.unity.wire import side_channels
from rl_tui.engine.sampling.environments.unity.wire.errors import WireError
from rl_tui.engine.sampling.environments.unity.wire.payload import PayloadReader, PayloadWriter

OWN = UUID("00112233-4455-6677-8899-aabbccddeeff")


def payload_of(message: bytes, channel: UUID) -> bytes:
    [(found, payload)] = side_channels.read_messages(message)
    assert found == channel
    return payload


def test_a_message_has_the_bytes_of_the_protocol():
    message = side_channels.write_message(OWN, b"abc")
    assert message == bytes.fromhex("33221100554477668899aabbccddeeff") + b"\x03\x00\x00\x00abc"


def test_messages_are_read_in_their_order():
    data = side_channels.write_message(OWN, b"") + side_channels.write_message(side_channels.STATISTICS, b"xy")
    assert side_channels.read_messages(data) == [(OWN, b""), (side_channels.STATISTICS, b"xy")]
    assert side_channels.read_messages(b"") == []


@pytest.mark.parametrize("size", [1, 19, 20, 22])
def test_a_truncated_message_is_refused(size):
    data = side_channels.write_message(OWN, b"abc")
    with pytest.raises(WireError, match="got"):
        side_channels.read_messages(data[:size])


def test_a_message_of_negative_length_is_refused():
    with pytest.raises(WireError, match="-1 bytes"):
        side_channels.read_messages(OWN.bytes_le + struct.pack("<i", -1))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("resolution", (84, 48)),
        ("quality_level", (5,)),
        ("time_scale", (20.0,)),
        ("target_frame_rate", (-1,)),
        ("capture_frame_rate", (60,)),
    ],
)
def test_a_setting_of_the_engine_is_read_as_it_was_written(name, arguments):
    payload = payload_of(getattr(side_channels, name)(*arguments), side_channels.ENGINE_CONFIGURATION)
    assert side_channels.read_engine_setting(payload) == (name, arguments)


def test_an_unknown_setting_of_the_engine_is_refused():
    with pytest.raises(WireError, match="from 0 to 4, got 5"):
        side_channels.read_engine_setting(PayloadWriter().int32(5).data)


def test_an_environment_parameter_is_read_as_it_was_written():
    payload = payload_of(side_channels.environment_parameter("gravity", 1.5), side_channels.ENVIRONMENT_PARAMETERS)
    assert payload == b"\x07\x00\x00\x00gravity" + struct.pack("<if", 0, 1.5)
    assert side_channels.read_environment_parameter(payload) == ("gravity", 1.5)


@pytest.mark.parametrize(
    ("sampler", "numbers"),
    [("uniform", [0.0, 2.0]), ("gaussian", [1.0, 0.5]), ("multirange", [0.0, 1.0, 3.0, 4.0])],
)
def test_a_sampled_parameter_is_read_as_it_was_written(sampler, numbers):
    message = side_channels.sampled_parameter("mass", 7, sampler, numbers)
    payload = payload_of(message, side_channels.ENVIRONMENT_PARAMETERS)
    assert side_channels.read_environment_parameter(payload) == ("mass", (7, sampler, numbers))


def test_an_unknown_sampler_is_refused():
    with pytest.raises(WireError, match="'mass'"):
        side_channels.read_environment_parameter(PayloadWriter().text("mass").int32(1).int32(0).int32(3).data)


@pytest.mark.parametrize("number", range(4))
def test_a_statistic_says_how_its_values_are_summarized(number):
    payload = PayloadWriter().text("Goals/Scored").float32(0.5).int32(number).data
    assert side_channels.read_statistic(payload) == ("Goals/Scored", 0.5, side_channels.METHODS[number])


@pytest.mark.parametrize("number", [-1, 4])
def test_a_statistic_of_an_unknown_method_is_refused(number):
    with pytest.raises(WireError, match=f"'Goals'.*from 0 to 3, got {number}"):
        side_channels.read_statistic(PayloadWriter().text("Goals").float32(0.5).int32(number).data)


def test_every_truncated_statistic_is_refused():
    payload = PayloadWriter().text("Goals").float32(0.5).int32(0).data
    for size in range(len(payload)):
        with pytest.raises(WireError, match="statistics: a message must have at least"):
            side_channels.read_statistic(payload[:size])


def test_a_float_property_is_read_as_it_was_written():
    payload = payload_of(side_channels.float_property("speed", 2.0), side_channels.FLOAT_PROPERTIES)
    assert side_channels.read_float_property(payload) == ("speed", 2.0)


def test_every_kind_of_value_is_read_as_it_was_written():
    writer = PayloadWriter().boolean(True).boolean(False).int32(-3).float32(0.25).floats([1.0, 2.0]).text("wheel")
    reader = PayloadReader(writer.data, "own channel")
    values = reader.boolean(), reader.boolean(), reader.int32(), reader.float32(), reader.floats(), reader.text()
    assert values == (True, False, -3, 0.25, [1.0, 2.0], "wheel")


def test_what_unity_could_not_read_is_not_written():
    with pytest.raises(WireError, match="ASCII characters, got 'größe'"):
        side_channels.environment_parameter("größe", 1.0)
    with pytest.raises(WireError, match="32 bits, got 4294967296"):
        side_channels.quality_level(2**32)
    with pytest.raises(WireError, match=r"32-bit float, got 1e\+300"):
        side_channels.time_scale(1e300)


def test_a_text_of_other_bytes_or_of_negative_length_is_refused():
    with pytest.raises(WireError, match="ASCII characters, got b"):
        PayloadReader(b"\x01\x00\x00\x00\xff", "own channel").text()
    with pytest.raises(WireError, match="at least 0, got -2"):
        PayloadReader(struct.pack("<i", -2), "own channel").text()
