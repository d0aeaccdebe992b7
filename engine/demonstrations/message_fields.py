"""The fields of a protobuf message, from its bytes: of messages of which no class is generated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rl_tui.engine.demonstrations.damage import Damage
from rl_tui.engine.sampling.environments.unity.wire.varints import read_varint

NUMBER, EIGHT_BYTES, LENGTH, FOUR_BYTES = 0, 1, 2, 5  # how a field is encoded
_MOST_BYTES = 10  # of a number


class Field(NamedTuple):
    """One field. kind: how it is encoded. value: of a NUMBER, else 0. begin, end: where the bytes of its value are."""

    number: int
    kind: int
    value: int
    begin: int
    end: int


def fields_of(data: bytes, begin: int, end: int, offset: int = 0) -> Iterator[Field]:
    """The fields of the message data[begin:end]. offset: of data, for errors. Raises Damage where it is none."""
    position = begin
    while position < end:
        tag, first = read_varint(data, position, end, _MOST_BYTES)
        number, kind = tag >> 3, tag & 7
        value = 0
        if tag < 8:
            raise Damage(offset + position, "a field must begin with its number, got none")
        if kind == NUMBER:
            value, last = read_varint(data, first, end, _MOST_BYTES)
            if value < 0:
                raise Damage(offset + first, f"a number must have at most {_MOST_BYTES} bytes and an end, got none")
        elif kind == LENGTH:
            length, first = read_varint(data, first, end)
            last = first + length
            if length < 0 or last > end:
                found = "none" if length < 0 else f"{end - first}"
                raise Damage(offset + position, f"field {number} must have {max(length, 0)} bytes, got {found}")
        elif kind in (FOUR_BYTES, EIGHT_BYTES):
            last = first + (4 if kind == FOUR_BYTES else 8)
            if last > end:
                raise Damage(offset + position, f"field {number} must have {last - first} bytes, got {end - first}")
        else:
            raise Damage(offset + position, f"field {number} must have an encoding from 0 to 2 or 5, got {kind}")
        yield Field(number, kind, value, first, last)
        position = last
