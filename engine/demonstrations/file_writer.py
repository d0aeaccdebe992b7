"""Writes .demo files that this program and ML-Agents' own loader read.

Shapes: T steps of an episode, A continuous dimensions, K branches, M choices of all branches; H, W, C of an image.
"""

from __future__ import annotations

import io
import os
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np
from PIL import Image

from rl_tui.engine.demonstrations.file_head import (
    BEHAVIOR_BEGIN,
    EPISODES_FIELD,
    MEAN_FIELD,
    MOST_METADATA_BYTES,
    NAME_FIELD,
    STEPS_FIELD,
    VERSION_FIELD,
    VERSIONS,
    Metadata,
)
from rl_tui.engine.demonstrations.message_fields import FOUR_BYTES, LENGTH, NUMBER
from rl_tui.engine.demonstrations.record_layout import ACTION_FIELD, INFO_FIELD
from rl_tui.engine.errors import DemonstrationError
from rl_tui.engine.sampling.environments.unity.unity_messages_pb2 import (
    DEFAULT,
    GOAL_SIGNAL,
    PNG,
    ActionSpecProto,
    AgentActionProto,
    AgentInfoProto,
    BrainParametersProto,
    ObservationProto,
)
from rl_tui.engine.sampling.environments.unity.wire.varints import write_varint
from rl_tui.engine.specs import (
    CUT,
    TRUNCATED,
    BehaviorSpec,
    Bool,
    Float32,
    Int64,
    Observation,
    Observations,
    ObservationSpec,
)

_NONE, _TRANSLATIONAL, _VARIABLE_SIZE = 1, 2, 4  # dimension properties
_PROPERTIES = {
    "vector": [_NONE],
    "entities": [_VARIABLE_SIZE, _NONE],
    "image": [_NONE, _TRANSLATIONAL, _TRANSLATIONAL],
}
_FAST = 1  # compression level of PNG files: higher ones save a tenth, and take several times as long


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """What an agent saw and did, T >= 1.

    observations: each [T + 1, ...], the last one after the last action. continuous: f32[T, A]. discrete: i64[T, K].
    rewards: f32[T], which followed the action. ending: of Ending; CUT where the recording ended first. action_mask:
    bool[T, M], True = allowed.
    """

    observations: Observations
    continuous: Float32
    discrete: Int64
    rewards: Float32
    ending: int
    action_mask: Bool | None = None


class DemonstrationWriter:
    """A context: the episodes are at `path` when it ends without an error, and nothing is changed there else, nor where
    there is none.

    behavior: whose observations and actions these are. name: of the recording; as much of it is kept as fits. Methods
    raise DemonstrationError where the disk refuses.
    """

    def __init__(self, path: Path, behavior: BehaviorSpec, name: str) -> None:
        self._path, self._behavior, self._name = path, behavior, name
        package = behavior.unity_package
        self._has_rows_first = package is not None and package.image_order == "HWC"
        self._unfinished = path.with_name(f"{path.name}.part-{os.getpid()}")
        self._file: BinaryIO | None = None
        self._num_bytes = self._num_records = self._num_episodes = 0
        self._total = 0.0
        self._before: list[tuple[int, int, float]] = []  # of each episode: where it begins, records and returns so far

    def __enter__(self) -> DemonstrationWriter:
        """Writes the head; metadata follows at the end."""
        try:
            self._file = open(self._unfinished, "wb")
            self._num_bytes = self._file.write(bytes(BEHAVIOR_BEGIN) + _with_length(_brain(self._behavior)))
        except OSError as error:
            self._give_up()
            raise self._failure(error) from error
        return self

    def write(self, episode: Episode) -> None:
        """Append an episode, of which nothing waits in this process."""
        assert self._file is not None, "within the context only"
        self._before.append((self._num_bytes, self._num_records, self._total))
        self._num_episodes += 1
        self._total += float(episode.rewards.sum(dtype=np.float64))
        try:
            for step in range(len(episode.rewards) + 1):
                self._num_bytes += self._file.write(_with_length(self._record(episode, step)))
                self._num_records += 1
            self._file.flush()
        except OSError as error:
            with suppress(DemonstrationError):
                self.drop_last()
            raise self._failure(error) from error

    def drop_last(self) -> None:
        """The newest episode is not in the file. Call it only where there is one."""
        assert self._file is not None, "within the context only"
        self._num_bytes, self._num_records, self._total = self._before.pop()
        self._num_episodes -= 1
        try:
            self._file.seek(self._num_bytes)
            self._file.truncate()
        except OSError as error:
            raise self._failure(error) from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Publishes the file, or removes what was written of it."""
        if kind is not None or not self._num_episodes:
            self._give_up()
            return
        assert self._file is not None
        mean = self._total / self._num_episodes
        metadata = _metadata(Metadata(VERSIONS[-1], self._name, self._num_records, self._num_episodes, mean))
        try:
            self._file.write(metadata)  # as Unity leaves it there
            self._file.seek(0)
            self._file.write(_with_length(metadata))
            self._file.close()
            os.replace(self._unfinished, self._path)
        except OSError as failure:
            self._give_up()
            raise self._failure(failure) from failure

    def _record(self, episode: Episode, step: int) -> bytes:
        """The record before action `step`; the one after the last action repeats that one, as in Unity's files, since
        ML-Agents' loader needs an action in each."""
        last = len(episode.rewards)
        is_last = step == last
        acted = step - 1 if is_last else step
        mask = None if episode.action_mask is None or is_last else ~episode.action_mask[step]
        info = AgentInfoProto(
            reward=float(episode.rewards[step - 1]) if step else 0.0,
            done=is_last and episode.ending != CUT,
            max_step_reached=is_last and episode.ending == TRUNCATED,
            id=self._num_episodes,  # as current packages, which number the episodes of all agents
            action_mask=mask.tolist() if mask is not None and mask.any() else (),
            observations=[
                _observation(spec, column[step], self._has_rows_first)
                for spec, column in zip(self._behavior.observations, episode.observations, strict=True)
            ],
        )
        action = AgentActionProto(
            continuous_actions=episode.continuous[acted].tolist(), discrete_actions=episode.discrete[acted].tolist()
        )
        return _field(INFO_FIELD, info.SerializeToString()) + _field(ACTION_FIELD, action.SerializeToString())

    def _give_up(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # of a full disk, which was reported
                self._file.close()
        self._unfinished.unlink(missing_ok=True)

    def _failure(self, error: OSError) -> DemonstrationError:
        return DemonstrationError(f"{self._path}: cannot be written: {error.strerror or error}")


def _brain(behavior: BehaviorSpec) -> bytes:
    actions = behavior.actions
    spec = ActionSpecProto(
        num_continuous_actions=actions.continuous,
        num_discrete_actions=len(actions.branches),
        discrete_branch_sizes=actions.branches,
    )
    written: bytes = BrainParametersProto(brain_name=behavior.name, action_spec=spec).SerializeToString()
    return written


def _metadata(metadata: Metadata) -> bytes:
    """At most MOST_METADATA_BYTES, of which the name gets what the numbers leave."""
    numbers = (
        (VERSION_FIELD, metadata.version),
        (STEPS_FIELD, metadata.num_records),
        (EPISODES_FIELD, metadata.num_episodes),
    )
    written = b"".join(_tag(number, NUMBER) + write_varint(value) for number, value in numbers)
    written += _tag(MEAN_FIELD, FOUR_BYTES) + struct.pack("<f", metadata.mean_return)
    room = MOST_METADATA_BYTES - len(written) - len(_field(NAME_FIELD, b""))
    return written + _field(NAME_FIELD, metadata.name.encode()[:room].decode(errors="ignore").encode())


def _observation(spec: ObservationSpec, value: Observation, has_rows_first: bool) -> ObservationProto:
    """The message of one observation [...].

    has_rows_first: floats of images are H, W, C under the shape C, H, W, as the package of this behavior records them,
    and as they are read for it.
    """
    found = ObservationProto(
        dimension_properties=_PROPERTIES[spec.kind],
        observation_type=GOAL_SIGNAL if spec.is_goal else DEFAULT,
        name=spec.name,
    )
    in_order = value.transpose(2, 0, 1) if spec.kind == "image" else value
    found.shape.extend(in_order.shape)
    if spec.dtype == "uint8":
        found.compression_type = PNG
        found.compressed_data, mapping = _png_files(in_order)
        found.compressed_channel_mapping.extend(mapping)
    else:
        found.float_data.data.extend((value if has_rows_first else in_order).ravel().tolist())
    return found


def _png_files(image: Observation) -> tuple[bytes, list[int]]:
    """PNG files of three channels each of an image u8[C, H, W], and which of its channels each of theirs is.

    The mapping is left out for three channels, as Unity does.
    """
    num_channels, height, width = image.shape
    num_empty = -num_channels % 3
    filled = np.concatenate([image, np.zeros((num_empty, height, width), np.uint8)])
    file = io.BytesIO()
    for first in range(0, len(filled), 3):
        rows = np.ascontiguousarray(filled[first : first + 3].transpose(1, 2, 0))
        Image.fromarray(rows).save(file, "PNG", compress_level=_FAST)
    mapping = [] if num_channels == 3 else [*range(num_channels), *[-1] * num_empty]
    return file.getvalue(), mapping


def _with_length(content: bytes) -> bytes:
    return write_varint(len(content)) + content


def _field(number: int, content: bytes) -> bytes:
    return _tag(number, LENGTH) + _with_length(content)


def _tag(number: int, kind: int) -> bytes:
    return write_varint(number << 3 | kind)
