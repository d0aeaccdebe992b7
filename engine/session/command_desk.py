"""Where a session takes commands: each is published as asked, and has exactly one outcome."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import Command, CommandAsked, CommandFinished, Hint, Stop
from rl_tui.engine.session.sentences import label_of

OVER = "the run is over"
Outcome: TypeAlias = tuple[bool, str]  # whether the request is fulfilled, and a message
Report: TypeAlias = Callable[[str, str, bool, str], None]  # command id, behavior, whether its part is done, a message


@dataclass(slots=True)
class _Parts:
    """What a pending command waits for, where behaviors carry it out, and what was reported."""

    waiting_for: set[str] = field(default_factory=set)
    messages: list[str] = field(default_factory=list)
    is_ok: bool = True


class CommandDesk:
    """The commands of a session, pending and finished. Any thread."""

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._lock = threading.Lock()
        self._pending: dict[str, _Parts] = {}  # by command id
        self._is_closed = False

    def open(self, command: Command) -> bool:
        """The command was sent; whether it is to be carried out."""
        behavior = None if isinstance(command, Stop) else command.behavior
        with self._lock:
            self._bus.publish(CommandAsked(command.id, type(command).__name__, behavior, label_of(command)))
            self._pending[command.id] = _Parts()
            if self._is_closed:
                self._finish(command.id, False, OVER)
            return not self._is_closed

    def answer(self, message: Command | Hint, carry_out: Callable[[Command], Outcome]) -> None:
        """What was sent is carried out by its sender's thread; a hint to a run is of no use where none trains."""
        if not isinstance(message, Hint) and self.open(message):
            self.finish(message.id, *carry_out(message))

    def expect(self, command_id: str, behaviors: Iterable[str]) -> None:
        """The command is finished once each of these has reported."""
        with self._lock:
            if command_id in self._pending:
                self._pending[command_id].waiting_for.update(behaviors)

    def report(self, command_id: str, behavior: str, is_ok: bool, message: str) -> None:
        """One behavior's part is done or has failed; what is not expected is ignored."""
        with self._lock:
            parts = self._pending.get(command_id)
            if parts is None or behavior not in parts.waiting_for:
                return
            parts.waiting_for.discard(behavior)
            parts.is_ok &= is_ok
            parts.messages.append(message)
            if not parts.waiting_for:
                self._finish(command_id, parts.is_ok, "; ".join(parts.messages))

    def finish(self, command_id: str, is_ok: bool, message: str) -> None:
        """Publish the outcome, unless there is one already."""
        with self._lock:
            if command_id in self._pending:
                self._finish(command_id, is_ok, message)

    def close(self) -> None:
        """The run is over: what is pending has failed, and so does what is sent from now on. Harmless when called
        twice."""
        with self._lock:
            self._is_closed = True
            for command_id in list(self._pending):
                self._finish(command_id, False, OVER)

    def _finish(self, command_id: str, is_ok: bool, message: str) -> None:
        del self._pending[command_id]
        self._bus.publish(CommandFinished(command_id, is_ok, message))
