"""What Unity's own C# runtime sent is read as protobuf reads it."""

import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rl_tui.engine.sampling.environments.unity.unity_messages_pb2 import (
    PNG,
    AgentActionListProto,
    AgentInfoListProto,
    AgentInfoProto,
    ObservationProto,
    UnityMessageProto,
)
from rl_tui.engine.sampling.environments.unity.wire.actions import write_actions
from rl_tui.engine.sampling.environments.unity.wire.agents import BehaviorReader
from rl_tui.engine.sampling.environments.unity.wire.payload import PayloadReader
from rl_tui.engine.sampling.environments.unity.wire.side_channels import (
    STATISTICS,
    read_messages,
    read_statistic,
    write_message,
)
from rl_tui.engine.specs import Actions, ActionSpec, ObservationSpec, Steps
from tests.sampling.unity.agent_infos import require_equal

DATA = Path(os.environ.get("MLAGENTS_DATA", ""), "..", "unity-exchanges")
VERSION = "3.0.0-exp.1"  # that was recorded

pytestmark = pytest.mark.skipif(not os.environ.get("MLAGENTS_DATA"), reason="MLAGENTS_DATA is not set")


def requests() -> list[UnityMessageProto]:
    return [UnityMessageProto.FromString(path.read_bytes()) for path in sorted(DATA.glob("*.request"))]


def read_all() -> tuple[dict[str, BehaviorReader], list[tuple[str, bytes, Steps]]]:
    """The readers by behavior, and each list of agents with what was read."""
    brains, readers, found = {}, {}, []
    for request in requests():
        output = request.unity_output
        brains |= {brain.brain_name: brain for brain in output.rl_initialization_output.brain_parameters}
        for name, data in output.rl_output.agentInfos.items():
            if name not in readers and data:
                readers[name] = BehaviorReader(name, brains[name], data, VERSION)
            if name in readers:
                found.append((name, data, readers[name].read(data)))
    return readers, found


def test_every_number_is_that_of_protobuf():
    readers, found = read_all()
    assert len(found) > 150
    for name, data, steps in found:
        require_equal(steps, data, readers[name].spec.actions.mask_size)
    assert any(steps.terminals is not None for _, _, steps in found)
    assert any(steps.decisions.action_mask is not None for _, _, steps in found)
    assert any(steps.decisions.group_ids is not None for _, _, steps in found)


def test_behaviors_are_what_the_runtime_announced():
    readers, _ = read_all()
    assert {name: reader.spec.actions for name, reader in readers.items()} == {
        "Simple?team=0": ActionSpec(1, (3,)),
        "Team?team=1": ActionSpec(0, (2, 3)),
        "Visual?team=0": ActionSpec(1),
        "Buffer?team=0": ActionSpec(0, (3, 2)),
    }
    assert readers["Buffer?team=0"].spec.observations == (
        ObservationSpec("Entities", (5, 3)),
        ObservationSpec("Goal", (3,), is_goal=True),
        ObservationSpec("StackingSensor_size3_VectorSensor_size1", (3,)),
    )
    assert [spec.shape for spec in readers["Visual?team=0"].spec.observations] == [
        (20, 20, 3),
        (20, 20, 1),
        (20, 24, 3),
        (22, 20, 6),
        (20, 20, 2),
        (2,),
    ]


def test_every_pixel_is_that_of_its_png_file():
    _, found = read_all()
    num_images = 0
    for _, data, steps in found:
        infos = AgentInfoListProto.FromString(data).value
        num_images += _compare_images([info for info in infos if not info.done], steps.decisions.observations)
        if steps.terminals is not None:
            num_images += _compare_images([info for info in infos if info.done], steps.terminals.observations)
    assert num_images > 100


def test_raw_images_of_that_package_have_the_order_that_it_wrote():
    """The same camera: what is up in the compressed image is up in the raw one."""
    _, found = read_all()
    raws = [steps.decisions.observations[2] for name, _, steps in found if name.startswith("Visual")]
    infos = [AgentInfoListProto.FromString(data).value for name, data, _ in found if name.startswith("Visual") and data]
    first = np.array(infos[0][0].observations[2].float_data.data, np.float32)
    np.testing.assert_array_equal(raws[0][0], first.reshape(20, 24, 3))


def test_statistics_and_other_messages_are_read():
    sent = [message for request in requests() for message in read_messages(request.unity_output.rl_output.side_channel)]
    statistics = [read_statistic(payload) for channel, payload in sent if channel == STATISTICS]
    assert {(name, method) for name, _, method in statistics} == {
        ("Player/Reached", "histogram"),
        ("Player/Distance", "average"),
    }
    values, raw = [payload for channel, payload in sent if channel != STATISTICS]
    reader = PayloadReader(values, "own channel")
    assert (reader.boolean(), reader.int32(), reader.float32()) == (True, -7, np.float32(0.1))
    assert (reader.text(), reader.floats()) == ("hello", [1.5, -2.25])
    assert raw == b"\xff\x01\x00"


def test_what_the_official_client_replied_is_written_byte_for_byte():
    num_compared = 0
    for path in sorted(DATA.glob("*.response")):
        content = UnityMessageProto.FromString(path.read_bytes()).unity_input.rl_input
        if content.side_channel:
            assert b"".join(write_message(*m) for m in read_messages(content.side_channel)) == content.side_channel
        for data in content.agent_actions.values():
            actions, has_deprecated = _actions(data)
            assert write_actions(actions, with_deprecated=has_deprecated) == data
            num_compared += 1
    assert num_compared > 100


def _actions(data: bytes) -> tuple[Actions, bool]:
    read = AgentActionListProto.FromString(data).value
    continuous = np.array([list(action.continuous_actions) for action in read], np.float32).reshape(len(read), -1)
    discrete = np.array([list(action.discrete_actions) for action in read], np.int64).reshape(len(read), -1)
    return Actions(continuous, discrete), bool(read[0].vector_actions_deprecated)


def _compare_images(infos: list[AgentInfoProto], columns: tuple[np.ndarray, ...]) -> int:
    num_images = 0
    for index, column in enumerate(columns):
        for row, info in zip(column, infos, strict=True):
            observation = info.observations[index]
            if observation.compression_type == PNG:
                np.testing.assert_array_equal(row, _pixels(observation))
                num_images += 1
    return num_images


def _pixels(observation: ObservationProto) -> np.ndarray:
    """u8[H, W, C], decoded by Pillow's own reader of files."""
    files = observation.compressed_data.split(b"\x89PNG\r\n\x1a\n")[1:]
    decoded = [np.asarray(Image.open(io.BytesIO(b"\x89PNG\r\n\x1a\n" + file))) for file in files]
    planes = np.concatenate(decoded, axis=2).astype(np.float64)
    mapping = list(observation.compressed_channel_mapping)
    if not mapping:
        mapping = [0] * 3 if observation.shape[0] == 1 else list(range(planes.shape[2]))
    channels = [planes[:, :, [i for i, to in enumerate(mapping) if to == j]].mean(2) for j in range(max(mapping) + 1)]
    return np.rint(np.stack(channels, axis=2)).astype(np.uint8)
