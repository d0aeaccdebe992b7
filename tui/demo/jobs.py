"""What takes a moment in the demo: saving, exporting, rolling back; one after the other, as a saver does it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

Outcome: TypeAlias = tuple[bool, str]  # whether what was asked is true now, and a message


@dataclass(slots=True)
class Job:
    """Done `seconds` after the job before it; `do` is then called and answers for the command `command`, if any."""

    seconds: float
    do: Callable[[], Outcome]
    command: str | None = None


@dataclass(slots=True)
class _Command:
    """How many of a command's jobs are pending, and the outcomes of the others."""

    num_open: int = 0
    is_ok: bool = True
    messages: list[str] = field(default_factory=list)


class Jobs:
    """Owns the jobs that are not done yet."""

    def __init__(self) -> None:
        self._waiting: deque[Job] = deque()
        self._commands: dict[str, _Command] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, job: Job) -> None:
        """To be done after all others."""
        self._waiting.append(job)
        if job.command is not None:
            self._commands.setdefault(job.command, _Command()).num_open += 1

    def advance(self, seconds: float) -> Iterator[tuple[str, Outcome]]:
        """Do what is due after so many seconds more; yields the outcome of each command whose last job that was."""
        while self._waiting:
            job = self._waiting[0]
            if job.seconds > seconds:
                job.seconds -= seconds
                return
            seconds -= job.seconds
            self._waiting.popleft()
            is_ok, message = job.do()
            if job.command is not None:
                yield from self._count(job.command, is_ok, message)

    def cancel_all(self) -> list[str]:
        """Forget every job; the commands that get no other outcome now."""
        commands = list(self._commands)
        self._waiting.clear()
        self._commands.clear()
        return commands

    def _count(self, command: str, is_ok: bool, message: str) -> Iterator[tuple[str, Outcome]]:
        state = self._commands[command]
        state.num_open -= 1
        state.is_ok &= is_ok
        state.messages.append(message)
        if state.num_open == 0:
            del self._commands[command]
            yield command, (state.is_ok, "; ".join(state.messages))
