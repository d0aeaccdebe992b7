"""Every event of a run has a position: what was read of its log and what comes live are joined without a gap."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import (
    DELTAS,
    Envelope,
    Pause,
    ProgressReported,
    Resume,
    RollBack,
    SaveCheckpoint,
    Stop,
)
from rl_tui.engine.storage.event_log import read_events
from tests.running.runs import LiveRun, behavior, configuration, live, run_to_end


def positions(events: list[Envelope]) -> list[tuple[int, int]]:
    """Of all but deltas, which the log thins."""
    return [(each.epoch, each.number) for each in events if not isinstance(each.event, DELTAS)]


def test_the_log_and_what_comes_live_are_all_events_once(tmp_path: Path) -> None:
    """Also where the log is read while the resumed run writes to it."""
    first = run_to_end(configuration(tmp_path, {"Walker": behavior(max_steps=256)}))
    log = first.folder / "events.jsonl"
    bus, resume = EventBus(), {"resume": True}
    config = configuration(tmp_path, {"Walker": behavior(max_steps=5120)}, checkpoint_settings=resume)
    run = LiveRun(config, bus=bus)
    run.wait_for(ProgressReported, lambda event: event.step > 256)
    past = list(takewhile(lambda envelope: not bus.has_published(envelope), read_events(log)))
    run.wait()
    assert positions(past) == positions(list(read_events(log)))[: len(positions(past))]
    own = [each for each in run.mail if each.epoch]
    assert {each.epoch for each in past} == {1}
    assert {each.epoch for each in own} == {2}
    assert sorted(positions([*past, *own])) == sorted(positions(list(read_events(log))))
    assert [each.number for each in run.mail] == list(range(1, len(run.mail) + 1)), "none is missing"


def test_a_roll_back_does_not_disturb_positions(tmp_path: Path) -> None:
    with live(configuration(tmp_path, {"Walker": behavior(max_steps=100_000)})) as run:
        run.wait_for(ProgressReported, lambda event: event.step > 64)
        for command in (Pause(), SaveCheckpoint(), Resume()):
            assert run.send(command).ok
        run.wait_for(ProgressReported, lambda event: event.step > 640)
        saved = next(folder for folder in sorted((run.folder / "Walker/checkpoints").iterdir()))
        assert run.send(RollBack("Walker", str(saved))).ok
        assert run.send(Stop("now")).ok
        run.wait()
    events = list(read_events(run.folder / "events.jsonl"))
    assert positions(events) == positions([each for each in run.mail if each.epoch])
    assert len(set(positions(events))) == len(positions(events))
