"""What the agents of one behavior observed, from the bytes of an AgentInfoListProto.

Protobuf makes objects of every number, which takes most of an exchange. Here it reads one AgentInfo of each layout,
checks it, and the others of that layout are read by numpy. What has no layout is read by protobuf.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from rl_tui.engine.sampling.environments.unity.unity_messages_pb2 import (
    NONE,
    AgentInfoListProto,
    AgentInfoProto,
    BrainParametersProto,
)
from rl_tui.engine.sampling.environments.unity.wire.columns import Columns
from rl_tui.engine.sampling.environments.unity.wire.entries import entries_of
from rl_tui.engine.sampling.environments.unity.wire.errors import WireError
from rl_tui.engine.sampling.environments.unity.wire.image_decoder import CompressedImage, ImageDecoder
from rl_tui.engine.sampling.environments.unity.wire.layouts import Bytes, Layout, floats_at, layout_of
from rl_tui.engine.sampling.environments.unity.wire.packages import package_of
from rl_tui.engine.sampling.environments.unity.wire.sensors import Rows, action_spec_of, sensors_of
from rl_tui.engine.specs import BehaviorSpec, Int64, Steps

M = TypeVar("M", AgentInfoListProto, AgentInfoProto)

_MOST_LAYOUTS = 256  # kept; a behavior has a few, unless its player sends garbage
_MOST_IN_ONE = 16  # layouts that are made for one message, before protobuf reads the rest


class BehaviorReader:
    """Reads the agents of one behavior. Owned by one thread.

    first: the AgentInfoListProto with its first agents, whose observations say what it observes; at least one.
    package_version: of com.unity.ml-agents. Raises WireError for what cannot be learned from.
    """

    def __init__(self, name: str, brain: BrainParametersProto, first: bytes, package_version: str) -> None:
        infos = _parse(AgentInfoListProto, first, name).value
        if not infos:
            raise WireError(f"{name}: the first message must have at least one agent, got none")
        self._name = name
        package = package_of(package_version)
        self._sensors = sensors_of(name, infos[0].observations, package)
        self._actions = action_spec_of(name, brain)
        self._require(infos[0])
        self._layouts: dict[int, list[Layout]] = defaultdict(list)  # by the length of an AgentInfo
        self._num_layouts = 0
        self._has_png = any(found.compression_type != NONE for found in infos[0].observations)
        self._ids: Int64 = np.empty(0, np.int64)  # the last that decided
        self._decoder = ImageDecoder()
        observations = tuple(sensor.spec for sensor in self._sensors)
        self.spec = BehaviorSpec(name, observations, self._actions, unity_package=package)

    def read(self, data: bytes) -> Steps:
        """The steps of an AgentInfoListProto, with agents in their order. Raises WireError, naming what is wrong."""
        entries = None if self._has_png else entries_of(data)
        if entries is None:
            infos = _parse(AgentInfoListProto, data, self._name).value
            columns = Columns(len(infos), self._sensors, self._actions)
            self._place_each(columns, list(enumerate(infos)))
        else:
            columns = Columns(sum(len(found.rows) for found in entries), self._sensors, self._actions)
            left = _MOST_IN_ONE
            for equally_long in entries:
                left = self._place_equally_long(columns, equally_long.contents, equally_long.rows, left)
        steps = columns.to_steps()
        if np.array_equal(steps.decisions.agent_ids, self._ids):
            steps.decisions.agent_ids = self._ids
        self._ids = steps.decisions.agent_ids
        return steps

    def _place_equally_long(self, columns: Columns, entries: Bytes, rows: NDArray[np.intp], left: int) -> int:
        """Fill these rows from AgentInfos of one length; returns how many more layouts this message may make."""
        for layout in self._layouts[entries.shape[1]]:
            entries, rows = self._place_fitting(columns, layout, entries, rows)
        others = []
        while len(rows):
            entry = entries[0].tobytes()
            info = _parse(AgentInfoProto, entry, self._name)
            found = layout_of(entry) if left > 0 and self._is_plain(info) else None
            if found is None:
                others.append((int(rows[0]), info))
                entries, rows = entries[1:], rows[1:]
                continue
            left -= 1
            self._keep(found, entries.shape[1])
            entries, rows = self._place_fitting(columns, found, entries, rows)
        self._place_each(columns, others)
        return left

    def _is_plain(self, info: AgentInfoProto) -> bool:
        """Whether it has the observations of this behavior, none of them compressed. Raises WireError for others."""
        self._require(info)
        return all(found.compression_type == NONE for found in info.observations)

    def _keep(self, layout: Layout, length: int) -> None:
        if self._num_layouts == _MOST_LAYOUTS:
            self._layouts.clear()
            self._num_layouts = 0
        self._layouts[length].append(layout)
        self._num_layouts += 1

    def _place_fitting(
        self, columns: Columns, layout: Layout, entries: Bytes, rows: NDArray[np.intp]
    ) -> tuple[Bytes, NDArray[np.intp]]:
        """Fill the rows of those that have the layout, and return the others."""
        is_fitting = layout.fits(entries)
        if is_fitting.all():
            self._place(columns, layout, entries, slice(None) if len(rows) == len(columns.ids) else rows)
            return entries[:0], rows[:0]
        if is_fitting.any():
            self._place(columns, layout, entries[is_fitting], rows[is_fitting])
        return entries[~is_fitting], rows[~is_fitting]

    def _place(self, columns: Columns, layout: Layout, entries: Bytes, rows: Rows) -> None:
        for column, values in (
            (columns.ids, layout.numbers(entries, "id")),
            (columns.rewards, layout.floats(entries, "reward")),
            (columns.group_ids, layout.numbers(entries, "group_id")),
            (columns.group_rewards, layout.floats(entries, "group_reward")),
            (columns.is_done, layout.numbers(entries, "done")),
            (columns.is_interrupted, layout.numbers(entries, "max_step_reached")),
        ):
            if values is not None:
                column[rows] = values
        if (mask := layout.mask(entries)) is not None:
            columns.forbid(rows, mask)
        for sensor, column, span in zip(self._sensors, columns.observations, layout.observations, strict=True):
            sensor.place(column, rows, floats_at(entries, span))

    def _place_each(self, columns: Columns, infos: Sequence[tuple[int, AgentInfoProto]]) -> None:
        images: list[CompressedImage] = []
        for row, info in infos:
            self._require(info)
            columns.ids[row], columns.rewards[row] = info.id, info.reward
            columns.group_ids[row], columns.group_rewards[row] = info.group_id, info.group_reward
            columns.is_done[row], columns.is_interrupted[row] = info.done, info.max_step_reached
            if info.action_mask:
                columns.forbid(row, np.array(info.action_mask, np.bool_))
            for sensor, column, found in zip(self._sensors, columns.observations, info.observations, strict=True):
                if found.compression_type == NONE:
                    sensor.place(column, row, np.array(found.float_data.data, np.float32))
                else:
                    images.append(CompressedImage(sensor, found, column[row]))
        self._decoder.decode(images)

    def _require(self, info: AgentInfoProto) -> None:
        """Return if it has the observations of this behavior; else WireError."""
        if len(info.observations) != len(self._sensors):
            found = len(info.observations)
            raise WireError(f"{self._name}: agent {info.id} must have {len(self._sensors)} observations, got {found}")
        for sensor, observation in zip(self._sensors, info.observations, strict=True):
            sensor.require(observation)


def _parse(kind: type[M], data: bytes, behavior: str) -> M:
    try:
        message: M = kind.FromString(data)
    except DecodeError as error:
        raise WireError(f"{behavior}: agents must be sent as {kind.__name__}, got {len(data)} other bytes") from error
    return message
