"""Files put together from protobuf's messages, as other programs and earlier versions of Unity write them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rl_tui.engine.sampling.environments.unity.unity_messages_pb2 import (
    ActionSpecProto,
    AgentActionProto,
    AgentInfoProto,
    BrainParametersProto,
    ObservationProto,
    continuous,
    discrete,
)
from tests.unity_player.encoding import varint


def number(field: int, value: int) -> bytes:
    """A field with a whole number."""
    return varint(field << 3) + varint(value)


def content(field: int, value: bytes) -> bytes:
    """A field with bytes."""
    return varint(field << 3 | 2) + varint(len(value)) + value


def old_brain(*sizes: int, is_continuous: bool) -> BrainParametersProto:
    """A behavior as packages before version 1.0.3 of their protocol describe it."""
    kind = continuous if is_continuous else discrete
    return BrainParametersProto(
        brain_name="Old", vector_action_size_deprecated=sizes, vector_action_space_type_deprecated=kind
    )


def brain(num_continuous: int = 0, branches: Sequence[int] = (), name: str = "New") -> BrainParametersProto:
    """A behavior."""
    actions = ActionSpecProto(
        num_continuous_actions=num_continuous, num_discrete_actions=len(branches), discrete_branch_sizes=branches
    )
    return BrainParametersProto(brain_name=name, action_spec=actions)


def info(values: Sequence[float], **fields: object) -> AgentInfoProto:
    """What an agent with one vector observed."""
    vector = ObservationProto(shape=[len(values)], float_data=ObservationProto.FloatData(data=values))
    return AgentInfoProto(observations=[vector], **fields)


def record(seen: AgentInfoProto, **action: object) -> bytes:
    """A record without its length."""
    done = AgentActionProto(**action)
    return content(1, seen.SerializeToString()) + content(2, done.SerializeToString())


def raw_file(
    path: Path,
    behavior: BrainParametersProto,
    records: Sequence[bytes],
    *,
    version: int = 1,
    num_records: int | None = None,
    trailing: bytes = b"",
) -> Path:
    """A file of these records. num_records: what it says, if not their number."""
    said = len(records) if num_records is None else num_records
    metadata = number(1, version) * bool(version) + content(2, b"raw") + number(3, said) * bool(said)
    head = (varint(len(metadata)) + metadata).ljust(33, b"\0")
    parts = [behavior.SerializeToString(), *records]
    path.write_bytes(head + b"".join(varint(len(part)) + part for part in parts) + trailing)
    return path


def old_file(path: Path) -> Path:
    """A recording of a package before version 1.0: one id below zero, the deprecated actions, and no names."""
    records = [
        record(info([n / 4, 1.0], id=-47060, reward=n % 3, done=n % 5 == 4), vector_actions_deprecated=[n % 3, 1.0])
        for n in range(12)
    ]
    last = record(info([3.0, 1.0], id=-47060))
    return raw_file(path, old_brain(3, 2, is_continuous=False), [*records, last])
