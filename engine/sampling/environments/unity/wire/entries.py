"""Where the AgentInfos of an AgentInfoListProto are in its bytes.

Neighbors are mostly of one length: a run of them is found by comparing a few bytes each, and is a block of rows
without a copy.

Shapes: N agents with AgentInfos of B bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.sampling.environments.unity.wire.layouts import Bytes
from rl_tui.engine.sampling.environments.unity.wire.varints import read_varint

_ENTRY = 0x0A  # the first byte of each AgentInfo of a list; its length follows


@dataclass(frozen=True, slots=True)
class Entries:
    """AgentInfos of one length: rows i64[N], their places in the list, and contents u8[N, B]."""

    rows: NDArray[np.intp]
    contents: Bytes


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbors of one length. begin and end: in the list's bytes. head: how many bytes are before each content."""

    first_row: int
    begin: int
    end: int
    head: int
    stride: int

    @property
    def rows(self) -> NDArray[np.intp]:
        return np.arange(self.first_row, self.first_row + (self.end - self.begin) // self.stride)


def entries_of(data: bytes) -> list[Entries] | None:
    """The AgentInfos of a list, by their lengths; None if there is anything else, which protobuf has to read."""
    runs = _runs(data)
    if runs is None:
        return None
    by_length: dict[tuple[int, int], list[_Run]] = defaultdict(list)
    for run in runs:
        by_length[run.stride, run.head].append(run)
    return [_joined(data, equally_long) for equally_long in by_length.values()]


def _runs(data: bytes) -> list[_Run] | None:
    runs = []
    row = position = 0
    while position < len(data):
        if data[position] != _ENTRY:
            return None
        length, begin = read_varint(data, position + 1, len(data))
        stride = begin + length - position
        end = position + stride
        if length < 0 or end > len(data):
            return None
        head = data[position:begin]
        while data.startswith(head, end) and end + stride <= len(data):
            end += stride
        runs.append(_Run(row, position, end, len(head), stride))
        row += (end - position) // stride
        position = end
    return runs


def _joined(data: bytes, runs: Sequence[_Run]) -> Entries:
    if len(runs) == 1:
        [run] = runs
        rows, found = run.rows, np.frombuffer(data, np.uint8)[run.begin : run.end]
    else:
        rows = np.concatenate([run.rows for run in runs])
        found = np.frombuffer(b"".join([data[run.begin : run.end] for run in runs]), np.uint8)
    return Entries(rows, found.reshape(-1, runs[0].stride)[:, runs[0].head :])
