"""Blocks of experience that a worker writes into its shared file, and the training process copies from there."""

from __future__ import annotations

import mmap
import os
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.sampling.pools.shared_memory import aligned, whole_pages
from rl_tui.engine.specs import Aggregation, Game, GameSide, GatheredStatistic, Json, Trajectories

Place: TypeAlias = tuple[str, int | None, str, list[int]]  # field of Trajectories, index in its tuple, dtype, shape

_LEAST_BYTES = 1 << 20  # that the file grows by at once
_FIELDS = [field.name for field in fields(Trajectories)]


@dataclass(frozen=True, slots=True)
class BlockHeader:
    """Where the arrays of a block are, one after the other, and the rest of it. What crosses the pipe for each block.

    sequence: the number of the block among those of its worker, from 1. begin, end: bytes of the file. checksum: of
    these bytes, None where it is not checked.
    """

    behavior: str
    sequence: int
    begin: int
    end: int
    places: list[Place]
    policy_version: int
    measured: dict[str, list[float]]
    statistics: dict[str, list[Json]]
    games: list[Json]
    checksum: int | None = None

    def to_json(self) -> Json:
        """What `from_json` reads."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @staticmethod
    def from_json(written: Json) -> BlockHeader:
        """The header that was written."""
        return BlockHeader(**cast(dict[str, Any], written))


class BlockWriter:
    """The worker's side. Blocks that the other side has copied are overwritten; until then the file grows."""

    def __init__(self, file: int, has_checksums: bool = False) -> None:
        """Blocks come after what the file has by now."""
        self._file = file
        self._has_checksums = has_checksums
        self._begin = os.fstat(file).st_size
        self._memory: mmap.mmap | None = None
        self._end = self._begin  # of the newest block
        self._sequence = 0

    def write(self, behavior: str, block: Trajectories, num_copied: int) -> BlockHeader:
        """Write a block. num_copied: how many blocks the other side has copied by now."""
        begin = self._begin if num_copied == self._sequence else self._end
        arrays = list(_arrays(block))
        starts, end = _starts([array for _, _, array in arrays], begin)
        if self._memory is None or end > len(self._memory):
            self._grow(end)
        assert self._memory is not None
        for (_, _, array), start in zip(arrays, starts, strict=True):
            if array.size:
                np.ndarray(array.shape, array.dtype, self._memory, start)[...] = array
        self._end, self._sequence = end, self._sequence + 1
        return BlockHeader(
            behavior,
            self._sequence,
            begin,
            end,
            [(name, index, array.dtype.str, list(array.shape)) for name, index, array in arrays],
            block.policy_version,
            {name: list(numbers) for name, numbers in block.measured.items()},
            {name: _statistic_to_json(one) for name, one in block.statistics.items()},
            [[list(side) for side in (game.own, *game.opponents)] for game in block.games],
            zlib.crc32(self._memory[begin:end]) if self._has_checksums else None,
        )

    def _grow(self, needed: int) -> None:
        size = os.fstat(self._file).st_size
        if needed > size:
            os.truncate(self._file, whole_pages(max(needed, size + _LEAST_BYTES, 2 * needed - self._begin)))
        self._memory = mmap.mmap(self._file, 0)


class BlockReader:
    """The side of the training process."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._memory: mmap.mmap | None = None
        self._sequence = 0

    def read(self, header: BlockHeader) -> Trajectories:
        """A copy of the block. Raises ValueError for one that is not whole, or not the next one."""
        self._sequence += 1
        if header.sequence != self._sequence:
            raise ValueError(f"block {self._sequence} must come next, got block {header.sequence}")
        if self._memory is None or header.end > len(self._memory):
            self._memory = mmap.mmap(self._file, 0)
        if header.checksum is not None and zlib.crc32(self._memory[header.begin : header.end]) != header.checksum:
            raise ValueError(f"block {header.sequence} must have the checksum {header.checksum}")
        values: dict[str, Any] = dict.fromkeys(_FIELDS)
        start = header.begin
        for name, index, dtype, shape in header.places:
            array: NDArray[Any] = np.ndarray(shape, dtype, self._memory, start).copy()
            start = _after(start, array)
            if index is None:
                values[name] = array
            else:
                values[name] = (*(values[name] or ()), array)
        values |= {
            "policy_version": header.policy_version,
            "measured": {name: (total, int(count)) for name, (total, count) in header.measured.items()},
            "statistics": {name: _statistic_from_json(one) for name, one in header.statistics.items()},
            "games": tuple(map(_game_from_json, cast("list[list[list[Any]]]", header.games))),
        }
        return Trajectories(**values)


def _arrays(block: Trajectories) -> Iterator[tuple[str, int | None, NDArray[Any]]]:
    """Every array of a block, by its field, and by its index where the field has a tuple of them."""
    for name in _FIELDS:
        value = getattr(block, name)
        if isinstance(value, np.ndarray):
            yield name, None, value
        elif isinstance(value, tuple) and name != "games":
            for index, array in enumerate(value):
                yield name, index, array


def _starts(arrays: list[NDArray[Any]], begin: int) -> tuple[list[int], int]:
    """Where each array begins, and the last one ends."""
    starts = []
    for array in arrays:
        starts.append(begin)
        begin = _after(begin, array)
    return starts, begin


def _after(start: int, array: NDArray[Any]) -> int:
    """Where the array that follows begins."""
    return start + aligned(array.nbytes)


def _game_from_json(written: list[list[Any]]) -> Game:
    own, *opponents = [GameSide(*side) for side in written]
    return Game(own, tuple(opponents))


def _statistic_to_json(one: GatheredStatistic) -> list[Json]:
    return [one.method, one.total, one.count, one.last, list(one.values), one.num_not_finite]


def _statistic_from_json(written: list[Json]) -> GatheredStatistic:
    method, total, count, last, values, num_not_finite = cast(Any, written)
    gathered = GatheredStatistic(cast(Aggregation, method), total, count, last, num_not_finite=num_not_finite)
    gathered.values.extend(cast("deque[float]", values))
    return gathered
