"""Where a session takes commands: each is asked, and answered once."""

from __future__ import annotations

import pytest

from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.command_desk import CommandDesk
from rl_tui.engine.session.messages import Command, CommandAsked, CommandFinished, NoteAdded, Pause, SetLesson, Stop


@pytest.mark.parametrize("command", [Pause("Walker"), Pause(), SetLesson("terrain", 2), Stop()])
def test_command_is_asked_then_what_it_does_is_published_and_its_outcome_is_last(command: Command) -> None:
    bus = EventBus()
    mail = bus.subscribe()

    def answer(asked: Command) -> tuple[bool, str]:
        bus.publish(NoteAdded(type(asked).__name__))
        return False, "a replay: nothing to control"

    CommandDesk(bus, answer).send(command)
    name = type(command).__name__
    behavior = "Walker" if command == Pause("Walker", id=command.id) else None
    assert [envelope.event for envelope in mail.drain()] == [
        CommandAsked(command.id, name, behavior),
        NoteAdded(name),
        CommandFinished(command.id, False, "a replay: nothing to control"),
    ]
