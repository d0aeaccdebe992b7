"""Commands in progress: each one ends in exactly one CommandFinished."""

from __future__ import annotations

import queue
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.command_desk import Outcome
from rl_tui.engine.session.messages import Command, CommandFinished

OVER = "the run is over"
Report: TypeAlias = Callable[[str, str, bool, str], None]  # command id, behavior, whether its part is done, a message


@dataclass(slots=True)
class _Parts:
    """A command of which each of several behaviors must do its part."""

    waiting_for: set[str]  # behaviors
    messages: list[str] = field(default_factory=list)
    is_ok: bool = True

    def outcome(self) -> Outcome | None:
        """None before all parts are done."""
        return None if self.waiting_for else (self.is_ok, "; ".join(self.messages))


class CommandLedger:
    """Owned by the coordinator. Other threads call `report`, which only queues the outcome."""

    def __init__(self, bus: EventBus):
        self._bus = bus
        self._pending: dict[str, Callable[[], Outcome | None]] = {}  # by command
        self._parts: dict[str, _Parts] = {}  # of the pending commands that behaviors report on
        self._outcomes: queue.SimpleQueue[tuple[str, str, bool, str]] = queue.SimpleQueue()

    @property
    def is_waiting(self) -> bool:
        """Whether a command is not finished."""
        return bool(self._pending)

    def open(self, command: str) -> None:
        """The command has arrived; `close` finishes it if nothing else does."""
        self._pending[command] = lambda: None

    def expect(self, command: str, behaviors: list[str]) -> None:
        """The command is finished once `report` was called for each of these."""
        parts = self._parts[command] = _Parts(set(behaviors))
        self._pending[command] = parts.outcome

    def expect_when(self, command: str, outcome: Callable[[], Outcome | None]) -> None:
        """The command is finished once `outcome` returns one at a `settle`."""
        self._pending[command] = outcome

    def report(self, command: str, behavior: str, is_ok: bool, message: str) -> None:
        """One behavior's part is done or has failed. Any thread."""
        self._outcomes.put((command, behavior, is_ok, message))

    def finish(self, command: str, is_ok: bool, message: str) -> None:
        """Publish the outcome now."""
        self._pending.pop(command, None)
        self._parts.pop(command, None)
        self._bus.publish(CommandFinished(command, is_ok, message))

    def settle(self) -> None:
        """Finish every command whose last part is done."""
        while not self._outcomes.empty():
            command, behavior, is_ok, message = self._outcomes.get()
            if command in self._parts:
                parts = self._parts[command]
                parts.waiting_for.discard(behavior)
                parts.is_ok &= is_ok
                parts.messages.append(message)
        for command, pending in list(self._pending.items()):
            outcome = pending()
            if outcome is not None:
                self.finish(command, *outcome)

    def close(self, reason: str) -> None:
        """Finish every command: what could not be done has failed."""
        self.settle()
        for command in list(self._pending):
            self.finish(command, False, reason)


def refuse_waiting(commands: queue.Queue[Command | None], bus: EventBus) -> None:
    """Finish every queued command as failed, since the run is over."""
    with suppress(queue.Empty):
        while True:
            command = commands.get_nowait()
            if command is not None:
                bus.publish(CommandFinished(command.id, False, OVER))
