"""Where the numbers are in the bytes of an AgentInfoProto, so that those of many agents are read at once.

The AgentInfos of a behavior differ in few bytes: a layout says which, and which must be equal for another one to have
the same fields at the same places. What is rare has no layout, and is left to protobuf: fields that come twice, in an
unusual encoding or are unknown, flags and lengths of more than four bytes, compressed images.

Shapes: N agents with AgentInfos of B bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.sampling.environments.unity.wire.varints import join_varints, read_varint
from rl_tui.engine.specs import Bool, Float32, Int64

Bytes: TypeAlias = NDArray[np.uint8]
Span: TypeAlias = tuple[int, int]

_MOST_BYTES = 10  # of a number: protobuf writes as many for one below zero, as old packages have them for ids

_EQUAL, _CONTINUED, _ANY = 0xFF, 0x80, 0x00  # which bits of a byte must be equal: all, whether a number goes on, none

# The first byte of a field: its number times 8, plus how it is encoded: 0 number, 2 what begins with its length,
# 5 four bytes.
_FLOATS = {0x3D: "reward", 0x7D: "group_reward"}
_FLAGS = {0x40: "done", 0x48: "max_step_reached"}
_NUMBERS = {0x50: "id", 0x70: "group_id"}
_MASK, _OBSERVATION = 0x5A, 0x6A
_FLOAT_DATA, _PACKED_FLOATS = 0x22, 0x0A
_FIXED_NUMBERS = {0x10, 0x38}  # of an observation: its compression, its type
_FIXED_BYTES = {0x0A, 0x2A, 0x32, 0x42}  # of an observation: its shape, mapping, dimension properties and name


class _NoLayoutError(Exception):
    """Protobuf has to read this one."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the numbers are. compared: i64 positions of bytes whose bits in `bits` must be `expected`."""

    compared: NDArray[np.intp]
    bits: Bytes
    expected: Bytes
    fields: dict[str, Span]
    observations: tuple[Span, ...]

    def fits(self, rows: Bytes) -> Bool:
        """bool[N]: which of the AgentInfos u8[N, B] have this layout."""
        is_fitting: Bool = ((rows[:, self.compared] & self.bits) == self.expected).all(axis=1)
        return is_fitting

    def floats(self, rows: Bytes, name: str) -> Float32 | None:
        """f32[N] of a field; None if it is left out."""
        span = self.fields.get(name)
        return None if span is None else floats_at(rows, span)[:, 0]

    def numbers(self, rows: Bytes, name: str) -> Int64 | None:
        """i64[N] of a field, in the 32 bits that it is declared with; None if it is left out."""
        span = self.fields.get(name)
        return None if span is None else join_varints(rows[:, slice(*span)]).astype(np.int32).astype(np.int64)

    def mask(self, rows: Bytes) -> Bool | None:
        """bool[N, ...], True = forbidden; None if it is left out."""
        span = self.fields.get("action_mask")
        return None if span is None else rows[:, slice(*span)] != 0


def floats_at(rows: Bytes, span: Span) -> Float32:
    """f32[N, D] of the bytes at `span`."""
    return np.ascontiguousarray(rows[:, slice(*span)]).view("<f4")


def layout_of(entry: bytes) -> Layout | None:
    """The layout of an AgentInfoProto that protobuf has read; None for what is left to protobuf."""
    walk = _Walk(entry)
    try:
        walk.read_info()
    except (_NoLayoutError, IndexError):
        return None
    bits = np.frombuffer(walk.bits, np.uint8)
    compared = np.flatnonzero(bits)
    found = np.frombuffer(entry, np.uint8)[compared]
    return Layout(compared, bits[compared], found & bits[compared], walk.fields, tuple(walk.observations))


@dataclass(slots=True)
class _Walk:
    """Goes through the fields of one AgentInfoProto."""

    data: bytes
    bits: bytearray = field(init=False)
    fields: dict[str, Span] = field(default_factory=dict)
    observations: list[Span] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bits = bytearray([_EQUAL]) * len(self.data)

    def read_info(self) -> None:
        position = 0
        while position < len(self.data):
            position = self._read_field(self.data[position], position + 1)

    def _read_field(self, tag: int, begin: int) -> int:
        """Read the field that begins there, and return its end."""
        if tag in _FLOATS:
            return self._keep(_FLOATS[tag], (begin, begin + 4), _ANY)
        if tag in _FLAGS:
            return self._keep(_FLAGS[tag], (begin, self._end_of_number(begin)), _EQUAL)
        if tag in _NUMBERS:
            return self._keep(_NUMBERS[tag], (begin, self._end_of_number(begin, _MOST_BYTES)), _CONTINUED)
        if tag == _MASK:
            span = self._span(begin, len(self.data))
            if max(self.data[slice(*span)], default=0) > 127:
                raise _NoLayoutError
            return self._keep("action_mask", span, _CONTINUED)
        if tag == _OBSERVATION:
            span = self._span(begin, len(self.data))
            self._read_observation(*span)
            return span[1]
        raise _NoLayoutError

    def _read_observation(self, position: int, end: int) -> None:
        floats: Span | None = None
        while position < end:
            tag, begin = self.data[position], position + 1
            if tag == _FLOAT_DATA and floats is None:
                floats = self._read_floats(*self._span(begin, end))
                position = floats[1]
            elif tag in _FIXED_BYTES:
                position = self._span(begin, end)[1]
            elif tag in _FIXED_NUMBERS:
                position = self._end_of_number(begin)
            else:
                raise _NoLayoutError
        if floats is None or position != end:
            raise _NoLayoutError
        self.observations.append(floats)

    def _read_floats(self, begin: int, end: int) -> Span:
        """The floats of a FloatData that consists of them alone."""
        if begin == end or self.data[begin] != _PACKED_FLOATS:
            raise _NoLayoutError
        span = self._span(begin + 1, end)
        if span[1] != end:
            raise _NoLayoutError
        self._free(span, _ANY)
        return span

    def _keep(self, name: str, span: Span, bits: int) -> int:
        if name in self.fields:
            raise _NoLayoutError
        self.fields[name] = span
        self._free(span, bits)
        return span[1]

    def _free(self, span: Span, bits: int) -> None:
        if span[1] > len(self.data):
            raise _NoLayoutError
        self.bits[slice(*span)] = bytes([bits]) * (span[1] - span[0])

    def _span(self, begin: int, limit: int) -> Span:
        """Where the bytes are whose length is written there."""
        length, first = read_varint(self.data, begin, limit)
        if length < 0 or first + length > limit:
            raise _NoLayoutError
        return first, first + length

    def _end_of_number(self, begin: int, most: int = 4) -> int:
        number, end = read_varint(self.data, begin, len(self.data), most)
        if number < 0:
            raise _NoLayoutError
        return end
