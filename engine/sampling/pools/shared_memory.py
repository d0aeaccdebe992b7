"""Columns that a pool and a worker share, in a file without a name, so that nothing can be left behind.

Shapes: D decisions and E terminals that a block has room for, N and M of one step.
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from rl_tui.engine.experience import Column, columns_of, values_of
from rl_tui.engine.sampling.pools.numbering import number_ids
from rl_tui.engine.specs import (
    Actions,
    BehaviorSpec,
    Bool,
    DecisionSteps,
    Float32,
    Int64,
    Measured,
    Observations,
    Steps,
    TerminalSteps,
)

Capacities: TypeAlias = Mapping[str, tuple[int, int]]  # behavior -> D, E
_Scalar = TypeVar("_Scalar", bound=np.generic)
_ALIGNMENT = 64  # a cache line
_ABSENT = -1  # written for a behavior that has no decisions, or no terminals, in a step


def anonymous_file(name: str) -> int:
    """A descriptor of an empty file, in memory on Linux and else on disk, which disappears with its last process."""
    if sys.platform == "linux":
        descriptor = os.memfd_create(name)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    return descriptor


class Carver:
    """Cuts aligned arrays out of a buffer, or only counts how long it must be."""

    def __init__(self, buffer: mmap.mmap | None) -> None:
        self._buffer = buffer
        self.size = 0

    def cut(self, dtype: type[_Scalar], *shape: int) -> NDArray[_Scalar]:
        """The next array of this shape."""
        start = self.size
        num_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        self.size += aligned(num_bytes)
        if self._buffer is None:
            return np.empty((0,) * len(shape), dtype)
        return np.ndarray(shape, dtype, self._buffer, start)


class _Columns:
    """Those of `DecisionSteps` or `TerminalSteps` that are described in experience.py."""

    def __init__(
        self, carrier: type[DecisionSteps | TerminalSteps], spec: BehaviorSpec, rows: int, carver: Carver
    ) -> None:
        self._columns = columns_of(carrier)
        self._values = values_of(self._columns)
        self._arrays = [carver.cut(np.dtype(c.dtype).type, rows, *c.shape(spec, 0)) for c in self._columns]
        self._present: dict[int, list[tuple[Column, NDArray[Any]]]] = {}  # by what `write` returned

    def write(self, steps: DecisionSteps | TerminalSteps, count: int) -> int:
        """Write the columns that are not absent; returns which these are, a bit for each."""
        present = 0
        for index, value in enumerate(self._values(steps)):
            if value is not None:
                self._arrays[index][:count] = value
                present |= 1 << index
        return present

    def read(self, present: int, count: int, scale: int, offset: int) -> dict[str, Any]:
        """Views of what was written, by name, with ids as id * scale + offset."""
        if present not in self._present:
            columns = enumerate(zip(self._columns, self._arrays, strict=True))
            self._present[present] = [column for index, column in columns if present >> index & 1]
        values: dict[str, Any] = {column.name: array[:count] for column, array in self._present[present]}
        for column, _ in self._present[present]:
            if column.holds_ids:
                values[column.name] = number_ids(values[column.name], scale, offset)
        return values


class BehaviorColumns:
    """One behavior's part of a block: the same arrays on both sides. K metrics."""

    def __init__(
        self, spec: BehaviorSpec, capacity: tuple[int, int], carver: Carver, metrics: Sequence[str] = ()
    ) -> None:
        decisions, terminals = capacity
        branches = len(spec.actions.branches)
        self.spec = spec
        # N, version of the ids, which columns its decisions have, M, which its terminals have, agents that act
        self.counts: Int64 = carver.cut(np.int64, 6)
        self.ids: Int64 = carver.cut(np.int64, decisions)
        self.observations = _cut_observations(carver, spec, decisions)
        self.columns = _Columns(DecisionSteps, spec, decisions, carver)
        self.final_ids: Int64 = carver.cut(np.int64, terminals)
        self.final_observations = _cut_observations(carver, spec, terminals)
        self.final_columns = _Columns(TerminalSteps, spec, terminals, carver)
        self.truncated: Bool = carver.cut(np.bool_, terminals)
        self.metrics = metrics
        self.sums: NDArray[np.float64] = carver.cut(np.float64, len(metrics))
        self.num_measured: Int64 = carver.cut(np.int64, len(metrics))
        self.continuous: Float32 = carver.cut(np.float32, decisions, spec.actions.continuous)
        self.discrete: Int64 = carver.cut(np.int64, decisions, branches)
        self._written_ids: Int64 | None = None  # the array that the worker last wrote, compared by identity
        self._version = 0
        self._read_version = 0
        self._read_ids: Int64 = np.empty(0, np.int64)

    def write_steps(self, steps: Steps | None) -> None:
        """Worker: write one step's columns for the pool."""
        if steps is None:
            self.counts[0] = _ABSENT
            return
        for index, name in enumerate(self.metrics):
            self.sums[index], self.num_measured[index] = (steps.measured or {}).get(name, (0.0, 0))
        seen, final = steps.decisions, steps.terminals
        count = len(seen.agent_ids)
        if seen.agent_ids is not self._written_ids:
            self.ids[:count] = self._written_ids = seen.agent_ids
            self._version += 1
        _write(self.observations, seen.observations, count)
        present = self.columns.write(seen, count)
        final_count, final_present = _ABSENT, 0
        if final is not None:
            final_count = len(final.agent_ids)
            self.final_ids[:final_count] = final.agent_ids
            _write(self.final_observations, final.observations, final_count)
            final_present = self.final_columns.write(final, final_count)
            self.truncated[:final_count] = final.truncated
        self.counts[:5] = (count, self._version, present, final_count, final_present)

    def read_steps(self, scale: int, offset: int) -> Steps | None:
        """Pool: views of what the worker wrote, with agent ids as id * scale + offset."""
        count, version, present, final_count, final_present, _ = self.counts.tolist()
        if count == _ABSENT:
            return None
        if version != self._read_version:
            self._read_version, self._read_ids = version, self.ids[:count] * scale + offset
        values = self.columns.read(present, count, scale, offset)
        decisions = DecisionSteps(self._read_ids, _read(self.observations, count), **values)
        measured = self._read_measured() if self.metrics else None
        if final_count == _ABSENT:
            return Steps(decisions, measured=measured)
        final_ids = self.final_ids[:final_count] * scale + offset
        observations, truncated = _read(self.final_observations, final_count), self.truncated[:final_count]
        values = self.final_columns.read(final_present, final_count, scale, offset)
        terminals = TerminalSteps(final_ids, observations, truncated=truncated, **values)
        return Steps(decisions, terminals, measured)

    def _read_measured(self) -> Measured | None:
        numbers = zip(self.metrics, self.sums.tolist(), self.num_measured.tolist(), strict=True)
        return {name: (total, count) for name, total, count in numbers if count} or None

    def write_actions(self, actions: Actions | None) -> None:
        """Pool: write actions for the worker; None where no agent waits."""
        count = 0 if actions is None else len(actions.continuous)
        self.counts[5] = count
        if actions is None:
            return
        self.continuous[:count] = actions.continuous
        self.discrete[:count] = actions.discrete

    def read_actions(self) -> Actions:
        """Worker: views of what the pool wrote."""
        count = int(self.counts[5])
        return Actions(self.continuous[:count], self.discrete[:count])


class Block:
    """One instance's columns, mapped from a shared file. The two sides take turns, as the records between them say."""

    def __init__(
        self,
        file: int,
        offset: int,
        specs: Mapping[str, BehaviorSpec],
        capacities: Capacities,
        metrics: Sequence[str] = (),
    ) -> None:
        buffer = mmap.mmap(file, block_size(specs, capacities, metrics), offset=offset)
        self.capacities = dict(capacities)
        self.offset = offset
        self.behaviors = dict(_carve(specs, capacities, metrics, Carver(buffer)))

    def has_room(self, answer: Mapping[str, Steps]) -> bool:
        """Whether every behavior's steps fit."""
        return all(
            len(steps.decisions.agent_ids) <= self.capacities[name][0]
            and (steps.terminals is None or len(steps.terminals.agent_ids) <= self.capacities[name][1])
            for name, steps in answer.items()
        )

    def write_steps(self, answer: Mapping[str, Steps]) -> None:
        """Worker: put an answer where the pool reads it; it must fit."""
        for name, columns in self.behaviors.items():
            columns.write_steps(answer.get(name))

    def read_steps(self, scale: int, offset: int) -> dict[str, Steps]:
        """Pool: views of the last answer, with agent ids as id * scale + offset."""
        read = {name: columns.read_steps(scale, offset) for name, columns in self.behaviors.items()}
        return {name: steps for name, steps in read.items() if steps is not None}


class SharedFile:
    """The worker's side of its file, with one block after another. Old blocks stay where they are."""

    def __init__(self, file: int) -> None:
        self._file = file

    def new_block(
        self, specs: Mapping[str, BehaviorSpec], capacities: Capacities, metrics: Sequence[str] = ()
    ) -> Block:
        """A block after all others."""
        offset = os.fstat(self._file).st_size
        os.truncate(self._file, offset + whole_pages(block_size(specs, capacities, metrics)))
        return Block(self._file, offset, specs, capacities, metrics)


class Status:
    """The first page of a worker's file: the current call, so that the pool can report where it hung or died."""

    CALLS = ("start", "reset", "step", "close", "wait", "render", "set_parameters", "act")

    def __init__(self, file: int) -> None:
        if os.fstat(file).st_size == 0:
            os.truncate(file, mmap.ALLOCATIONGRANULARITY)
        self._words = np.ndarray((3,), np.int64, mmap.mmap(file, mmap.ALLOCATIONGRANULARITY))

    def write(self, call: str, instance: int, since_ns: int) -> None:
        """Worker: this call begins, for this instance of the worker's, at this monotonic time."""
        self._words[:] = (self.CALLS.index(call), instance, since_ns)

    def read(self) -> tuple[str, int, int]:
        """Pool: call, instance within the worker, monotonic nanoseconds."""
        call, instance, since_ns = self._words.tolist()
        return self.CALLS[call], instance, since_ns


def larger(capacities: Capacities, answer: Mapping[str, Steps]) -> Capacities:
    """Capacities with room for this answer, doubled where they grow."""
    needed = dict(capacities)
    for name, steps in answer.items():
        decisions, terminals = needed[name]
        num_terminals = 0 if steps.terminals is None else len(steps.terminals.agent_ids)
        needed[name] = _doubled(decisions, len(steps.decisions.agent_ids)), _doubled(terminals, num_terminals)
    return needed


def block_size(specs: Mapping[str, BehaviorSpec], capacities: Capacities, metrics: Sequence[str] = ()) -> int:
    """Bytes of a block; one where there is no behavior yet, since nothing cannot be mapped."""
    carver = Carver(None)
    for _ in _carve(specs, capacities, metrics, carver):
        continue
    return max(1, carver.size)


def _carve(
    specs: Mapping[str, BehaviorSpec], capacities: Capacities, metrics: Sequence[str], carver: Carver
) -> Iterator[tuple[str, BehaviorColumns]]:
    for name in sorted(specs):
        yield name, BehaviorColumns(specs[name], capacities[name], carver, metrics)


def _cut_observations(carver: Carver, spec: BehaviorSpec, rows: int) -> Observations:
    return tuple(carver.cut(np.dtype(o.dtype).type, rows, *o.shape) for o in spec.observations)


def _doubled(capacity: int, needed: int) -> int:
    return capacity if needed <= capacity else 2 * needed


def aligned(num_bytes: int) -> int:
    """So many bytes, or more, after which another array may begin."""
    return -(-num_bytes // _ALIGNMENT) * _ALIGNMENT


def whole_pages(size: int) -> int:
    """So many bytes, or more, after which another part of a file can be mapped."""
    return -(-size // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY


def _write(columns: Observations, values: Observations, count: int) -> None:
    for column, value in zip(columns, values, strict=True):
        column[:count] = value


def _read(columns: Observations, count: int) -> Observations:
    return tuple([column[:count] for column in columns])
