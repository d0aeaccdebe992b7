"""One .demo file: what its records say is read when it is opened, and observations when they are needed.

Shapes: N records.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from google.protobuf.message import DecodeError

from rl_tui.engine.demonstrations.damage import Damage, named_after
from rl_tui.engine.demonstrations.file_head import LARGEST_HEAD, FileHead, read_head
from rl_tui.engine.demonstrations.file_sensors import ImageOrder, sensors_of_file
from rl_tui.engine.demonstrations.message_fields import LENGTH, fields_of
from rl_tui.engine.demonstrations.record_blocks import RecordBlock, blocks_of
from rl_tui.engine.demonstrations.record_columns import RecordColumns, join_columns
from rl_tui.engine.demonstrations.record_layout import INFO_FIELD
from rl_tui.engine.demonstrations.record_reader import RecordReader, Sensors
from rl_tui.engine.sampling.environments.unity.unity_messages_pb2 import AgentInfoProto
from rl_tui.engine.sampling.environments.unity.wire.errors import WireError
from rl_tui.engine.sampling.environments.unity.wire.image_decoder import ImageDecoder
from rl_tui.engine.specs import BehaviorSpec, Int64, Observations

SUFFIX = ".demo"
_BLOCK_BYTES = 2**20  # read at once
_GAP = 2**12  # bytes between two records that are rather read than skipped


@dataclass(frozen=True, slots=True)
class DemonstrationFile:
    """columns: of its records. spec: what the agent observes and does. No file stays open."""

    path: Path
    head: FileHead
    spec: BehaviorSpec
    columns: RecordColumns
    reader: RecordReader
    _stamp: tuple[int, int]

    def place(self, records: Int64, sensors: Sensors, columns: Observations, rows: Int64) -> None:
        """Write the observations of these records, i64[N] in ascending order, into these rows of `columns`.

        sensors: whose specs say what the columns hold. Raises DemonstrationError.
        """
        begins, lengths = self.columns.begins[records], self.columns.lengths[records]
        layouts = self.columns.layouts[records]
        with _opened(self.path) as descriptor:
            if _stamp_of(descriptor) != self._stamp:
                raise Damage(0, "the file has changed since it was opened")
            for part in _parts(begins, lengths):
                block = _read_block(descriptor, begins[part], lengths[part])
                self.reader.place(block, layouts[part], sensors, columns, rows[part])


def open_file(path: Path, image_order: ImageOrder, decoder: ImageDecoder) -> DemonstrationFile:
    """The file, with all of its records looked at. decoder: of all files. Raises DemonstrationError."""
    with _opened(path) as descriptor:
        stamp = _stamp_of(descriptor)
        head = read_head(os.pread(descriptor, LARGEST_HEAD, 0))
        reader: RecordReader | None = None
        parts: list[RecordColumns] = []
        for block in blocks_of(descriptor, head.end, head.metadata.num_records, _BLOCK_BYTES):
            if reader is None:
                reader = RecordReader(_sensors(block, head.behavior, image_order), head.actions, decoder)
            parts.append(reader.read(block))
        if reader is None:
            raise Damage(head.end, "the file must have a record, got none")
        columns = join_columns(parts)
        _require_finite(columns)
    observations = tuple(sensor.spec for sensor in reader.sensors if sensor is not None)
    return DemonstrationFile(
        path, head, BehaviorSpec(head.behavior, observations, head.actions), columns, reader, stamp
    )


def _sensors(block: RecordBlock, behavior: str, image_order: ImageOrder) -> Sensors:
    """Those of the first record."""
    begin, end, place = int(block.begins[0]), int(block.begins[0] + block.lengths[0]), int(block.places[0])
    info = AgentInfoProto()
    try:
        for part in fields_of(block.content, begin, end, place - begin):
            if part.number == INFO_FIELD and part.kind == LENGTH:
                info.MergeFromString(block.content[part.begin : part.end])
        sensors = sensors_of_file(behavior, info.observations, image_order)
    except DecodeError as error:
        raise Damage(place, "a record must hold what an agent observed, got other bytes") from error
    except WireError as error:
        raise Damage(place, str(error)) from error
    if all(sensor is None for sensor in sensors):
        raise Damage(place, "a record must have an observation with values, got none")
    return sensors


def _require_finite(columns: RecordColumns) -> None:
    is_finite = np.isfinite(columns.rewards)
    if not is_finite.all():
        row = int(np.flatnonzero(~is_finite)[0])
        raise Damage(int(columns.begins[row]), f"a reward must be finite, got {columns.rewards[row]}")


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    with named_after(path):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _stamp_of(descriptor: int) -> tuple[int, int]:
    """What differs once a file was written to."""
    found = os.fstat(descriptor)
    return found.st_size, found.st_mtime_ns


def _parts(begins: Int64, lengths: Int64) -> list[slice]:
    """The records in parts of about _BLOCK_BYTES that are read."""
    gaps = np.diff(begins, prepend=begins[:1]) - np.append(0, lengths[:-1])
    read = np.cumsum(lengths + np.minimum(gaps, _GAP))
    cuts = np.flatnonzero(np.diff(read // _BLOCK_BYTES)) + 1
    edges = [0, *cuts.tolist(), len(begins)]
    return [slice(first, last) for first, last in pairwise(edges) if first < last]


def _read_block(descriptor: int, begins: Int64, lengths: Int64) -> RecordBlock:
    """These records, those that are near each other with what is between them."""
    ends = begins + lengths
    cuts = np.flatnonzero(begins[1:] - ends[:-1] > _GAP) + 1
    firsts, lasts = np.append(0, cuts), np.append(cuts, len(begins)) - 1
    contents = [
        os.pread(descriptor, end - begin, begin)
        for begin, end in zip(begins[firsts].tolist(), ends[lasts].tolist(), strict=True)
    ]
    sizes = ends[lasts] - begins[firsts]
    if sum(map(len, contents)) != sizes.sum():
        raise Damage(int(begins[0]), "the file was cut off while it was read")
    moved = np.cumsum(sizes) - sizes - begins[firsts]  # from a place in the file to one in the block
    places = begins + np.repeat(moved, np.diff(np.append(firsts, len(begins))))
    return RecordBlock(b"".join(contents), places, lengths, begins)
