"""How both ends of a connection introduce themselves: each sends one line first."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

from rl_tui.engine.errors import AttachError
from rl_tui.engine.process.vital_signs import process_id
from rl_tui.engine.session.codec import SCHEMA_VERSION, parse
from rl_tui.engine.session.plain import from_plain
from rl_tui.engine.version import VERSION

LONGEST_REFUSAL = 200  # characters

Wanted: TypeAlias = Literal["view", "outcomes"]  # the run's view and all events, or only the outcomes of commands


@dataclass(frozen=True, slots=True)
class RunGreeting:
    """Of the process that trains. version: of rl-tui."""

    version: str
    run_id: str
    path: str
    pid: int


@dataclass(frozen=True, slots=True)
class ClientGreeting:
    """Of a screen or a command. name: of the screen, "" for its process."""

    version: str
    wants: Wanted
    pid: int
    name: str = ""


def greeting_of_run(run_id: str, path: str) -> str:
    """The line of this process for the run that it trains."""
    return _line("run", RunGreeting(VERSION, run_id, path, process_id()))


def greeting_of_client(wants: Wanted, name: str = "") -> str:
    """The line of this process."""
    return _line("client", ClientGreeting(VERSION, wants, os.getpid(), name))


def refusal(why: str) -> str:
    """The line instead of a run's greeting, after which the connection ends."""
    return json.dumps({"v": SCHEMA_VERSION, "refused": why})


def read_run(line: str) -> RunGreeting:
    """Raises AttachError on what is none, or of another schema, and on a refusal."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        raise AttachError(str(parse(line, "a greeting")["refused"])[:LONGEST_REFUSAL])
    greeting: RunGreeting = _read(line, "run", RunGreeting)
    return greeting


def read_client(line: str) -> ClientGreeting:
    """The same of a client."""
    greeting: ClientGreeting = _read(line, "client", ClientGreeting)
    if greeting.wants not in get_args(Wanted):
        raise AttachError(f"wants: must be one of {', '.join(get_args(Wanted))}, got {greeting.wants!r}")
    return greeting


def _line(kind: str, greeting: RunGreeting | ClientGreeting) -> str:
    return json.dumps({"v": SCHEMA_VERSION, kind: asdict(greeting)})


def _read(line: str, key: str, kind: type) -> Any:
    try:
        return from_plain(parse(line, "a greeting")[key], kind)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise AttachError(f"not a greeting of a {key} of schema {SCHEMA_VERSION}: {line[:80]!r}") from error
