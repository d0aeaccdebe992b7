"""A recorded run told again: paces, silences, several lives, files that cannot be read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.errors import ConfigError
from engine.running.archive import Archive
from engine.running.run_folder import RunFolder
from engine.session.messages import (
    BehaviorStarted,
    CommandFinished,
    Envelope,
    EpisodesFinished,
    Event,
    LogEmitted,
    Pause,
    RunStarted,
    RunStateChanged,
    Stop,
    encode,
)
from engine.session.processes import this_process
from engine.session.view import RunView
from tui.replay import LOOK_SECONDS, MAIL, SPEEDS, Replay, speed_in_words, start_speed

BEGAN = 1_795_000_000.0


def episodes(step: int) -> EpisodesFinished:
    return EpisodesFinished("Walker", step, 1, float(step), 0.0, 1.0, 10.0)


def recording(*events: tuple[float, Event]) -> Iterator[Envelope]:
    """Events with their seconds since BEGAN."""
    yield from [Envelope(number, BEGAN + at, event) for number, (at, event) in enumerate(events, start=1)]


def life(seconds: int, start: float = 0.0, *, resumed: bool = False, ends: bool = True) -> list[tuple[float, Event]]:
    """A process of a run that tells one episode a second."""
    begin = [
        (start, RunStarted("walk", "results/walk", 1, "cpu", resumed, {})),
        (start, WALKER),
    ]
    steps = [(start + at, episodes(at)) for at in range(1, seconds + 1)]
    end = [(start + seconds + 1.0, RunStateChanged("finished", "", 0))] if ends else []
    return [*begin, *steps, *end]


WALKER = BehaviorStarted("Walker", "ppo", "gymnasium:Walker2d-v5", 0, 1000, 1, 10, False)


class Watched:
    """A replay whose time goes on by hand, and who watches it."""

    def __init__(
        self, events: Iterator[Envelope | None], speed: float, process: Callable[[], str] = lambda: ""
    ) -> None:
        self.replay = Replay(events, speed, process)
        self.mail = self.replay.subscribe()
        self.told: list[Event] = []

    def advance(self, seconds: float) -> list[Event]:
        """What is told meanwhile."""
        self.replay.advance(seconds)
        events = [envelope.event for envelope in self.mail.take()]
        self.told += events
        return events


@pytest.mark.parametrize("speed", [1.0, 2.0, 30.0, 1000.0])
def test_events_come_at_the_pace_asked_for(speed: float) -> None:
    watched = Watched(recording(*life(40)), speed)
    watched.advance(0)
    watched.advance(20.5 / speed)
    assert watched.told[-1] == episodes(20)
    assert watched.replay.clock() == BEGAN + 20
    watched.advance(21 / speed)
    assert watched.told[-1] == RunStateChanged("finished", "", 0)
    assert watched.replay.notes() == ("replay ended",)


def test_all_at_once_needs_no_time() -> None:
    watched = Watched(recording(*life(40)), math.inf)
    watched.advance(0)
    assert watched.told[-1] == RunStateChanged("finished", "", 0)


def test_standing_still_tells_nothing_until_it_goes_on() -> None:
    watched = Watched(recording(*life(40)), 0.0)
    assert watched.advance(100) == []
    assert watched.replay.notes() == ("replay stands still",)
    assert watched.replay.change_speed(1) == "1x"
    watched.advance(3.5)
    assert watched.told[-1] == episodes(3)
    assert watched.replay.change_speed(-1) == "stands still"
    assert watched.advance(100) == []


def test_every_notch_can_be_reached_and_the_ends_are_ends() -> None:
    replay = Replay(recording(*life(3)), SPEEDS[0])
    words = [replay.change_speed(1) for _ in SPEEDS]
    assert words == [*map(speed_in_words, SPEEDS[1:]), "all at once"]
    assert [replay.change_speed(-1) for _ in SPEEDS] == [*map(speed_in_words, SPEEDS[-2::-1]), "stands still"]


def test_speed_between_notches_goes_to_its_neighbors() -> None:
    faster, slower = Replay(recording(), 40.0), Replay(recording(), 40.0)
    assert faster.change_speed(1) == "100x"
    assert slower.change_speed(-1) == "30x"


def test_slowing_down_after_all_at_once_keeps_the_place() -> None:
    """There is more than the mailbox takes, so the rest is still to come when the speed changes."""
    watched = Watched(recording(*life(3 * MAIL)), math.inf)
    watched.advance(0)
    for _ in SPEEDS:
        watched.replay.change_speed(-1)
    watched.replay.change_speed(1)
    before = watched.replay.clock()
    watched.advance(5.5)
    assert watched.replay.clock() == before + 5


def test_reader_that_is_behind_loses_nothing() -> None:
    replay = Replay(recording(*life(3 * MAIL)), math.inf)
    mail = replay.subscribe()
    told: list[Envelope] = []
    for _ in range(10):
        replay.advance(0.1)
        assert mail.num_waiting <= MAIL
        told += mail.take()
    assert mail.dropped == 0
    assert len(told) == 3 * MAIL + 3


@pytest.mark.parametrize(("seconds", "speed"), [(None, 30.0), (5.0, 1.0), (200.0, 5.0), (1800.0, 30.0), (1e6, 1000.0)])
def test_run_takes_about_a_minute(seconds: float | None, speed: float) -> None:
    assert start_speed(seconds) == speed


def test_silence_between_two_lives_is_skipped_and_said() -> None:
    hours = 5 * 3600.0
    watched = Watched(recording(*life(10), *life(10, hours, resumed=True)), 1.0)
    watched.advance(0)
    watched.advance(11)
    watched.advance(0.1)
    skipped = [event for event in watched.told if isinstance(event, LogEmitted)]
    assert [event.message for event in skipped] == ["4h59 without events skipped"]
    assert watched.replay.clock() == BEGAN + hours
    watched.advance(3)
    assert watched.told[-1] == episodes(3)


def test_second_life_ends_like_the_first() -> None:
    watched = Watched(recording(*life(10), *life(10, 5000.0, resumed=True)), math.inf)
    watched.advance(0)
    view = RunView()
    for number, event in enumerate(watched.told, start=1):
        view.apply(Envelope(number, BEGAN, event))
    assert view.run is not None
    assert view.run.resumed
    assert (view.state, view.exit_code) == ("finished", 0)


def test_recording_that_ends_before_its_run_says_so() -> None:
    watched = Watched(recording(*life(10, ends=False)), math.inf)
    watched.advance(0)
    assert watched.told[-1] == RunStateChanged("interrupted", "the recording ends here, before the run did")


def test_a_run_that_goes_on_in_another_process_is_followed(tmp_path: Path) -> None:
    """New events appear as they are written, torn lines once they are whole; it ends when the process does."""
    archive = Archive(tmp_path)
    first, second, third, *rest = [encode(envelope) + "\n" for envelope in recording(*life(6, ends=False))]
    with RunFolder(tmp_path, "walk") as folder:
        folder.open()
        folder.events.write_text(first + second)
        watched = Watched(archive.following("walk"), math.inf, lambda: archive.process("walk"))
        watched.advance(0)
        assert watched.told[-1] == WALKER
        assert watched.replay.notes() == (f"following {this_process()}",)
        with folder.events.open("a") as events:
            events.write(third + rest[0][:20])
            events.flush()
            watched.advance(LOOK_SECONDS)
            assert watched.told[-1] == episodes(1)
            events.write(rest[0][20:])
        watched.advance(LOOK_SECONDS)
        assert watched.told[-1] == episodes(2)
        with folder.events.open("a") as events:
            events.writelines(rest[1:])
    watched.advance(LOOK_SECONDS)
    assert watched.told[-2:] == [
        episodes(6), RunStateChanged("interrupted", "the recording ends here, before the run did"),
    ]  # fmt: skip
    assert watched.replay.notes() == ("replay ended",)


def test_empty_recording_has_ended() -> None:
    watched = Watched(recording(), 30.0)
    watched.advance(0)
    assert watched.replay.notes() == ("replay ended",)
    assert watched.replay.change_speed(1) == "the recording has ended"


def test_commands_are_refused() -> None:
    watched = Watched(recording(*life(10)), 1.0)
    command = Pause("Walker")
    watched.replay.send(command)
    assert watched.advance(0)[1] == CommandFinished(command.id, False, "a replay: nothing to control")


def test_stop_ends_the_telling() -> None:
    watched = Watched(recording(*life(10)), 1.0)
    watched.advance(0)
    watched.replay.send(Stop("now"))
    watched.advance(0)
    assert watched.advance(5) == []
    assert watched.replay.wait(0)


def test_line_that_is_no_event_is_told_with_its_place(tmp_path: Path) -> None:
    folder = tmp_path / "walk"
    folder.mkdir()
    lines = [encode(envelope) for envelope in recording(*life(10))]
    path = folder / "events.jsonl"
    path.write_text("\n".join([*lines[:5], "no event", *lines[5:]]) + "\n")
    watched = Watched(Archive(tmp_path).events("walk"), math.inf)
    watched.advance(0)
    assert watched.told[4] == episodes(3)
    last = watched.told[-1]
    assert isinstance(last, LogEmitted)
    assert last.level == "error"
    assert f"{path}:6:" in last.message
    assert watched.replay.notes() == ("replay ended",)


def test_run_of_a_folder_is_told_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "walk").mkdir()
    (tmp_path / "walk/events.jsonl").write_text("".join(encode(each) + "\n" for each in recording(*life(10))))
    watched = Watched(Archive(tmp_path).events("walk"), math.inf)
    watched.advance(0)
    assert watched.told == [event for _, event in life(10)]


def test_run_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        Archive(tmp_path).resolve("nowhere")
