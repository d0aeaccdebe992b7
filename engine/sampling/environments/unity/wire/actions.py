"""Actions as the bytes of an AgentActionListProto.

Shapes: N agents, A continuous dimensions, K branches, B bytes.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.sampling.environments.unity.unity_messages_pb2 import AgentActionListProto, AgentActionProto
from rl_tui.engine.sampling.environments.unity.wire.varints import write_varint
from rl_tui.engine.specs import Actions, Float32, Int64

Bytes: TypeAlias = NDArray[np.uint8]

# The first byte of a field: its number times 8, plus 2 as for everything that begins with its length.
_ENTRY, _DEPRECATED, _CONTINUOUS, _DISCRETE = b"\x0a", b"\x0a", b"\x32", b"\x3a"


def write_actions(actions: Actions, *, with_deprecated: bool) -> bytes:
    """An AgentActionListProto of these actions, in their order.

    with_deprecated: also in the field that a player without hybrid actions reads, continuous and then discrete ones.
    """
    continuous, discrete = actions.continuous, actions.discrete
    if discrete.size and not 0 <= discrete.min() <= discrete.max() < 128:
        return _write_each(continuous, discrete, with_deprecated=with_deprecated)
    fields = [_floats(_CONTINUOUS, continuous), _field(_DISCRETE, discrete.astype(np.uint8))]  # a byte for each choice
    if with_deprecated:
        fields.insert(0, _floats(_DEPRECATED, _joined(continuous, discrete)))
    return _framed(_ENTRY, np.hstack(fields)).tobytes()


def _write_each(continuous: Float32, discrete: Int64, *, with_deprecated: bool) -> bytes:
    both = _joined(continuous, discrete).tolist() if with_deprecated else [[]] * len(continuous)
    rows = zip(both, continuous.tolist(), discrete.tolist(), strict=True)
    written: bytes = AgentActionListProto(
        value=[
            AgentActionProto(vector_actions_deprecated=old, continuous_actions=numbers, discrete_actions=choices)
            for old, numbers, choices in rows
        ]
    ).SerializeToString()
    return written


def _joined(continuous: Float32, discrete: Int64) -> Float32:
    return np.hstack((continuous, discrete.astype(np.float32)))


def _floats(tag: bytes, values: Float32) -> Bytes:
    packed = np.ascontiguousarray(values, "<f4")
    return _field(tag, packed.view(np.uint8).reshape(len(packed), 4 * packed.shape[1]))


def _field(tag: bytes, rows: Bytes) -> Bytes:
    """A field with the bytes of each row; none where there are no bytes."""
    return _framed(tag, rows) if rows.shape[1] else rows


def _framed(tag: bytes, rows: Bytes) -> Bytes:
    """u8[N, B] with the tag and the length before each row."""
    head = np.frombuffer(tag + write_varint(rows.shape[1]), np.uint8)
    return np.hstack((np.broadcast_to(head, (len(rows), len(head))), rows))
