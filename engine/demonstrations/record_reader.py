"""Reads the records of one .demo file.

Shapes: N records, A continuous dimensions, K branches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from google.protobuf.message import DecodeError
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from rl_tui.engine.demonstrations.damage import Damage
from rl_tui.engine.demonstrations.message_fields import LENGTH, fields_of
from rl_tui.engine.demonstrations.record_blocks import RecordBlock
from rl_tui.engine.demonstrations.record_columns import NO_LAYOUT, RecordColumns
from rl_tui.engine.demonstrations.record_layout import (
    ACTION_FIELD,
    INFO_FIELD,
    RecordLayout,
    record_layout_of,
)
from rl_tui.engine.sampling.environments.unity.unity_messages_pb2 import NONE, AgentActionProto, AgentInfoProto
from rl_tui.engine.sampling.environments.unity.wire.errors import WireError
from rl_tui.engine.sampling.environments.unity.wire.image_decoder import CompressedImage, ImageDecoder
from rl_tui.engine.sampling.environments.unity.wire.layouts import Bytes
from rl_tui.engine.sampling.environments.unity.wire.sensors import Sensor
from rl_tui.engine.specs import ActionSpec, Float32, Int64, Observation, Observations

Sensors = Sequence[Sensor | None]

_MOST_LAYOUTS = 256  # a file has a few, unless it is garbage
_MOST_IN_ONE = 16  # layouts that are made for one block, before protobuf reads the rest


@dataclass(slots=True)
class RecordReader:
    """Knows the layouts that it has met. Owned by one thread. sensors: of all observations, None for those without
    values. decoder: may be shared with other files, as it has threads."""

    sensors: Sensors
    actions: ActionSpec
    decoder: ImageDecoder
    _layouts: list[RecordLayout] = field(default_factory=list)
    _numbers: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))  # by the length of a record

    def read(self, block: RecordBlock) -> RecordColumns:
        """What the records say, but for observations. Raises Damage."""
        columns = RecordColumns.zeros(block.places, block.lengths, self.actions)
        content = np.frombuffer(block.content, np.uint8)
        left = _MOST_IN_ONE
        others = [np.arange(len(block.begins) if self._has_png else 0)]
        for length in [] if self._has_png else np.unique(block.lengths).tolist():
            rows = np.flatnonzero(block.lengths == length)
            records = sliding_window_view(content, length)[block.begins[rows]]
            rest, left = self._read_equally_long(columns, block, records, rows, left)
            others.append(rest)
        for row in np.concatenate(others).tolist():
            self._read_one(columns, block, row)
        return columns

    def place(
        self, block: RecordBlock, layouts: NDArray[np.int16], sensors: Sensors, columns: Observations, rows: Int64
    ) -> None:
        """Write the observations of records that were read before into these rows of `columns`. Raises Damage.

        sensors: as those of the file; their specs say what the columns hold.
        """
        content = np.frombuffer(block.content, np.uint8)
        for number in np.unique(layouts).tolist():
            which = np.flatnonzero(layouts == number)
            if number == NO_LAYOUT:
                self._place_each(block, which, sensors, columns, rows)
                continue
            spans = self._layouts[number].observation_spans()
            used = [(sensor, span) for sensor, span in zip(sensors, spans, strict=True) if sensor is not None]
            for (sensor, (first, last)), column in zip(used, columns, strict=True):
                floats = sliding_window_view(content, last - first)[block.begins[which] + first].view("<f4")
                _place_floats(sensor, column, rows[which], floats, block.places[which])

    @property
    def _has_png(self) -> bool:
        """Whether the length of a record says nothing, as each image has its own."""
        return any(sensor is not None and sensor.spec.dtype == "uint8" for sensor in self.sensors)

    def _read_equally_long(
        self, columns: RecordColumns, block: RecordBlock, records: Bytes, rows: NDArray[np.intp], left: int
    ) -> tuple[NDArray[np.intp], int]:
        """Fill the rows of records that have a layout; returns the others, and how many more layouts may be made."""
        length = records.shape[1]
        for number in self._numbers.get(length, ()):
            records, rows = self._read_fitting(columns, number, records, rows)
        while len(rows) and left > 0 and len(self._layouts) < _MOST_LAYOUTS:
            self._read_one(columns, block, int(rows[0]))  # so that protobuf has read and checked what has the layout
            left -= 1
            found = record_layout_of(records[0].tobytes())
            if found is None:
                records, rows = records[1:], rows[1:]
                continue
            self._numbers[length].append(len(self._layouts))
            self._layouts.append(found)
            records, rows = self._read_fitting(columns, len(self._layouts) - 1, records, rows)
        return rows, left

    def _read_fitting(
        self, columns: RecordColumns, number: int, records: Bytes, rows: NDArray[np.intp]
    ) -> tuple[Bytes, NDArray[np.intp]]:
        """Fill the rows of records that have this layout, and return the others."""
        layout = self._layouts[number]
        is_fitting = layout.fits(records)
        if is_fitting.any():
            fitting = records if is_fitting.all() else records[is_fitting]
            self._read_alike(columns, layout, fitting, rows[is_fitting])
            columns.layouts[rows[is_fitting]] = number
        return records[~is_fitting], rows[~is_fitting]

    def _read_alike(self, columns: RecordColumns, layout: RecordLayout, records: Bytes, rows: NDArray[np.intp]) -> None:
        info, infos = layout.info, layout.infos(records)
        for column, values in (
            (columns.rewards, info.floats(infos, "reward")),
            (columns.is_done, info.numbers(infos, "done")),
            (columns.is_interrupted, info.numbers(infos, "max_step_reached")),
            (columns.ids, info.numbers(infos, "id")),
        ):
            if values is not None:
                column[rows] = values
        if (mask := info.mask(infos)) is not None:
            columns.forbid(rows, mask, self.actions.mask_size)
        self._place_actions(
            columns,
            rows,
            layout.floats(records, layout.deprecated),
            layout.floats(records, layout.continuous),
            layout.choices(records, layout.discrete),
        )

    def _place_actions(
        self,
        columns: RecordColumns,
        rows: NDArray[np.intp] | int,
        deprecated: Float32 | None,
        continuous: Float32 | None,
        discrete: Int64 | None,
    ) -> None:
        """Write actions [n, ...] of one form into these rows; None for lists that are empty.

        Old packages write the deprecated list alone, in which the choices of branches are floats; -1 is no choice. An
        action of another size than the behavior's counts as none.
        """
        num_continuous, num_branches = self.actions.continuous, len(self.actions.branches)
        if continuous is None and discrete is None and deprecated is not None:
            if num_continuous:
                continuous = deprecated
            else:
                is_whole = deprecated == np.rint(deprecated)  # False of a NaN
                discrete = np.where(is_whole, deprecated, -1).clip(-1, 2**30).astype(np.int64)
        has_continuous = not num_continuous or (continuous is not None and continuous.shape[-1] == num_continuous)
        has_discrete = not num_branches or (discrete is not None and discrete.shape[-1] == num_branches)
        if has_continuous and has_discrete:
            columns.has_action[rows] = True
            if continuous is not None and num_continuous:
                columns.continuous[rows] = continuous
            if discrete is not None and num_branches:
                columns.discrete[rows] = discrete

    def _read_one(self, columns: RecordColumns, block: RecordBlock, row: int) -> None:
        info, parsed = self._parse(block, row)
        columns.rewards[row], columns.ids[row] = info.reward, info.id
        columns.is_done[row], columns.is_interrupted[row] = info.done, info.max_step_reached
        if info.action_mask:
            columns.forbid(row, np.array(info.action_mask, np.bool_), self.actions.mask_size)
        self._place_actions(
            columns,
            row,
            np.array(parsed.vector_actions_deprecated, np.float32) if parsed.vector_actions_deprecated else None,
            np.array(parsed.continuous_actions, np.float32) if parsed.continuous_actions else None,
            np.array(parsed.discrete_actions, np.int64) if parsed.discrete_actions else None,
        )

    def _place_each(
        self, block: RecordBlock, which: NDArray[np.intp], sensors: Sensors, columns: Observations, rows: Int64
    ) -> None:
        images: list[tuple[int, CompressedImage]] = []
        for number in which.tolist():
            info, _ = self._parse(block, number)
            row = int(rows[number])
            pairs = zip(sensors, info.observations, strict=True)
            used = [(sensor, found) for sensor, found in pairs if sensor is not None]
            for (sensor, found), column in zip(used, columns, strict=True):
                at = int(block.places[number])
                if found.compression_type == NONE:
                    floats = np.array([found.float_data.data], np.float32)
                    _place_floats(sensor, column, rows[[number]], floats, np.array([at]))
                else:
                    images.append((at, CompressedImage(sensor, found, column[row])))
        try:
            self.decoder.decode([image for _, image in images])
        except WireError:
            for at, image in images:  # one after another, to find the one that is damaged
                try:
                    self.decoder.decode([image])
                except WireError as error:
                    raise Damage(at, str(error)) from error
            raise

    def _parse(self, block: RecordBlock, row: int) -> tuple[AgentInfoProto, AgentActionProto]:
        """What the agent observed, with the observations of this file, and what it did. Raises Damage."""
        begin, length, place = int(block.begins[row]), int(block.lengths[row]), int(block.places[row])
        info, action = b"", b""
        for part in fields_of(block.content, begin, begin + length, place - begin):
            if part.kind == LENGTH and part.number == INFO_FIELD:
                info += block.content[part.begin : part.end]  # protobuf merges a field that comes twice
            elif part.kind == LENGTH and part.number == ACTION_FIELD:
                action += block.content[part.begin : part.end]
        try:
            parsed = AgentInfoProto.FromString(info), AgentActionProto.FromString(action)
            self._require(parsed[0])
        except DecodeError as error:
            text = "a record must hold what an agent observed and did, got other bytes"
            raise Damage(place, text) from error
        except WireError as error:
            raise Damage(place, str(error)) from error
        return parsed

    def _require(self, info: AgentInfoProto) -> None:
        """Return if it has the observations of this file; else WireError."""
        if len(info.observations) != len(self.sensors):
            raise WireError(f"a record must have {len(self.sensors)} observations, got {len(info.observations)}")
        for sensor, observation in zip(self.sensors, info.observations, strict=True):
            if sensor is not None:
                sensor.require(observation)


def _place_floats(sensor: Sensor, column: Observation, rows: Int64, floats: Float32, places: Int64) -> None:
    """Write floats [n, D] into these rows. places: i64[n], of their records. Raises Damage for what is not finite."""
    if not np.isfinite(floats).all() and sensor.spec.kind != "image":  # as ML-Agents, which takes images as they are
        at = int(places[~np.isfinite(floats).all(axis=1)][0])
        raise Damage(at, f"{sensor.where} must be finite")
    try:
        sensor.place(column, rows, floats)
    except WireError as error:
        raise Damage(int(places[0]), str(error)) from error
