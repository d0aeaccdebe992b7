"""Events and commands as JSON lines, one object each.

An event: {"v": 1, "e": epoch, "n": number, "t": time, "event": class name, ...fields}; a command, or a hint, which has
no id: {"v": 1, "command": class name, ...fields}.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Mapping
from typing import Any

from rl_tui.engine.session.messages import Command, Envelope, Event, Hint
from rl_tui.engine.session.plain import from_plain, to_plain

SCHEMA_VERSION = 1
_END_OF_TIME = 253_402_300_800  # the year 10000, in Unix seconds: Python's calendar ends there


def encode(envelope: Envelope) -> str:
    """One line of JSON without the newline."""
    event = envelope.event
    place = {"e": envelope.epoch} if envelope.epoch else {}
    body = {"v": SCHEMA_VERSION, **place, "n": envelope.number, "t": envelope.time, "event": type(event).__name__}
    return json.dumps(body | to_plain(event))


def decode(line: str) -> Envelope:
    """The envelope that `encode` wrote. Raises ValueError on anything else, also on another schema version."""
    body = parse(line, "an event")
    try:
        event = from_plain(body, _EVENTS[body["event"]])
        return Envelope(from_plain(body["n"], int), _time(body["t"]), event, from_plain(body.get("e", 0), int))
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"not a complete event: {line[:80]!r} ({error})") from error


def encode_command(command: Command | Hint) -> str:
    """One line of JSON without the newline."""
    return json.dumps({"v": SCHEMA_VERSION, "command": type(command).__name__} | to_plain(command))


def decode_command(line: str) -> Command | Hint:
    """The command that `encode_command` wrote. Raises ValueError on anything else."""
    body = parse(line, "a command")
    try:
        kind = _COMMANDS[body["command"]]
        if kind not in _HINTS and not isinstance(body["id"], str):  # it has a default, which is another one each time
            raise TypeError("it has no id")
        command: Command | Hint = from_plain(body, kind)
        return command
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"not a complete command: {line[:80]!r} ({error})") from error


def parse(line: str, what: str) -> dict[str, Any]:
    """The object in a line of this schema. what: for the error, "an event". Raises ValueError."""
    try:
        body = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not {what}: {line[:80]!r}") from error
    if not isinstance(body, dict) or body.get("v") != SCHEMA_VERSION:
        raise ValueError(f"not {what} of schema version {SCHEMA_VERSION}: {line[:80]!r}")
    return body


def _time(value: object) -> float:
    """Unix seconds within the years of a calendar."""
    seconds: float = from_plain(value, float)
    if not 0 <= seconds < _END_OF_TIME:
        raise TypeError(f"{value!r} is no time")
    return seconds


_EVENTS: Mapping[str, type] = {kind.__name__: kind for kind in typing.get_args(Event)}
_HINTS: tuple[type, ...] = typing.get_args(Hint)
_COMMANDS: Mapping[str, type] = {kind.__name__: kind for kind in (*typing.get_args(Command), *_HINTS)}
