"""The agents of a message: numpy reads what protobuf reads, and refuses what protobuf refuses."""

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from rl_tui.engine.sampling.environments.unity.unity_messages_pb2 import (
    AgentInfoListProto,
    AgentInfoProto,
    BrainParametersProto,
    ObservationProto,
)
from rl_tui.engine.sampling.environments.unity.wire.agents import BehaviorReader
from rl_tui.engine.sampling.environments.unity.wire.errors import WireError
from rl_tui.engine.sampling.environments.unity.wire.packages import order_in_doubt
from rl_tui.engine.specs import ActionSpec, ObservationSpec, UnityPackage
from tests.sampling.unity.agent_infos import VERSION, brain, floats, image, listed, png, require_equal, vector

FLOATS = st.floats(width=32)
BRANCHES = (2, 3)


def reader(first: bytes, version: str = VERSION, parameters: BrainParametersProto | None = None) -> BehaviorReader:
    return BehaviorReader("Walker?team=1", parameters or brain(2, BRANCHES), first, version)


def spec_of(*observations: ObservationProto, version: str = VERSION) -> tuple[ObservationSpec, ...]:
    return reader(listed(AgentInfoProto(observations=observations)), version).spec.observations


@st.composite
def infos(draw) -> AgentInfoProto:
    info = AgentInfoProto(
        reward=draw(FLOATS),
        done=draw(st.booleans()),
        max_step_reached=draw(st.booleans()),
        id=draw(st.sampled_from([0, 1, 127, 128, 2**28, 2**31 - 1, -5]) | st.integers(0, 300)),
        action_mask=draw(st.sampled_from([[], [True], [False] * 5, [True, False, False, True, False]])),
        group_id=draw(st.sampled_from([0, 0, 1, 200])),
        group_reward=draw(st.sampled_from([0.0, 1.5])),
    )
    info.observations.extend([vector(draw(st.lists(FLOATS, min_size=3, max_size=3))), vector([draw(FLOATS)], "Speed")])
    return info


FIRST = listed(AgentInfoProto(observations=[vector([0, 0, 0]), vector([0], "Speed")]))


@given(st.lists(infos(), max_size=12), st.integers(0, 3))
def test_every_number_is_that_of_protobuf(found, repeats):
    data = listed(*found) * (repeats + 1)
    walker = reader(FIRST)
    for _ in range(2):  # the second time with the layouts of the first
        require_equal(walker.read(data), data, sum(BRANCHES))


def require_read_as_by_protobuf(walker: BehaviorReader, data: bytes) -> None:
    """Equal numbers, or refused where protobuf refuses or an observation has another shape."""
    try:
        expected = AgentInfoListProto.FromString(data).value
    except DecodeError:
        expected = None
    try:
        steps = walker.read(data)
    except WireError:
        observed = [
            [(list(o.shape), len(o.float_data.data), o.compression_type) for o in info.observations]
            for info in expected or ()
        ]
        assert expected is None or any(shapes != [([3], 3, 0), ([1], 1, 0)] for shapes in observed)
    else:
        assert expected is not None
        require_equal(steps, data, sum(BRANCHES))


@given(st.lists(infos(), min_size=1, max_size=3), st.data())
def test_damaged_bytes_are_read_as_protobuf_reads_them_or_refused(found, data):
    damaged = bytearray(listed(*found) * 3)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    walker = reader(FIRST)
    walker.read(listed(*found))
    require_read_as_by_protobuf(walker, bytes(damaged[: data.draw(st.integers(len(damaged) // 2, len(damaged)))]))


@pytest.mark.parametrize("knows_layout", [True, False])
def test_every_changed_byte_is_read_as_protobuf_reads_it_or_refused(knows_layout):
    observations = [vector([1, 2, 3]), vector([4], "Speed")]
    info = AgentInfoProto(reward=1, done=True, id=300, action_mask=[True] + [False] * 4, observations=observations)
    info.group_id, info.group_reward, info.max_step_reached = 200, 2, True
    usual = listed(info)
    walker = reader(FIRST)
    for position in range(len(usual)):
        for value in {usual[position] ^ (1 << bit) for bit in range(8)} | {0, 1, 2, 127, 255}:
            changed = usual[:position] + bytes([value]) + usual[position + 1 :]
            require_read_as_by_protobuf(walker if knows_layout else reader(FIRST), usual * knows_layout + changed)


def test_an_unusual_encoding_is_read_by_protobuf():
    usual = AgentInfoProto(id=3, reward=1, observations=[vector([1, 2, 3]), vector([4], "Speed")]).SerializeToString()
    twice = usual + AgentInfoProto(id=4, group_id=2).SerializeToString()  # the later number counts
    unknown = usual + b"\xa0\x06\x01"  # field 100
    unpacked_mask = usual + b"\x58\x01\x58\x00\x58\x00\x58\x00\x58\x00"
    two_masks = usual + AgentInfoProto(action_mask=[True] * 2).SerializeToString() + b"\x5a\x03\x00\x01\x00"
    halves = b"\x6a\x15" + b"\x0a\x01\x03" + b"\x22\x10\x0a\x04" + b"\x00" * 4 + b"\x0a\x08" + b"\x01" * 8
    two_halves = halves + AgentInfoProto(observations=[vector([4], "Speed")]).SerializeToString()
    entries = (twice, usual, unknown, unpacked_mask, two_masks, two_halves)
    data = b"".join(b"\x0a" + bytes([len(entry)]) + entry for entry in entries)
    walker = reader(FIRST)
    require_equal(walker.read(data), data, sum(BRANCHES))
    require_equal(walker.read(data + b"\x10\x01"), data, sum(BRANCHES))  # an unknown field of the list


def test_a_player_of_many_layouts_does_not_fill_the_memory():
    walker = reader(FIRST)
    for length in range(40):
        names = [f"Vector{'x' * length}{'y' * more}" for more in range(20)]
        data = listed(*(AgentInfoProto(observations=[vector([1, 2, 3], n), vector([4])]) for n in names))
        require_equal(walker.read(data), data)
    assert sum(map(len, walker._layouts.values())) <= 256


def test_no_agent_is_no_step():
    steps = reader(FIRST).read(b"")
    assert len(steps.decisions.agent_ids) == 0
    assert [column.shape for column in steps.decisions.observations] == [(0, 3), (0, 1)]
    assert steps.terminals is None


def test_an_agent_may_end_and_decide_in_one_message():
    observations = [vector([1, 2, 3]), vector([4], "Speed")]
    ended = AgentInfoProto(id=7, done=True, max_step_reached=True, reward=2, observations=observations)
    steps = reader(FIRST).read(listed(ended, AgentInfoProto(id=7, observations=observations)))
    assert steps.decisions.agent_ids.tolist() == steps.terminals.agent_ids.tolist() == [7]
    assert steps.terminals.truncated.tolist() == [True]


def test_the_ids_are_the_same_array_while_the_population_is_unchanged():
    walker = reader(FIRST)
    data = listed(AgentInfoProto(id=5, observations=[vector([1, 2, 3]), vector([4], "Speed")]))
    first = walker.read(data).decisions.agent_ids
    assert walker.read(data).decisions.agent_ids is first
    walker.read(b"")
    assert walker.read(data).decisions.agent_ids is not first


def test_every_kind_of_observation_has_its_spec():
    entities = floats([5, 3], [0.0] * 15, [4, 1], "Entities")
    goal = vector([1, 0], "Goal")
    goal.observation_type = 1
    raw = floats([3, 4, 2], [0.5] * 24, [1, 2, 2], "Raw")
    camera = image(png(np.zeros((4, 2, 3), np.uint8)), [3, 4, 2])
    assert spec_of(vector([1, 2]), entities, goal, raw, camera) == (
        ObservationSpec("Vector", (2,)),
        ObservationSpec("Entities", (5, 3)),
        ObservationSpec("Goal", (2,), is_goal=True),
        ObservationSpec("Raw", (4, 2, 3)),
        ObservationSpec("Camera", (4, 2, 3), "uint8"),
    )


def test_names_are_made_unique():
    names = [spec.name for spec in spec_of(*(vector([1], name) for name in ("", "Ray", "Ray", "Ray_2", "Ray")))]
    assert names == ["obs_0", "Ray", "Ray_2", "Ray_2_2", "Ray_3"]


@pytest.mark.parametrize(
    ("observation", "version", "message"),
    [
        (floats([5, 3], [0.0] * 15, [1, 1], "Grid"), VERSION, "'Grid' has two axes: the first must be of variable"),
        (floats([1, 1, 1, 1], [0.0], [], "Cube"), VERSION, r"one to three axes .* \[1, 1, 1, 1\]"),
        (floats([0], [], [1], "Nothing"), VERSION, r"at least 1, got the shape \[0\]"),
        (floats([3], [0.0] * 4, [1], "Long"), VERSION, "'Long' must have 3 floats, got 4"),
        (floats([4, 2, 3], [0.0] * 24, [2, 2, 1], "Eye"), "2.0.1", r"ml-agents 2\.0\.1 .* version 3\.0\.0"),
        (floats([4, 2, 3], [0.0] * 24, [2, 2, 1], "Eye"), "", "is an image of height, width and channels"),
        (image(b"", [3, 10**5, 10**5]), VERSION, r"at most 67,108,864 values, got the shape \[3, 100000, 100000\]"),
        (image(b"", [3]), VERSION, "must not be compressed"),
    ],
)
def test_an_observation_that_cannot_be_learned_from_is_refused_by_name(observation, version, message):
    with pytest.raises(WireError, match=rf"^Walker\?team=1: .*{message}"):
        spec_of(observation, version=version)


def test_the_first_message_needs_an_agent():
    with pytest.raises(WireError, match="at least one agent, got none"):
        reader(b"")


@pytest.mark.parametrize(
    ("observations", "message"),
    [
        ([vector([1, 2, 3])], "agent 9 must have 2 observations, got 1"),
        ([vector([1, 2]), vector([4], "Speed")], r"observation 'Vector' must keep the shape \[3\] .*, got \[2\]"),
        ([floats([3], [1.0], [1], "Vector"), vector([4], "Speed")], "observation 'Vector' must have 3 floats, got 1"),
        ([ObservationProto(shape=[3]), vector([4], "Speed")], "observation 'Vector' must have 3 floats, got 0"),
    ],
)
def test_an_observation_that_changes_is_refused_by_name(observations, message):
    with pytest.raises(WireError, match=message):
        reader(FIRST).read(listed(AgentInfoProto(id=9, observations=observations)))


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (brain(2, (3, 4)), ActionSpec(2, (3, 4))),
        (BrainParametersProto(vector_action_size_deprecated=[3], vector_action_space_type_deprecated=1), ActionSpec(3)),
        (BrainParametersProto(vector_action_size_deprecated=[3, 2]), ActionSpec(0, (3, 2))),
        (BrainParametersProto(), ActionSpec()),
    ],
)
def test_actions_are_those_of_the_brain(parameters, expected):
    assert reader(FIRST, parameters=parameters).spec.actions == expected


def test_a_branch_without_a_choice_is_refused():
    with pytest.raises(WireError, match=r"at least 0 .* 1 choice in each branch, got 0 and \[2, 0\]"):
        reader(FIRST, parameters=brain(0, (2, 0)))


ROWS_FIRST = "3.0.0-exp.1", "3.0.0-pre.2", "3.0.0", "3.1.2", "4.0.0-pre.1", "4.0", "4.0.0", "4.0.0+fork"
CHANNELS_FIRST = "4.0.1-pre.1", "4.0.1", "4.0.3", "4.1.0", "10.0.0"
UNREADABLE = "", "develop", "v3.0.0", "3", "9" * 5000, "\u0663.0.0"


@pytest.mark.parametrize("has_png", [False, True], ids=["by numpy", "by protobuf"])
@pytest.mark.parametrize("version", [*ROWS_FIRST, *CHANNELS_FIRST, *UNREADABLE], ids=lambda version: version[:12])
def test_every_pixel_of_a_raw_image_is_where_its_package_has_put_it(version, has_png):
    rows, columns, channels = np.indices((4, 2, 3))
    seen = (100 * rows + 10 * columns + channels).astype(np.float32)
    sent = seen if version in ROWS_FIRST else seen.transpose(2, 0, 1)
    observations = [floats([3, 4, 2], sent.ravel(), [1, 2, 2], "Raw")]
    if has_png:
        observations.append(image(png(np.zeros((1, 1, 3), np.uint8)), [3, 1, 1]))
    data = listed(*(AgentInfoProto(id=id, observations=observations) for id in (1, 2)))
    eye = reader(data, version)
    np.testing.assert_array_equal(eye.read(data).decisions.observations[0], [seen, seen])
    order = "HWC" if version in ROWS_FIRST else "CHW"
    assert eye.spec.unity_package == UnityPackage(version, order)
    assert bool(order_in_doubt(eye.spec)) == (version in UNREADABLE)


def test_the_order_of_an_image_of_one_channel_is_never_in_doubt():
    gray = floats([1, 4, 2], [0.5] * 8, [1, 2, 2], "Gray")
    data = listed(AgentInfoProto(observations=[gray, image(png(np.zeros((1, 1, 3), np.uint8)), [3, 1, 1])]))
    assert order_in_doubt(reader(data, "develop").spec) == ""


def test_an_image_of_another_compression_than_the_first_is_converted():
    pixels = np.arange(24, dtype=np.uint8).reshape(4, 2, 3) * 10
    compressed = listed(AgentInfoProto(observations=[image(png(pixels), [3, 4, 2])]))
    values = (pixels / np.float32(255)).astype(np.float32).ravel()
    raw = listed(AgentInfoProto(observations=[floats([3, 4, 2], values, [1, 2, 2], "Camera")]))
    for data in (compressed, raw):
        np.testing.assert_array_equal(reader(compressed).read(data).decisions.observations[0][0], pixels)
        expected = pixels / np.float32(255)
        np.testing.assert_allclose(reader(raw).read(data).decisions.observations[0][0], expected, atol=1e-7)


def test_a_raw_image_that_is_not_finite_is_not_converted_to_bytes():
    compressed = listed(AgentInfoProto(observations=[image(png(np.zeros((1, 1, 3), np.uint8)), [3, 1, 1])]))
    raw = listed(AgentInfoProto(observations=[floats([3, 1, 1], [0, np.nan, 0], [1, 2, 2], "Camera")]))
    with pytest.raises(WireError, match="'Camera' must be finite"):
        reader(compressed).read(raw)
