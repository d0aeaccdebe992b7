"""Where a session takes commands: each is published as asked, and has exactly one outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import Command, CommandAsked, CommandFinished, Stop

Outcome: TypeAlias = tuple[bool, str]  # whether the request is fulfilled, and a message


def asked(command: Command) -> CommandAsked:
    """The event that says that the command was sent."""
    behavior = None if isinstance(command, Stop) else command.behavior
    return CommandAsked(command.id, type(command).__name__, behavior)


class CommandDesk:
    """Answers every command at once. answer: carries it out, where that is possible; called by the sender's thread."""

    def __init__(self, bus: EventBus, answer: Callable[[Command], Outcome]) -> None:
        self._bus, self._answer = bus, answer

    def send(self, command: Command) -> None:
        """The command was asked, and is finished."""
        self._bus.publish(asked(command))
        self._bus.publish(CommandFinished(command.id, *self._answer(command)))
