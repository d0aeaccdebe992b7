"""Notes on a run: kept in its events and curves, or refused with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rl_tui.engine.session.messages import AddNote, MetricsReported, NoteAdded, SetHyperparameter, Stop
from rl_tui.engine.storage.event_log import read_events
from tests.running.runs import ENDLESS, behavior, configuration, live

PAIR = {"Walker": behavior(max_steps=ENDLESS), "Other": behavior(max_steps=ENDLESS)}
PLACES = {"Walker": "toy:line", "Other": "toy:line"}


def texts(folder: Path, tag: str) -> list[str]:
    curves = EventAccumulator(str(folder)).Reload()
    return [event.tensor_proto.string_val[0].decode() for event in curves.Tensors(tag)]


def test_notes_stand_in_the_events_and_beside_the_curves(tmp_path: Path) -> None:
    with live(configuration(tmp_path, PAIR, PLACES)) as run:
        run.wait_for(MetricsReported)
        outcome = run.send(AddNote("  warmer now \n"))
        assert (outcome.ok, outcome.message) == (True, "warmer now")
        assert run.send(AddNote("limps\n  on the left\r\n", "Walker")).ok
        assert run.send(SetHyperparameter("Walker", "beta", 0.25)).ok
        run.send(Stop("now"))
        run.wait()
    expected = [NoteAdded("warmer now"), NoteAdded("limps on the left", "Walker")]
    assert run.of(NoteAdded) == expected
    kept = [envelope.event for envelope in read_events(run.folder / "events.jsonl")]
    assert [event for event in kept if isinstance(event, NoteAdded)] == expected
    assert texts(run.folder / "Walker", "Notes") == ["warmer now", "limps on the left"]
    assert texts(run.folder / "Other", "Notes") == ["warmer now"]
    assert texts(run.folder / "Walker", "Hyperparameters/changes") == ["beta 0.005 -> 0.25"]


@pytest.mark.parametrize(
    ("note", "reason"),
    [
        (AddNote(" \n "), "the note is empty"),
        (AddNote("x" * 501), "the note has 501 characters, at most 500 are kept"),
        (AddNote("hello", "Stranger"), "there is no behavior Stranger"),
    ],
)
def test_note_that_cannot_be_kept_is_refused(tmp_path: Path, note: AddNote, reason: str) -> None:
    with live(configuration(tmp_path, PAIR, PLACES)) as run:
        run.wait_for(MetricsReported)
        outcome = run.send(note)
        assert (outcome.ok, outcome.message) == (False, reason)
        assert not run.of(NoteAdded)
        assert run.send(AddNote("x" * 500)).ok
