"""Where a session takes commands: each is asked, and answered once."""

from __future__ import annotations

import threading

import pytest

from rl_tui.engine.session.bus import EventBus, Subscription
from rl_tui.engine.session.command_desk import OVER, CommandDesk
from rl_tui.engine.session.messages import (
    AddNote,
    Command,
    CommandAsked,
    CommandFinished,
    NoteAdded,
    Pause,
    SaveCheckpoint,
    SetHyperparameter,
    SetLesson,
    Stop,
)


@pytest.mark.parametrize(
    ("command", "label"),
    [
        (Pause("Walker"), "pause Walker"),
        (Pause(), "pause all"),
        (SetHyperparameter("Walker", "beta", 0.1), "change beta of Walker"),
        (SetLesson("terrain", 2), "lesson 2 of terrain"),
        (AddNote("it limps", "Walker"), "note"),
        (Stop(), "stop"),
    ],
)
def test_command_is_asked_then_what_it_does_is_published_and_its_outcome_is_last(command: Command, label: str) -> None:
    bus = EventBus()
    mail = bus.subscribe()

    def answer(asked: Command) -> tuple[bool, str]:
        bus.publish(NoteAdded(type(asked).__name__))
        return False, "a replay: nothing to control"

    CommandDesk(bus).answer(command, answer)
    name = type(command).__name__
    behavior = None if isinstance(command, Stop) else command.behavior
    assert [envelope.event for envelope in mail.drain()] == [
        CommandAsked(command.id, name, behavior, label),
        NoteAdded(name),
        CommandFinished(command.id, False, "a replay: nothing to control"),
    ]


def opened(*commands: Command) -> tuple[CommandDesk, Subscription]:
    """A desk where these were asked, and what it publishes from then on."""
    bus = EventBus()
    desk = CommandDesk(bus)
    for command in commands:
        assert desk.open(command)
    return desk, bus.subscribe()


def test_command_for_several_is_finished_by_the_last_report() -> None:
    desk, mail = opened(save := SaveCheckpoint())
    desk.expect(save.id, ["Left", "Right"])
    desk.report(save.id, "Left", True, "left.onnx")
    desk.report(save.id, "Left", False, "said twice")
    assert mail.drain() == []
    desk.report(save.id, "Right", False, "disk full")
    desk.finish(save.id, True, "too late")
    desk.close()
    assert [envelope.event for envelope in mail.drain()] == [CommandFinished(save.id, False, "left.onnx; disk full")]


def test_what_is_pending_at_the_end_has_failed_and_what_is_sent_later_is_refused() -> None:
    desk, mail = opened(pause := Pause(), save := SaveCheckpoint(), stop := Stop())
    desk.expect(save.id, ["Left"])
    desk.finish(stop.id, True, "stopped")
    desk.report("x", "Left", True, "unexpected")
    desk.close()
    desk.close()
    late = Pause()
    assert not desk.open(late)
    desk.answer(late, lambda _: (True, "never called"))
    finished = [envelope.event for envelope in mail.drain() if isinstance(envelope.event, CommandFinished)]
    assert finished == [
        CommandFinished(stop.id, True, "stopped"),
        *(CommandFinished(command.id, False, OVER) for command in (pause, save, late, late)),
    ]


def test_reports_of_many_threads_finish_a_command_once() -> None:
    desk, mail = opened(save := SaveCheckpoint())
    names = [f"B{number}" for number in range(16)]
    desk.expect(save.id, names)
    threads = [threading.Thread(target=desk.report, args=(save.id, name, True, name)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (envelope,) = mail.drain()
    assert isinstance(envelope.event, CommandFinished)
    assert sorted(envelope.event.message.split("; ")) == sorted(names)
