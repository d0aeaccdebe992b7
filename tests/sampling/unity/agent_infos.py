"""Lists of AgentInfos for tests, and what they say, read by protobuf alone and slowly."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import numpy as np
from PIL import Image

from rl_tui.engine.sampling.environments.unity.unity_messages_pb2 import (
    NONE,
    PNG,
    ActionSpecProto,
    AgentInfoListProto,
    AgentInfoProto,
    BrainParametersProto,
    ObservationProto,
)
from rl_tui.engine.specs import Steps

VERSION = "3.0.0"  # whose images are C, H, W, and their floats H, W, C


def vector(values: Sequence[float], name: str = "Vector") -> ObservationProto:
    """An observation of these floats."""
    return ObservationProto(
        shape=[len(values)], float_data=ObservationProto.FloatData(data=values), dimension_properties=[1], name=name
    )


def floats(shape: Sequence[int], values: Sequence[float], properties: Sequence[int], name: str) -> ObservationProto:
    """An observation of any shape."""
    data = ObservationProto.FloatData(data=values)
    return ObservationProto(shape=shape, float_data=data, dimension_properties=properties, name=name)


def png(pixels: np.ndarray, **options: object) -> bytes:
    """A PNG file of u8[H, W] or u8[H, W, C]."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", **options)
    return file.getvalue()


def image(data: bytes, shape: Sequence[int], mapping: Sequence[int] = (), name: str = "Camera") -> ObservationProto:
    """A compressed observation of the shape C, H, W."""
    return ObservationProto(
        shape=shape,
        compression_type=PNG,
        compressed_data=data,
        compressed_channel_mapping=mapping,
        dimension_properties=[1, 2, 2],
        name=name,
    )


def brain(continuous: int = 0, branches: Sequence[int] = ()) -> BrainParametersProto:
    """A behavior with these actions."""
    return BrainParametersProto(
        action_spec=ActionSpecProto(
            num_continuous_actions=continuous, num_discrete_actions=len(branches), discrete_branch_sizes=branches
        )
    )


def listed(*infos: AgentInfoProto) -> bytes:
    """The bytes of a list."""
    return AgentInfoListProto(value=infos).SerializeToString()


def require_equal(steps: Steps, data: bytes, num_choices: int = 0) -> None:
    """The steps say what protobuf reads of a package up to 4.0.0; compressed images are compared elsewhere."""
    infos = AgentInfoListProto.FromString(data).value
    waiting = [info for info in infos if not info.done]
    done = [info for info in infos if info.done]
    has_group, has_group_reward = any(info.group_id for info in infos), any(info.group_reward for info in infos)
    assert (steps.terminals is not None) == bool(done)
    for group, found in ((waiting, steps.decisions), (done, steps.terminals)):
        if found is None:
            continue
        assert found.agent_ids.tolist() == [info.id for info in group]
        np.testing.assert_array_equal(found.rewards, np.array([info.reward for info in group], np.float32))
        assert (found.group_ids is not None) == has_group
        assert (found.group_rewards is not None) == has_group_reward
        if found.group_ids is not None:
            assert found.group_ids.tolist() == [info.group_id or -1 for info in group]
        if found.group_rewards is not None:
            expected = np.array([info.group_reward for info in group], np.float32)
            np.testing.assert_array_equal(found.group_rewards, expected)
        for index, column in enumerate(found.observations):
            _require_equal_floats(column, [info.observations[index] for info in group])
    if steps.terminals is not None:
        assert steps.terminals.truncated.tolist() == [info.max_step_reached for info in done]
    allowed = [
        [not flag for flag in info.action_mask] if len(info.action_mask) == num_choices else [True] * num_choices
        for info in waiting
    ]
    mask = steps.decisions.action_mask
    assert (mask is None) == all(all(row) for row in allowed)
    assert mask is None or mask.tolist() == allowed


def _require_equal_floats(column: np.ndarray, observations: Sequence[ObservationProto]) -> None:
    assert len(column) == len(observations)
    for row, observation in zip(column, observations, strict=True):
        if observation.compression_type != NONE:
            continue
        assert len(observation.float_data.data) == math.prod(observation.shape)
        shape = tuple(observation.shape)
        values = np.array(observation.float_data.data, np.float32)
        np.testing.assert_array_equal(row, values.reshape(shape if len(shape) < 3 else (*shape[1:], shape[0])))
