"""Events as JSON lines: one object each, {"v": 1, "n": number, "t": time, "event": class name, ...fields}."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import types
import typing
from collections.abc import Mapping
from typing import Literal

from rl_tui.engine.session.messages import Envelope, Event

SCHEMA_VERSION = 1
_END_OF_TIME = 253_402_300_800  # the year 10000, in Unix seconds: Python's calendar ends there


def encode(envelope: Envelope) -> str:
    """One line of JSON without the newline. Non-finite floats are written as the strings "nan", "inf" and "-inf"."""
    event = envelope.event
    body = {"v": SCHEMA_VERSION, "n": envelope.number, "t": envelope.time, "event": type(event).__name__}
    return json.dumps(body | {f.name: _plain(getattr(event, f.name)) for f in dataclasses.fields(event)})


def decode(line: str) -> Envelope:
    """The envelope that `encode` wrote. Raises ValueError on anything else, also on another schema version."""
    try:
        body = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not an event: {line[:80]!r}") from error
    if not isinstance(body, dict) or body.get("v") != SCHEMA_VERSION:
        raise ValueError(f"not an event of schema version {SCHEMA_VERSION}: {line[:80]!r}")
    try:
        kind = _EVENTS[body["event"]]
        event = kind(**_fields(kind, body))
        return Envelope(_integer(body["n"]), _time(body["t"]), event)
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"not a complete event: {line[:80]!r} ({error})") from error


def _plain(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def _typed(value: object, hint: object) -> object:
    """`value` as the type of its field: JSON has no tuples, classes or NaN. TypeError if it does not fit."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _typed(value, next(a for a in arguments if a is not type(None)))
    if isinstance(hint, type) and dataclasses.is_dataclass(hint) and isinstance(value, dict):
        return hint(**_fields(hint, value))
    if origin is tuple and isinstance(value, list):
        return tuple(_typed(item, arguments[0]) for item in value)
    if origin is Mapping and isinstance(value, dict):
        return {key: _typed(item, arguments[1]) for key, item in value.items()}
    return _single(value, hint)


def _fields(kind: type, body: Mapping[str, object]) -> dict[str, object]:
    """The fields of `kind` in `body`; those with a default are newer than the schema, and may be missing."""
    return {
        name: _typed(body[name], hint)
        for name, hint in _hints(kind).items()
        if name in body or name not in _optional(kind)
    }


def _single(value: object, hint: object) -> object:
    if hint is float:
        return _float(value)
    if hint is int:
        return _integer(value)
    if type(value) is hint or (typing.get_origin(hint) is Literal and value in typing.get_args(hint)):
        return value
    raise TypeError(f"{value!r} is no {hint}")


def _float(value: object) -> float:
    if value in ("nan", "inf", "-inf") or (isinstance(value, int | float) and not isinstance(value, bool)):
        return float(typing.cast(float, value))
    raise TypeError(f"{value!r} is no number")


def _time(value: object) -> float:
    """Unix seconds within the years of a calendar."""
    seconds = _float(value)
    if not 0 <= seconds < _END_OF_TIME:
        raise TypeError(f"{value!r} is no time")
    return seconds


def _integer(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TypeError(f"{value!r} is no whole number")


_EVENTS: dict[str, type] = {kind.__name__: kind for kind in typing.get_args(Event)}


@functools.cache
def _hints(kind: type) -> dict[str, object]:
    """The types of its fields. Looked up when a line is read, since starting the program needs none."""
    return typing.get_type_hints(kind)


@functools.cache
def _optional(kind: type) -> frozenset[str]:
    """Its fields with a default."""
    missing = dataclasses.MISSING
    fields = dataclasses.fields(kind)
    return frozenset(f.name for f in fields if f.default is not missing or f.default_factory is not missing)
