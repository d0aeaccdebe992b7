"""The steps of .demo files, as trainers see them.

Shapes: S steps, E episodes, B rows that are asked for, N records of all files, F files.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rl_tui.engine.demonstrations.damage import Damage, named_after
from rl_tui.engine.demonstrations.demonstration_file import DemonstrationFile
from rl_tui.engine.demonstrations.opened import OpenedDemonstrations, Origin
from rl_tui.engine.demonstrations.pairing import pair
from rl_tui.engine.demonstrations.record_columns import RecordColumns, join_columns
from rl_tui.engine.demonstrations.record_reader import Sensors
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.specs import BehaviorSpec, Bool, Int64, Observations

_CACHE_BYTES = 2**18


class RecordedDemonstrations(OpenedDemonstrations):
    """Used by one thread. Holds no open file.

    Observations are decoded when they are asked for. Those that were stay in memory if all of them together take at
    most keep_bytes, else they are decoded for each call.

    spec: what the agent observes and does. behavior: the same, with the dtypes that observations are to have. Raises
    DemonstrationError where there is no step, or one whose action is not the behavior's.
    """

    def __init__(self, files: Sequence[DemonstrationFile], behavior: BehaviorSpec, keep_bytes: int) -> None:
        self.files, self.spec = tuple(files), behavior
        counts = np.array([file.columns.num_records for file in files], np.int64)
        self._num_records = int(counts.sum())
        self._first_records: Int64 = np.cumsum(counts) - counts  # i64[F]
        columns = join_columns([file.columns for file in files])
        has_resets = np.repeat([file.head.has_resets_at_ends for file in files], counts)
        self._records, self.steps = pair(columns, self._first_records, has_resets)  # i64[S], the record of each step
        self._require_actions(columns)
        self._sensors = [_observing(file.reader.sensors, behavior) for file in files]
        self._kept: Observations | None = None
        if self._bytes_of(self._num_records) <= keep_bytes:
            self._kept = self._make_columns(self._num_records)
        self._is_kept: Bool = np.zeros(self._num_records, np.bool_)

    @property
    def origin(self) -> Origin:
        """What the files say of themselves."""
        names = dict.fromkeys(file.head.metadata.name for file in self.files)
        return Origin(tuple(names), tuple(file.path for file in self.files), self._num_records)

    def transitions(self, rows: Int64, *, with_next: bool = True) -> Transitions:
        """See Demonstrations. A choice that was taken is never masked."""
        records = self._records[rows]
        wanted = np.concatenate([records, records + 1]) if with_next else records
        columns, count = self._observations(wanted), len(rows)
        before, after = (tuple(column[part] for column in columns) for part in (slice(count), slice(count, None)))
        return self.steps.transitions(rows, before, after if with_next else (), self.spec.actions)

    def _observations(self, records: Int64) -> Observations:
        """Those of these records, i64[R], each [R, ...]."""
        if self._kept is not None:
            missing = np.unique(records[~self._is_kept[records]])
            self._decode(missing, self._kept, missing)
            self._is_kept[missing] = True
            return tuple(column.take(records, 0) for column in self._kept)
        needed, first, which = np.unique(records, return_index=True, return_inverse=True)
        columns = self._make_columns(len(records))
        self._decode(needed, columns, first)
        sources = first[which]  # a record that is needed twice is decoded once
        for rows in self._parts(np.flatnonzero(sources != np.arange(len(records)))):
            for column in columns:
                column[rows] = column[sources[rows]]
        return columns

    def _decode(self, records: Int64, columns: Observations, rows: Int64) -> None:
        """Write the observations of these records, in ascending order, into these rows of `columns`."""
        if not len(records):
            return
        numbers = self._first_records.searchsorted(records, side="right") - 1
        for number in np.unique(numbers).tolist():
            of_file = slice(*numbers.searchsorted([number, number + 1]))
            local = records[of_file] - self._first_records[number]
            self.files[number].place(local, self._sensors[number], columns, rows[of_file])

    def _make_columns(self, count: int) -> Observations:
        return tuple(np.empty((count, *one.shape), one.dtype) for one in self.spec.observations)

    def _parts(self, rows: Int64) -> list[Int64]:
        """So few rows each that what is copied of them stays in the processor's cache."""
        few = max(1, _CACHE_BYTES // self._bytes_of(1))
        return [rows[begin : begin + few] for begin in range(0, len(rows), few)]

    def _bytes_of(self, count: int) -> int:
        return count * sum(math.prod(one.shape) * np.dtype(one.dtype).itemsize for one in self.spec.observations)

    def _require_actions(self, columns: RecordColumns) -> None:
        """Return if there is a step, and every step has an action of the behavior; else DemonstrationError."""
        records, actions, steps = self._records, self.spec.actions, self.steps
        if not len(records):
            with named_after(self.files[0].path):
                raise Damage(self.files[0].head.end, "there must be a step, a record with one after it, got none")
        is_wrong = ~columns.has_action[records]
        is_wrong |= ~np.isfinite(steps.continuous).all(axis=1)
        is_wrong |= ((steps.discrete < 0) | (steps.discrete >= np.array(actions.branches, np.int64))).any(axis=1)
        if is_wrong.any():
            self._refuse_action(columns, int(records[is_wrong][0]))

    def _refuse_action(self, columns: RecordColumns, record: int) -> None:
        actions = self.spec.actions
        number = int(self._first_records.searchsorted(record, side="right")) - 1
        wanted = []
        if actions.continuous:
            wanted.append(f"{actions.continuous} finite numbers")
        if actions.branches:
            wanted.append(f"a choice below each of {list(actions.branches)}")
        found = "no such action"
        if columns.has_action[record]:
            found = str([*columns.continuous[record].tolist(), *columns.discrete[record].tolist()])
        with named_after(self.files[number].path):
            raise Damage(int(columns.begins[record]), f"the action must be {' and '.join(wanted)}, got {found}")


def _observing(sensors: Sensors, behavior: BehaviorSpec) -> Sensors:
    """The sensors of a file, with the dtypes of the behavior's observations."""
    dtypes = iter([one.dtype for one in behavior.observations])
    return [
        None if sensor is None else replace(sensor, spec=replace(sensor.spec, dtype=next(dtypes))) for sensor in sensors
    ]
