"""A view that travels as lines is the same at the other end."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable
from typing import get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_tui.engine.session.codec import decode, decode_command, encode, encode_command
from rl_tui.engine.session.messages import (
    Command,
    Envelope,
    Hint,
    MetricsReported,
    SetLesson,
    Stop,
    YieldToScreen,
)
from rl_tui.engine.session.snapshot import Snapshot, SnapshotReader
from rl_tui.engine.session.view import RunView
from tests.session.test_messages import EVENT_CLASSES, events, strategy_of
from tests.tui import scenes
from tests.tui.connections import sent

ANY = st.one_of(*map(events, EVENT_CLASSES))
EVENTS = st.lists(st.builds(Envelope, st.integers(1, 10**6), st.floats(0, 2e9), ANY), max_size=20)
COMMANDS = st.one_of(*(
    st.builds(kind, **{field.name: strategy_of(get_type_hints(kind)[field.name]) for field in dataclasses.fields(kind)})
    for kind in get_args(Command | Hint)
))  # fmt: skip
SCENES: dict[str, Callable[[], scenes.Story]] = {
    "empty": scenes.empty,
    "warming up": scenes.warming_up,
    "healthy": lambda: scenes.healthy(3, gpus=2),
    "finished": scenes.finished,
    "ranks": lambda: scenes.ranks("gpu06", "gpu06", "gpu07", slow=1, gpus=2),
}


def reported(step: int, metrics: dict[str, float]) -> MetricsReported:
    return MetricsReported("Walker", step, 1.0, metrics, None, None, None, True)


@pytest.mark.parametrize("name", SCENES)
def test_a_view_is_equal_at_the_other_end(name: str) -> None:
    """As text: numbers that are not finite are equal, a list is no tuple."""
    view = SCENES[name]().view()
    assert repr(sent(view)) == repr(view)


@settings(max_examples=30, deadline=None)
@given(EVENTS)
def test_the_view_of_any_events_is_equal_at_the_other_end(events: list[Envelope]) -> None:
    view = RunView()
    for envelope in events:
        view.apply(envelope)
    assert repr(sent(view)) == repr(view)


def test_a_view_that_was_sent_goes_on_as_the_other_does() -> None:
    story = scenes.healthy(2)
    view, other = story.view(), sent(story.view())
    for number in range(1, 5000):
        envelope = Envelope(
            number, 2e9, MetricsReported("Walker", 10**6 + number, 1.0, {"A": 0.5}, None, None, None, True)
        )
        view.apply(envelope)
        other.apply(envelope)
    assert repr(other) == repr(view)
    assert other.log.maxlen == view.log.maxlen


def test_a_snapshot_stays_as_it_was() -> None:
    view = scenes.healthy(1).view()
    before, snapshot = repr(view), Snapshot(view)
    view.apply(
        Envelope(10**6, 2e9, MetricsReported("Walker", 10**6, 1.0, {"Losses/Policy Loss": 9.0}, None, None, None, True))
    )
    reader = SnapshotReader(snapshot.first)
    for curve in snapshot.curves:
        reader.add(snapshot.line(curve))
    assert repr(reader.view) == before != repr(view)


@given(COMMANDS)
def test_every_command_and_hint_is_equal_at_the_other_end(command: Command | Hint) -> None:
    assert repr(decode_command(encode_command(command))) == repr(command)


@pytest.mark.parametrize(
    "line",
    ["", "[]", "{", '{"v": 1}', '{"v": 2, "command": "Stop", "id": "a"}', '{"v": 1, "command": "Go", "id": "a"}',
     '{"v": 1, "command": "Stop"}', '{"v": 1, "command": "Stop", "id": "a", "exit_code": "0"}', "[" * 100_000],
)  # fmt: skip
def test_what_is_no_command_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"^not a (complete )?command"):
        decode_command(line)


def lines() -> list[tuple[str, Callable[[str], object]]]:
    """One of each kind, with what reads it and gives what it has read."""
    snapshot = Snapshot(scenes.healthy(1).view())
    event = Envelope(3, 1.5, reported(5, {"A": float("nan")}))

    def read_curve(line: str) -> object:
        reader = SnapshotReader(snapshot.first)
        reader.add(line)
        return reader.view

    return [
        (encode(event), decode),
        (encode_command(SetLesson("wall", 2)), decode_command),
        (encode_command(Stop("now", 3)), decode_command),
        (encode_command(YieldToScreen(0.1)), decode_command),
        (snapshot.line(snapshot.curves[0]), read_curve),
        (snapshot.first, lambda line: SnapshotReader(line).view),
    ]


@pytest.mark.parametrize("count", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_mutated_lines_are_refused_or_read_as_they_say(count: int) -> None:
    """Never another error; and what is read is what the line says, as JSON."""
    draw = random.Random(5)
    for line, read in lines():
        for _ in range(count if len(line) < 50_000 else count // 10):
            mutated = mutate(line, draw)
            try:
                found = read(mutated)
            except ValueError:
                continue
            json.loads(mutated)
            assert found is not None


def mutate(line: str, draw: random.Random) -> str:
    """Some characters replaced, removed or doubled."""
    characters = list(line)
    for _ in range(draw.choice([1, 1, 2, 5])):
        at = draw.randrange(len(characters))
        match draw.randrange(3):
            case 0:
                characters[at] = draw.choice('{}[]",:0123456789.eE-nultrfas\\\x00\u2028')
            case 1:
                del characters[at : at + draw.choice([1, 1, 10])]
            case _:
                characters[at:at] = characters[at : at + draw.choice([1, 5, 30])]
    return "".join(characters)
