"""Where the records of a .demo file are: each has its length before it.

Shapes: N records.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rl_tui.engine.demonstrations.damage import Damage
from rl_tui.engine.sampling.environments.unity.wire.varints import read_varint
from rl_tui.engine.specs import Int64

LARGEST_RECORD = 2**28 - 1  # the largest length of four bytes
_MOST_LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class RecordBlock:
    """Records in the order of the file. begins, lengths: i64[N] in `content`, without the length that is written before
    each. places: i64[N], of their begins in the file."""

    content: bytes
    begins: Int64
    lengths: Int64
    places: Int64


def blocks_of(descriptor: int, begin: int, num_records: int, block_bytes: int) -> Iterator[RecordBlock]:
    """The records from byte `begin` on, in blocks of about so many bytes. Raises Damage where the file is cut off.

    num_records: which must be there, and after which other bytes may follow; 0: as many as there are.
    """
    size = os.fstat(descriptor).st_size
    position, num_read = begin, 0
    while position < size and (not num_records or num_read < num_records):
        content = os.pread(descriptor, max(block_bytes, _MOST_LENGTH_BYTES), position)
        block = _complete(content, position, num_records - num_read if num_records else len(content))
        if not len(block.begins):
            content = os.pread(descriptor, _length_of_first(content, position, size), position)
            block = _complete(content, position, 1)
        if not len(block.begins):
            raise Damage(position, "the file was cut off while it was read")
        yield block
        num_read += len(block.begins)
        position = int(block.places[-1] + block.lengths[-1])
    if num_read < num_records:
        raise Damage(position, f"the file is cut off: it must have {num_records} records, got {num_read}")


def _complete(content: bytes, offset: int, most: int) -> RecordBlock:
    """The records that are in `content` as a whole, from its beginning on."""
    begins: list[int] = []
    lengths: list[int] = []
    position, end = 0, len(content)
    for _ in range(most):
        if position >= end:
            break
        length, begin = content[position], position + 1
        if length > 127:
            length, begin = read_varint(content, position, end)
            if length < 0:
                if end - position >= _MOST_LENGTH_BYTES:
                    _refuse_length(offset + position)
                break
        position = begin + length
        if position > end:
            break
        begins.append(begin)
        lengths.append(length)
    found = np.array(begins, np.int64)
    return RecordBlock(content, found, np.array(lengths, np.int64), found + offset)


def _length_of_first(content: bytes, position: int, size: int) -> int:
    """Of the record that begins there, with the length before it. Raises Damage for one that the file cannot hold."""
    length, begin = read_varint(content, 0, len(content))
    if length < 0:
        if len(content) >= _MOST_LENGTH_BYTES:
            _refuse_length(position)
        raise Damage(position, f"the file is cut off: a record begins here, and {size - position} bytes follow")
    if position + begin + length > size:
        left = size - position - begin
        raise Damage(position, f"the file is cut off: a record of {length} bytes begins here, and {left} follow")
    return begin + length


def _refuse_length(at: int) -> None:
    raise Damage(at, f"a record must have at most {LARGEST_RECORD:,} bytes, got a larger length")
