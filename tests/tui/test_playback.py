"""Playback of a recorded run: speeds, gaps, several processes, files that cannot be read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.process.vital_signs import this_process
from rl_tui.engine.session.codec import encode
from rl_tui.engine.session.log_position import LogPosition
from rl_tui.engine.session.messages import (
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
)
from rl_tui.engine.session.view import RunView
from rl_tui.engine.storage.archive import Archive
from rl_tui.engine.storage.run_folder import RunFolder
from rl_tui.tui.runs import seeking
from rl_tui.tui.runs.playback import LOOK_SECONDS, MAIL, SPEEDS, Playback, speed_text, start_speed
from rl_tui.tui.runs.seeking import OpenEvents, Seek
from rl_tui.tui.screens.prompt import typed_seek
from tests.tui.driver import Driven

BEGAN = 1_795_000_000.0


def episodes(step: int) -> EpisodesFinished:
    return EpisodesFinished("Walker", step, 1, float(step), 0.0, 1.0, 10.0)


class Recorded(list[Envelope]):
    """Events that can be read from any place on."""

    def __call__(self, position: LogPosition) -> Iterator[Envelope | None]:
        for envelope in self[position.num_lines :]:
            position.num_lines += 1
            yield envelope


def recording(*events: tuple[float, Event]) -> Recorded:
    """Events with their seconds since BEGAN."""
    return Recorded(Envelope(number, BEGAN + at, event) for number, (at, event) in enumerate(events, start=1))


def of_folder(results: Path) -> OpenEvents:
    """The run `walk` of that folder."""
    return lambda position: Archive(results).follow("walk", position)


def life(seconds: int, start: float = 0.0, *, resumed: bool = False, ends: bool = True) -> list[tuple[float, Event]]:
    """A process of a run with one episode a second."""
    begin = [
        (start, RunStarted("walk", "results/walk", 1, "cpu", resumed, {})),
        (start, WALKER),
    ]
    steps = [(start + at, episodes(at)) for at in range(1, seconds + 1)]
    end = [(start + seconds + 1.0, RunStateChanged("finished", "", 0))] if ends else []
    return [*begin, *steps, *end]


WALKER = BehaviorStarted("Walker", "ppo", "gymnasium:Walker2d-v5", 0, 1000, 1, 10, False)


class Watched:
    """A playback that is advanced by hand, and its view."""

    def __init__(self, events: OpenEvents, speed: float, process: Callable[[], str] = lambda: "") -> None:
        self.replay = Playback(events, speed, process)
        self.published: list[Event] = []

    def advance(self, seconds: float) -> list[Event]:
        """The events that are published meanwhile."""
        self.replay.advance(seconds)
        envelopes = self.replay.live.fold()
        self.published += [envelope.event for envelope in envelopes]
        return [envelope.event for envelope in envelopes]

    def seek(self, *seeks: Seek) -> RunView:
        """What is shown as soon as the replay has gone there."""
        before = self.view
        for seek in seeks:
            self.replay.seek(seek)
        for _ in range(10_000):
            self.replay.advance(0)
            if self.view is not before:
                return self.view
        raise AssertionError("it never went there")

    @property
    def view(self) -> RunView:
        """What it shows."""
        return self.replay.live.view


@pytest.mark.parametrize("speed", [1.0, 2.0, 30.0, 1000.0])
def test_events_come_at_the_pace_asked_for(speed: float) -> None:
    watched = Watched(recording(*life(40)), speed)
    watched.advance(0)
    watched.advance(20.5 / speed)
    assert watched.published[-1] == episodes(20)
    assert watched.replay.clock() == BEGAN + 20
    watched.advance(21 / speed)
    assert watched.published[-1] == RunStateChanged("finished", "", 0)
    assert watched.replay.notes() == ("replay ended",)


def test_all_at_once_needs_no_time() -> None:
    watched = Watched(recording(*life(40)), math.inf)
    watched.advance(0)
    assert watched.published[-1] == RunStateChanged("finished", "", 0)


def test_a_paused_recording_publishes_nothing_until_it_continues() -> None:
    watched = Watched(recording(*life(40)), 0.0)
    assert watched.advance(100) == []
    assert watched.replay.notes() == ("replay stands still",)
    assert watched.replay.change_speed(1) == "1x"
    watched.advance(3.5)
    assert watched.published[-1] == episodes(3)
    assert watched.replay.change_speed(-1) == "stands still"
    assert watched.advance(100) == []


def test_every_notch_can_be_reached_and_the_ends_are_ends() -> None:
    replay = Playback(recording(*life(3)), SPEEDS[0])
    words = [replay.change_speed(1) for _ in SPEEDS]
    assert words == [*map(speed_text, SPEEDS[1:]), "all at once"]
    assert [replay.change_speed(-1) for _ in SPEEDS] == [*map(speed_text, SPEEDS[-2::-1]), "stands still"]


def test_speed_between_notches_goes_to_its_neighbors() -> None:
    faster, slower = Playback(recording(), 40.0), Playback(recording(), 40.0)
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
    replay = Playback(recording(*life(3 * MAIL)), math.inf)
    mail = replay.live.mail
    published: list[Envelope] = []
    for _ in range(10):
        replay.advance(0.1)
        assert mail.num_waiting <= MAIL
        published += mail.drain()
    assert mail.dropped == 0
    assert len(published) == 3 * MAIL + 3


@pytest.mark.parametrize(("seconds", "speed"), [(None, 30.0), (5.0, 1.0), (200.0, 5.0), (1800.0, 30.0), (1e6, 1000.0)])
def test_run_takes_about_a_minute(seconds: float | None, speed: float) -> None:
    assert start_speed(seconds) == speed


def test_silence_between_two_lives_is_skipped_and_said() -> None:
    hours = 5 * 3600.0
    watched = Watched(recording(*life(10), *life(10, hours, resumed=True)), 1.0)
    watched.advance(0)
    watched.advance(11)
    watched.advance(0.1)
    skipped = [event for event in watched.published if isinstance(event, LogEmitted)]
    assert [event.message for event in skipped] == ["4h59 without events skipped"]
    assert watched.replay.clock() == BEGAN + hours
    watched.advance(3)
    assert watched.published[-1] == episodes(3)


def test_second_life_ends_like_the_first() -> None:
    watched = Watched(recording(*life(10), *life(10, 5000.0, resumed=True)), math.inf)
    watched.advance(0)
    view = RunView()
    for number, event in enumerate(watched.published, start=1):
        view.apply(Envelope(number, BEGAN, event))
    assert view.run is not None
    assert view.run.resumed
    assert (view.state, view.exit_code) == ("finished", 0)


def test_recording_that_ends_before_its_run_says_so() -> None:
    watched = Watched(recording(*life(10, ends=False)), math.inf)
    watched.advance(0)
    assert watched.published[-1] == RunStateChanged("interrupted", "the recording ends here, before the run did")


def test_a_run_that_goes_on_in_another_process_is_followed(tmp_path: Path) -> None:
    """New events appear as they are written, torn lines once they are whole; it ends when the process does."""
    archive = Archive(tmp_path)
    first, second, third, *rest = [encode(envelope) + "\n" for envelope in recording(*life(6, ends=False))]
    with RunFolder(tmp_path, "walk") as folder:
        folder.open()
        folder.events.write_text(first + second)
        watched = Watched(of_folder(tmp_path), math.inf, lambda: archive.process("walk"))
        watched.advance(0)
        assert watched.published[-1] == WALKER
        assert watched.replay.notes() == (f"following {this_process()}",)
        with folder.events.open("a") as events:
            events.write(third + rest[0][:20])
            events.flush()
            watched.advance(LOOK_SECONDS)
            assert watched.published[-1] == episodes(1)
            events.write(rest[0][20:])
        watched.advance(LOOK_SECONDS)
        assert watched.published[-1] == episodes(2)
        with folder.events.open("a") as events:
            events.writelines(rest[1:])
    watched.advance(LOOK_SECONDS)
    assert watched.published[-2:] == [
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


def test_stop_ends_the_playback() -> None:
    watched = Watched(recording(*life(10)), 1.0)
    watched.advance(0)
    watched.replay.send(Stop("now"))
    watched.advance(0)
    assert watched.advance(5) == []
    assert watched.replay.wait(0)


def test_line_that_is_no_event_is_reported_with_its_place(tmp_path: Path) -> None:
    folder = tmp_path / "walk"
    folder.mkdir()
    lines = [encode(envelope) for envelope in recording(*life(10))]
    path = folder / "events.jsonl"
    path.write_text("\n".join([*lines[:5], "no event", *lines[5:]]) + "\n")
    watched = Watched(of_folder(tmp_path), math.inf)
    watched.advance(0)
    assert watched.published[4] == episodes(3)
    last = watched.published[-1]
    assert isinstance(last, LogEmitted)
    assert last.level == "error"
    assert f"{path}:6:" in last.message
    assert watched.replay.notes() == ("replay ended",)


def test_run_of_a_folder_is_played_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "walk").mkdir()
    (tmp_path / "walk/events.jsonl").write_text("".join(encode(each) + "\n" for each in recording(*life(10))))
    watched = Watched(of_folder(tmp_path), math.inf)
    watched.advance(0)
    assert watched.published == [event for _, event in life(10)]


def test_missing_run_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        Archive(tmp_path).resolve("nowhere")


def folded(events: list[tuple[float, Event]], number: int) -> RunView:
    """The view after so many events."""
    view = RunView()
    for envelope in recording(*events)[:number]:
        view.apply(envelope)
    return view


def shown(view: RunView) -> object:
    """What of a view does not depend on the numbers of events."""
    return view.now, view.state, view.behaviors, [line.message for line in view.log]


@pytest.mark.parametrize(("share", "number"), [(0.0, 2), (0.25, 27), (0.5, 52), (1.0, 103)])
def test_any_place_shows_the_events_until_there(share: float, number: int) -> None:
    watched = Watched(recording(*life(99)), 1.0)
    watched.advance(0)
    watched.advance(70)
    assert shown(watched.seek(Seek(share=share))) == shown(folded(life(99), number - (share == 1.0)))


def test_after_going_back_the_recording_is_played_from_there_on() -> None:
    watched = Watched(recording(*life(99)), 1.0)
    watched.advance(0)
    watched.advance(80)
    watched.seek(Seek(share=0.5))
    assert watched.replay.notes() == ("replay 50% 1x",)
    assert watched.advance(2.5) == [episodes(51), episodes(52)]
    assert shown(watched.view) == shown(folded(life(99), 54))


def test_twentieths_add_up_and_end_at_the_ends() -> None:
    watched = Watched(recording(*life(99)), 1.0)
    watched.advance(0)
    watched.advance(50)
    watched.seek(Seek(by=0.05), Seek(by=0.05), Seek(by=-0.2))
    assert watched.replay.clock() == BEGAN + 40
    watched.seek(Seek(by=-0.9))
    assert watched.replay.clock() == BEGAN
    watched.seek(Seek(by=9))
    watched.advance(0)
    assert watched.replay.notes() == ("replay ended",)


def test_replay_that_has_ended_starts_again() -> None:
    watched = Watched(recording(*life(20)), math.inf)
    watched.advance(0)
    assert watched.replay.notes() == ("replay ended",)
    assert watched.seek(Seek(share=0.0)).behaviors["Walker"].step == 0
    watched.advance(0)
    assert shown(watched.view) == shown(folded(life(20), 99))


def test_step_is_found_in_the_first_life_that_came_so_far() -> None:
    watched = Watched(recording(*life(30), *life(30, 5000.0, resumed=True)), 1.0)
    assert watched.seek(Seek(behavior="Walker", step=12)).now == BEGAN + 12
    assert watched.seek(Seek(behavior="Walker", step=999)).state == "finished"


def test_silence_between_two_lives_takes_no_part_of_the_recording() -> None:
    hours = 5 * 3600.0
    watched = Watched(recording(*life(49, ends=False), *life(49, hours, resumed=True, ends=False)), 1.0)
    assert watched.seek(Seek(share=0.75)).now == pytest.approx(BEGAN + hours + 24, abs=1)


def test_snapshots_are_few_however_long_the_recording_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeking, "SNAPSHOT_EVENTS", 4)
    monkeypatch.setattr(seeking, "MOST_SNAPSHOTS", 6)
    watched = Watched(recording(*life(999)), 1.0)
    for share in (0.9, 0.3, 0.61):
        number = round(share * 1000) + 2
        assert shown(watched.seek(Seek(share=share))) == shown(folded(life(999), number))
    assert len(watched.replay._index._snapshots) <= 6


def test_pause_stands_still_and_goes_on_at_the_speed_of_before() -> None:
    watched = Watched(recording(*life(40)), 5.0)
    watched.advance(0)
    assert watched.replay.pause() == "stands still"
    assert watched.advance(100) == []
    assert watched.replay.pause() == "5x"
    watched.advance(1.1)
    assert watched.published[-1] == episodes(5)


def test_end_of_a_run_that_goes_on_is_followed(tmp_path: Path) -> None:
    lines = [encode(envelope) + "\n" for envelope in recording(*life(30, ends=False))]
    with RunFolder(tmp_path, "walk") as folder:
        folder.open()
        folder.events.write_text("".join(lines[:20]))
        archive = Archive(tmp_path)
        watched = Watched(of_folder(tmp_path), 1.0, lambda: archive.process("walk"))
        watched.advance(0)
        assert watched.seek(Seek(share=1.0)).behaviors["Walker"].num_episodes == 18
        watched.advance(0)
        assert watched.replay.notes() == (f"following {this_process()}",)
        with folder.events.open("a") as events:
            events.write(lines[20])
        watched.replay.change_speed(9)
        assert watched.advance(LOOK_SECONDS) == [episodes(19)]


def test_reader_goes_on_where_another_stood(tmp_path: Path) -> None:
    (tmp_path / "walk").mkdir()
    lines = [encode(envelope) + "\n" for envelope in recording(*life(10), *life(5, 5000.0, resumed=True))]
    (tmp_path / "walk/events.jsonl").write_text("".join(lines))
    whole, position = list(Archive(tmp_path).events("walk")), LogPosition()
    reader = Archive(tmp_path).follow("walk", position)
    for expected in whole[:15]:
        assert next(reader) == expected
    others = Archive(tmp_path).follow("walk", replace(position))
    assert [next(others) for _ in whole[15:]] == whole[15:]
    assert next(others) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("50%", Seek(share=0.5)),
        ("100 %", Seek(share=1.0)),
        ("120k", Seek(behavior="Walker", step=120_000)),
        ("1.5M", Seek(behavior="Walker", step=1_500_000)),
        ("3_000", Seek(behavior="Walker", step=3000)),
    ],
)
def test_place_is_typed_as_a_share_or_a_step(text: str, expected: Seek) -> None:
    assert typed_seek(text, "Walker") == expected


@pytest.mark.parametrize("text", ["", "101%", "half", "-5", "5 x", "1e9999", "50%%"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the prompt has the words
        typed_seek(text, "Walker")


async def test_keys_go_to_another_place_and_what_was_chosen_stays() -> None:
    replay = Playback(recording(*life(99)), 0.0)
    async with Driven(RunView(), (120, 40), player=replay, session=replay) as screen:
        screen.app.context.state.chart.smoothing = 0.3

        async def settled(words: str) -> str:
            for _ in range(500):
                replay.advance(0)
                if words in (text := await screen.text()):
                    return text
            raise AssertionError(text)

        await screen.press("percent_sign", *"50")
        assert "a share of the recording" in await screen.text()
        await screen.press("percent_sign", "enter")
        await settled("mean of 50 episodes")
        asked = await screen.press("percent_sign")
        assert "or a step of Walker like" in asked
        assert "about Walker" not in asked
        await screen.press("escape")
        await screen.press("right_parenthesis")
        assert screen.app.context.state.chart.smoothing == 0.3
        await settled("mean of 55 episodes")
        await screen.press("A")
        assert "mean of" not in await settled("up 0s")
        assert "replay: 5x" not in await screen.press("p")
        await screen.press("F")
        await settled("FINISHED")


def test_after_seeks_no_event_is_missing_or_comes_twice_by_its_position() -> None:
    """The view and what comes after it are the whole recording; a replay's own words have no position."""
    events = recording(*life(40), *life(40, start=200.0, resumed=True))
    events[:] = [replace(each, epoch=1 + (number >= len(events) // 2)) for number, each in enumerate(events)]
    player = Playback(events, 1.0)
    player.advance(5.0)
    for share in (0.7, 0.2, 0.9):
        before = player.live.view
        player.seek(Seek(share=share))
        while player.live.view is before:
            player.advance(0.0)
        position = player.live.view.position
        player.advance(10.0)
        seen = [(each.epoch, each.number) for each in player.live.fold() if each.epoch]
        whole = [(each.epoch, each.number) for each in events]
        begin = whole.index(position) + 1
        assert seen == whole[begin : begin + len(seen)] != []
