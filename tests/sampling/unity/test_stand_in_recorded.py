"""What Unity said in recorded exchanges, the stand-in player says in the same way."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from rl_tui.engine.sampling.environments.unity import unity_messages_pb2 as messages
from tests.unity_player import side_channels
from tests.unity_player.encoding import AgentTemplate
from tests.unity_player.executable import make_player
from tests.unity_player.images import SIGNATURE
from tests.unity_player.messages import Brain, Form, Info, Sensor, Speech
from tests.unity_player.trainer import Trainer

ALL = messages.UnityRLCapabilitiesProto(concatenatedPngObservations=True, compressedChannelMapping=True)
SPEECH = Speech(ALL, "3.0.0-exp.1")  # of the package that was recorded


@pytest.fixture(scope="session")
def requests(mlagents_data: Path) -> list[messages.UnityMessageProto]:
    """All that Unity said, in order."""
    folder = mlagents_data.parent / "unity-exchanges"
    if not folder.is_dir():
        pytest.skip(f"{folder} is missing: no recorded exchanges here")
    return [messages.UnityMessageProto.FromString(path.read_bytes()) for path in sorted(folder.glob("*.request"))]


@pytest.fixture(scope="session")
def brains(requests: list[messages.UnityMessageProto]) -> dict[str, Brain]:
    """Every behavior, from the message that announced it."""
    found = {}
    for request in requests:
        for said in request.unity_output.rl_initialization_output.brain_parameters:
            first = infos(request)[said.brain_name][0]
            spec = said.action_spec
            found[said.brain_name] = Brain(
                said.brain_name,
                tuple(sensor(observation) for observation in first.observations),
                spec.num_continuous_actions,
                tuple(spec.discrete_branch_sizes),
            )
    return found


def sensor(said: messages.ObservationProto) -> Sensor:
    """The one that says such an observation."""
    form: Form = "png" if said.compression_type else "floats"
    return Sensor(
        said.name,
        tuple(said.shape),
        form,
        tuple(said.compressed_channel_mapping),
        tuple(said.dimension_properties),
        said.observation_type == messages.GOAL_SIGNAL,
    )


def infos(request: messages.UnityMessageProto) -> dict[str, list[messages.AgentInfoProto]]:
    """The agents of a request, by behavior."""
    lists = request.unity_output.rl_output.agentInfos
    return {name: list(messages.AgentInfoListProto.FromString(lists[name]).value) for name in lists}


def pixels(files: bytes) -> NDArray[np.uint8]:
    """The channels of PNG files one after another, u8[C, H, W]."""
    parts = [SIGNATURE + part for part in files.split(SIGNATURE)[1:]]
    images = [np.asarray(Image.open(io.BytesIO(part))) for part in parts]
    return np.concatenate(images, axis=2).transpose(2, 0, 1)


def values(said: messages.ObservationProto) -> NDArray[np.float32]:
    """What the sensor saw."""
    shape = tuple(said.shape)
    if said.compression_type:
        return pixels(said.compressed_data).astype(np.float32) / 255
    data = np.array(said.float_data.data, np.float32)
    return data.reshape(shape) if len(shape) < 3 else data.reshape(*shape[1:], shape[0]).transpose(2, 0, 1)


def info(said: messages.AgentInfoProto) -> Info:
    """The same content for the stand-in."""
    return Info(
        said.id,
        [values(observation) for observation in said.observations],
        said.reward,
        said.done,
        said.max_step_reached,
        list(said.action_mask),
        said.group_id,
        said.group_reward,
    )


def with_pixels(said: messages.AgentInfoProto) -> tuple[messages.AgentInfoProto, list[NDArray[np.uint8]]]:
    """Apart from how strongly images are compressed."""
    plain = messages.AgentInfoProto()
    plain.CopyFrom(said)
    images = [pixels(observation.compressed_data) for observation in said.observations if observation.compression_type]
    for observation in plain.observations:
        if observation.compression_type:
            observation.compressed_data = b""
    return plain, images


def every_agent(
    requests: list[messages.UnityMessageProto],
) -> Iterator[tuple[str, messages.AgentInfoProto]]:
    """Each with its behavior."""
    for request in requests:
        for name, said in infos(request).items():
            yield from ((name, agent) for agent in said)


def test_every_recorded_agent_is_said_field_by_field_as_unity_says_it(
    requests: list[messages.UnityMessageProto], brains: dict[str, Brain]
) -> None:
    num_images = num_agents = 0
    for name, said in every_agent(requests):
        expected, expected_images = with_pixels(said)
        found, found_images = with_pixels(SPEECH.info(brains[name], info(said)))
        assert found == expected
        for image, expected_image in zip(found_images, expected_images, strict=True):
            np.testing.assert_array_equal(image, expected_image)
        num_agents, num_images = num_agents + 1, num_images + len(found_images)
    assert num_agents > 500
    assert num_images > 100


def test_recorded_lists_without_images_have_the_bytes_that_the_stand_in_writes(
    requests: list[messages.UnityMessageProto], brains: dict[str, Brain]
) -> None:
    found = 0
    for request in requests:
        lists = request.unity_output.rl_output.agentInfos
        for name, said in infos(request).items():
            if said and not any(sensor.form == "png" for sensor in brains[name].sensors):
                assert SPEECH.list(brains[name], [info(agent) for agent in said]) == lists[name]
                found += 1
    assert found > 100


def test_recorded_agents_have_the_bytes_of_the_template_that_fast_worlds_write_with(
    requests: list[messages.UnityMessageProto], brains: dict[str, Brain]
) -> None:
    template = AgentTemplate(brains["Simple?team=0"].sensors)
    found = 0
    for name, said in every_agent(requests):
        if name == "Simple?team=0" and not said.action_mask:
            floats = values(said.observations[0]).tobytes()
            is_interrupted = said.max_step_reached if said.done else None
            expected = messages.AgentInfoListProto(value=[said]).SerializeToString()
            assert template.info(said.id, said.reward, floats, is_interrupted) == expected
            found += 1
    assert found > 100


def test_recorded_behaviors_are_announced_alike(
    requests: list[messages.UnityMessageProto], brains: dict[str, Brain]
) -> None:
    announced = [
        said for request in requests for said in request.unity_output.rl_initialization_output.brain_parameters
    ]
    assert [brains[said.brain_name].parameters() for said in announced] == announced
    assert len(announced) == 4


def test_recorded_side_channels_are_read_and_written_alike(requests: list[messages.UnityMessageProto]) -> None:
    channels = set()
    for request in requests:
        content = request.unity_output.rl_output.side_channel
        parts = list(side_channels.unpacked(content))
        channels |= {channel for channel, _ in parts}
        assert b"".join(side_channels.packed(channel, payload) for channel, payload in parts) == content
    assert channels >= {side_channels.STATISTICS, side_channels.ECHO}
    said = requests[4].unity_output.rl_output.side_channel
    first, payload = next(side_channels.unpacked(said))
    value = np.frombuffer(payload, "<f4", 1, 19)[0]
    assert side_channels.statistic("Player/Distance", float(value), 0) == side_channels.packed(first, payload)


def test_the_recorded_answers_of_the_official_trainer_can_be_read(mlagents_data: Path) -> None:
    folder = mlagents_data.parent / "unity-exchanges"
    reply = messages.UnityMessageProto.FromString((folder / "0001.response").read_bytes())
    received = [
        side_channels.described(channel, payload)
        for channel, payload in side_channels.unpacked(reply.unity_input.rl_input.side_channel)
    ]
    assert {"engine configuration", "environment parameters"} <= {words["channel"] for words in received}


def test_the_handshake_has_the_recorded_bytes(mlagents_data: Path, tmp_path: Path) -> None:
    folder = mlagents_data.parent / "unity-exchanges"
    with Trainer() as trainer:
        trainer.start(make_player(tmp_path, "--package-version", "3.0.0-exp.1"))
        for number in (0, 1):
            assert trainer.receive_bytes() == (folder / f"{number:04}.request").read_bytes()
            trainer.say(messages.UnityMessageProto.FromString((folder / f"{number:04}.response").read_bytes()))
        trainer.receive()
