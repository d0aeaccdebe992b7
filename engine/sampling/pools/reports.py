"""What a pool reports of its workers besides steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from rl_tui.engine.sampling.environments.base import NoteLevel


@dataclass(frozen=True, slots=True)
class Restarting:
    """A worker failed and is started again. instances: the pool's numbers of its environments; count: its restarts so
    far, this one included. reason is one line; detail may hold a traceback."""

    worker: int
    instances: tuple[int, ...]
    reason: str
    detail: str
    count: int


@dataclass(frozen=True, slots=True)
class Restarted:
    """The environments of that worker act again, so many seconds after it failed."""

    worker: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Note:
    """A line for the user from an environment."""

    level: NoteLevel
    text: str


@dataclass(frozen=True, slots=True)
class Awaiting:
    """What the user has to do before an environment continues; "" once nothing is."""

    text: str


Report: TypeAlias = Restarting | Restarted | Note | Awaiting
