"""Where the numbers are in a record, so that those of many records are read at once.

A record holds what the agent observed, an AgentInfoProto, and the action that it took then, an AgentActionProto. Most
records of a file differ only in their numbers; what is rare has no layout, and protobuf reads it.

Shapes: N records of B bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.demonstrations.message_fields import FOUR_BYTES, LENGTH, fields_of
from rl_tui.engine.sampling.environments.unity.wire.layouts import Bytes, Layout, Span, floats_at, layout_of
from rl_tui.engine.specs import Bool, Float32, Int64

INFO_FIELD, ACTION_FIELD = 1, 2  # of a record
_DEPRECATED, _VALUE, _CONTINUOUS, _DISCRETE = 1, 4, 6, 7  # of an action
_EQUAL, _CONTINUED, _ANY = 0xFF, 0x80, 0x00  # which bits of a byte must be equal: all, whether a number goes on, none


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """info: of the AgentInfoProto at info_span. compared: i64 positions of bytes whose bits in `bits` must be
    `expected`. deprecated, continuous, discrete: where the lists of an action are, None for one that is empty."""

    info: Layout
    info_span: Span
    compared: NDArray[np.intp]
    bits: Bytes
    expected: Bytes
    deprecated: Span | None
    continuous: Span | None
    discrete: Span | None

    def fits(self, records: Bytes) -> Bool:
        """bool[N]: which of the records u8[N, B] have this layout."""
        is_fitting: Bool = ((records[:, self.compared] & self.bits) == self.expected).all(axis=1)
        return is_fitting & self.info.fits(self.infos(records))

    def infos(self, records: Bytes) -> Bytes:
        """The AgentInfos of records, for `info`."""
        return records[:, slice(*self.info_span)]

    def observation_spans(self) -> tuple[Span, ...]:
        """Where the floats of each observation are in a record."""
        begin = self.info_span[0]
        return tuple((begin + first, begin + last) for first, last in self.info.observations)

    @staticmethod
    def floats(records: Bytes, span: Span | None) -> Float32 | None:
        """f32[N, A] of a list; None where it is empty."""
        return None if span is None else floats_at(records, span)

    @staticmethod
    def choices(records: Bytes, span: Span | None) -> Int64 | None:
        """i64[N, K] of a list; None where it is empty."""
        return None if span is None else records[:, slice(*span)].astype(np.int64)


def record_layout_of(record: bytes) -> RecordLayout | None:
    """The layout of a record that protobuf has read; None for what is left to protobuf."""
    parts = list(fields_of(record, 0, len(record)))
    if [(part.number, part.kind) for part in parts] != [(INFO_FIELD, LENGTH), (ACTION_FIELD, LENGTH)]:
        return None
    info, action = parts
    layout = layout_of(record[info.begin : info.end])
    if layout is None:
        return None
    bits = np.full(len(record), _EQUAL, np.uint8)
    bits[info.begin : info.end] = _ANY
    lists: dict[int, Span] = {}
    for field in fields_of(record, action.begin, action.end):
        span = field.begin, field.end
        if (field.number, field.kind) == (_VALUE, FOUR_BYTES):
            bits[slice(*span)] = _ANY
            continue
        if field.kind != LENGTH or field.number in lists or field.begin == field.end:
            return None
        if field.number in (_DEPRECATED, _CONTINUOUS) and (field.end - field.begin) % 4 == 0:
            bits[slice(*span)] = _ANY
        elif field.number == _DISCRETE and max(record[slice(*span)]) < 128:
            bits[slice(*span)] = _CONTINUED
        else:
            return None
        lists[field.number] = span
    compared = np.flatnonzero(bits)
    expected = np.frombuffer(record, np.uint8)[compared] & bits[compared]
    spans = lists.get(_DEPRECATED), lists.get(_CONTINUOUS), lists.get(_DISCRETE)
    return RecordLayout(layout, (info.begin, info.end), compared, bits[compared], expected, *spans)
