"""Records on the two pipes between a pool and one worker: 16 bytes each, some followed by a JSON payload."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from enum import Enum
from typing import Literal, TypeAlias, TypedDict

from rl_tui.engine.specs import (
    ActionSpec,
    Aggregation,
    BehaviorSpec,
    Json,
    ObservationSpec,
    Statistic,
    Steps,
    UnityPackage,
)

_RECORD = struct.Struct("<cxxxIq")  # kind, instance within the worker, value (length of the payload where there is one)
_CHUNK = 65536


class Kind(Enum):
    """What a record is about."""

    BEGIN = b"B"  # to the worker, with a payload: what to make
    NUMBER = b"N"  # to the worker: value is the pool's number of its first instance
    RESET = b"R"  # to the worker: value is the seed, or -1 for none
    STEP = b"S"  # to the worker: the actions are in shared memory
    PARAMETERS = b"V"  # to the worker, with a payload: environment parameters of an instance
    DRAW = b"D"  # to the worker: value is the largest width times 65536 and the largest height, in pixels
    READY = b"H"  # from the worker, with a payload: its instances
    GROWN = b"G"  # from the worker, with a payload: an instance's behaviors, and where its larger block is
    STATISTICS = b"T"  # from the worker, with a payload, before the answer that they belong to
    NOTE = b"L"  # from the worker, with a payload: level and text of a line for the user
    AWAITS = b"W"  # from the worker, with a payload: what the user has to do, or ""
    ANSWER = b"A"  # from the worker: the steps are in shared memory
    PICTURE = b"P"  # from the worker, with a payload: see pictures.py
    FAULT = b"F"  # from the worker, with a payload: what went wrong
    # Where the worker also acts, see sampling/collecting:
    COLLECT = b"C"  # to the worker, with a payload: act from now on, instead of waiting for actions
    POLICY = b"K"  # to the worker, with a payload: a behavior's policy
    OPPONENT = b"Y"  # to the worker, with a payload: by which policy a team of a behavior acts from now on
    GO = b"O"  # to the worker, with a payload: what to collect before it waits again
    ENOUGH = b"E"  # to the worker: wait again, with what is complete
    PAUSE = b"Z"  # to the worker: value is whether to wait before the next step
    ACTS = b"a"  # from the worker: its first actions have been carried out
    BLOCK = b"b"  # from the worker, with a payload: where a block of experience is in shared memory
    EPISODES = b"e"  # from the worker, with a payload: those of a behavior that ended
    MET = b"m"  # from the worker, with a payload: a behavior without a policy, for which it waits
    ROUND = b"r"  # from the worker, with a payload: it waits, having what it was to collect


_TO_WORKER = {Kind.BEGIN, Kind.PARAMETERS, Kind.COLLECT, Kind.POLICY, Kind.OPPONENT, Kind.GO}
_FROM_WORKER = {Kind.READY, Kind.GROWN, Kind.STATISTICS, Kind.NOTE, Kind.AWAITS, Kind.PICTURE, Kind.FAULT}
_OF_COLLECTING = {Kind.BLOCK, Kind.EPISODES, Kind.MET, Kind.ROUND}
_WITH_PAYLOAD = _TO_WORKER | _FROM_WORKER | _OF_COLLECTING


@dataclass(frozen=True, slots=True)
class Record:
    """One message; payload is None for kinds without one."""

    kind: Kind
    instance: int = 0
    value: int = 0
    payload: Json = None

    def encode(self) -> bytes:
        """The bytes that `RecordReader` reads."""
        if self.kind not in _WITH_PAYLOAD:
            return _RECORD.pack(self.kind.value, self.instance, self.value)
        text = json.dumps(self.payload).encode()
        return _RECORD.pack(self.kind.value, self.instance, len(text)) + text


def write(pipe: int, records: list[Record]) -> None:
    """Send records; blocks while the other side is behind. Raises BrokenPipeError when it is gone."""
    rest = memoryview(b"".join(record.encode() for record in records))
    while rest:
        rest = rest[os.write(pipe, rest) :]


class RecordReader:
    """Reads whole records from a pipe, however they arrive."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._bytes = b""

    def read(self) -> list[Record]:
        """At least one record, waiting for it. Raises EOFError when the other side is gone."""
        records: list[Record] = []
        while not records:
            chunk = os.read(self._pipe, _CHUNK)
            if not chunk:
                raise EOFError
            self._bytes += chunk
            while (record := self._next()) is not None:
                records.append(record)
        return records

    def _next(self) -> Record | None:
        if len(self._bytes) < _RECORD.size:
            return None
        letter, instance, value = _RECORD.unpack_from(self._bytes)
        kind = Kind(letter)
        end = _RECORD.size + (value if kind in _WITH_PAYLOAD else 0)
        if len(self._bytes) < end:
            return None
        text, self._bytes = self._bytes[_RECORD.size : end], self._bytes[end:]
        return Record(kind, instance, value, json.loads(text) if text else None)


class SpecJson(TypedDict):
    """The fields of a behavior's spec in JSON; observations are name, shape, dtype and whether it is a goal."""

    name: str
    observations: list[tuple[str, list[int], Literal["float32", "uint8"], bool]]
    continuous: int
    branches: list[int]
    spaces: Json
    unity_package: tuple[str, Literal["CHW", "HWC"]] | None
    reward_threshold: float | None
    choice_names: list[str]
    teams: list[int]


def spec_to_json(spec: BehaviorSpec) -> Json:
    """The spec as `spec_from_json` reads it."""
    return {
        "name": spec.name,
        "observations": [observation.to_json() for observation in spec.observations],
        "continuous": spec.actions.continuous,
        "branches": list(spec.actions.branches),
        "spaces": spec.spaces,
        "unity_package": None if spec.unity_package is None else list(astuple(spec.unity_package)),
        "reward_threshold": spec.reward_threshold,
        "choice_names": list(spec.choice_names),
        "teams": list(spec.teams),
    }


def spec_from_json(fields: SpecJson) -> BehaviorSpec:
    """The spec that was encoded."""
    observations = tuple(map(ObservationSpec.from_json, fields["observations"]))
    actions = ActionSpec(fields["continuous"], tuple(fields["branches"]))
    package = None if fields["unity_package"] is None else UnityPackage(*fields["unity_package"])
    return BehaviorSpec(
        fields["name"],
        observations,
        actions,
        fields["spaces"],
        package,
        fields["reward_threshold"],
        tuple(fields["choice_names"]),
        tuple(fields["teams"]),
    )


StatisticsJson: TypeAlias = dict[str, list[tuple[str, float, Aggregation]]]  # by behavior: name, value, method


def statistics_to_json(answer: Mapping[str, Steps]) -> Json:
    """What the behaviors report under names of their own, as `statistics_from_json` reads it; empty without any."""
    return {
        behavior: [[one.name, float(one.value), one.method] for one in steps.statistics]
        for behavior, steps in answer.items()
        if steps.statistics
    }


def statistics_from_json(reported: StatisticsJson) -> dict[str, tuple[Statistic, ...]]:
    """The statistics that were encoded, by behavior."""
    return {behavior: tuple(Statistic(*one) for one in entries) for behavior, entries in reported.items()}
