"""The beginning of a .demo file: what the recording is called and counts, and which actions its behavior has.

Byte 0 is the length of the metadata, which has room up to byte 33. There the behavior begins, with its length, then the
records. The metadata is written again when the recording ends: in a file that was never closed its numbers are zero.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from rl_tui.engine.demonstrations.damage import Damage
from rl_tui.engine.demonstrations.message_fields import FOUR_BYTES, LENGTH, NUMBER, fields_of
from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.environments.unity.unity_messages_pb2 import BrainParametersProto
from rl_tui.engine.sampling.environments.unity.wire.errors import WireError
from rl_tui.engine.sampling.environments.unity.wire.sensors import action_spec_of
from rl_tui.engine.sampling.environments.unity.wire.varints import read_varint
from rl_tui.engine.sampling.pools.teams import split_name
from rl_tui.engine.specs import ActionSpec

MOST_METADATA_BYTES = 32
BEHAVIOR_BEGIN = 1 + MOST_METADATA_BYTES
VERSIONS = (0, 1)  # of the format, which do not differ in what is read
LARGEST_HEAD = 2**20  # bytes up to the first record; those of real files have less than a hundred

VERSION_FIELD, NAME_FIELD, STEPS_FIELD, EPISODES_FIELD, MEAN_FIELD = 1, 2, 3, 4, 5


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a file says of itself. num_records: all of them, also those at the ends of episodes; 0: not closed."""

    version: int
    name: str
    num_records: int
    num_episodes: int
    mean_return: float


@dataclass(frozen=True, slots=True)
class FileHead:
    """behavior: its name without a team. has_old_actions: described as before version 1.3 of Unity's
    protocol. end: the byte at which the records begin."""

    metadata: Metadata
    behavior: str
    actions: ActionSpec
    has_old_actions: bool
    end: int

    @property
    def has_resets_at_ends(self) -> bool:
        """Whether a record at an end, with an id that stays, observes what the next episode begins with.

        So it is before version 1.0 of the package. Later ones gave each episode a new id as long as they described
        actions in the old way; where the id stays again, as in 3.0, they do not.
        """
        return self.has_old_actions


def read_head(data: bytes) -> FileHead:
    """The head of a file that begins with these bytes, its first LARGEST_HEAD or all of them. Raises Damage."""
    metadata = _read_metadata(data)
    length, begin = read_varint(data, BEHAVIOR_BEGIN, len(data))
    if length < 0:
        raise Damage(min(BEHAVIOR_BEGIN, len(data)), "the behavior must begin here with its length, got none")
    if begin + length > len(data):
        raise Damage(begin, f"the behavior must have {length} bytes, got {len(data) - begin}")
    try:
        brain = BrainParametersProto.FromString(data[begin : begin + length])
        actions = action_spec_of(brain.brain_name, brain)
    except DecodeError as error:
        raise Damage(begin, f"must be BrainParametersProto, got {length} other bytes") from error
    except WireError as error:
        raise Damage(begin, str(error)) from error
    if not actions.num_columns:
        raise Damage(begin, "a behavior must have an action, got none")
    try:
        behavior, _ = split_name(brain.brain_name)
    except EnvironmentFailure:
        behavior = brain.brain_name
    described = brain.action_spec
    has_old_actions = described.num_continuous_actions == 0 and described.num_discrete_actions == 0
    return FileHead(metadata, behavior, actions, has_old_actions, begin + length)


def _read_metadata(data: bytes) -> Metadata:
    if len(data) < BEHAVIOR_BEGIN:
        raise Damage(len(data), f"a .demo file must have more than {BEHAVIOR_BEGIN} bytes, got {len(data)}")
    if data[0] > MOST_METADATA_BYTES:
        raise Damage(0, f"metadata must have at most {MOST_METADATA_BYTES} bytes, got {data[0]}")
    numbers = dict.fromkeys((VERSION_FIELD, STEPS_FIELD, EPISODES_FIELD), 0)
    name, mean = b"", 0.0
    for field in fields_of(data, 1, 1 + data[0]):
        if field.kind == NUMBER and field.number in numbers:
            numbers[field.number] = _as_int32(field.value)
        elif field.kind == LENGTH and field.number == NAME_FIELD:
            name = data[field.begin : field.end]
        elif field.kind == FOUR_BYTES and field.number == MEAN_FIELD:
            (mean,) = struct.unpack_from("<f", data, field.begin)
    version, num_records = numbers[VERSION_FIELD], numbers[STEPS_FIELD]
    if version not in VERSIONS:
        raise Damage(1, f"the version of the format must be {VERSIONS[0]} or {VERSIONS[1]}, got {version}")
    if num_records < 0:
        raise Damage(1, f"the number of records must be at least 0, got {num_records}")
    return Metadata(version, name.decode(errors="replace"), num_records, numbers[EPISODES_FIELD], mean)


def _as_int32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31
