"""When something periodic is due."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_tui.engine.running.triggers import IntervalTrigger, Reminder
from rl_tui.engine.session.messages import CheckpointSaved, LogEmitted, MetricsReported, Stop
from tests.running.runs import ENDLESS, behavior, configuration, live, run_to_end


@pytest.mark.parametrize(
    ("start", "steps", "fired"),
    [
        (0, [0, 9, 10, 11, 20], [None, None, 10, None, 20]),
        (0, [35, 36, 40], [30, None, 40]),
        (10, [10, 19, 20], [None, None, 20]),
        (13, [19, 21], [None, 20]),
    ],
)
def test_trigger_fires_at_multiples_and_never_at_its_first_step(
    start: int, steps: list[int], fired: list[int | None]
) -> None:
    trigger = IntervalTrigger(10, start)
    assert [trigger.fires(step) for step in steps] == fired


def test_what_could_not_be_done_stays_due_until_it_is_done() -> None:
    reminder = Reminder(10, 13)
    assert [reminder.is_due(step) for step in (13, 19, 20, 21, 29)] == [False, False, True, True, True]
    reminder.done()
    assert [reminder.is_due(step) for step in (29, 30)] == [False, True]
    assert not Reminder(None).is_due(10**9)


def test_exports_go_with_their_checkpoint_where_they_came_with_it(tmp_path: Path) -> None:
    walker = behavior(max_steps=700, checkpoint_interval=200, keep_checkpoints=1, export_policies=["greedy"])
    run = run_to_end(configuration(tmp_path, {"Walker": walker}))
    folder = run.folder / "Walker"
    kept = {path.name for path in (folder / "checkpoints").iterdir()}
    assert {path.stem for path in folder.glob("*.onnx")} == kept
    assert {path.name for path in (folder / "policies").iterdir()} == {f"{name}-greedy.onnx" for name in kept}


def test_without_an_interval_there_is_one_checkpoint_at_the_end_and_a_warning_at_the_start(tmp_path: Path) -> None:
    config = configuration(tmp_path, {"Walker": behavior(checkpoint_interval=-1, max_steps=1024)})
    run = run_to_end(config)
    assert [event.reason for event in run.of(CheckpointSaved)] == ["final"]
    warning = next(event.message for event in run.of(LogEmitted) if "checkpoint_interval" in event.message)
    assert "a crash" in warning
    endless = {"Walker": behavior(checkpoint_interval=-1, max_steps=ENDLESS)}
    config = configuration(tmp_path, endless, checkpoint_settings={"run_id": "b"})
    with live(config) as run:
        run.wait_for(MetricsReported)
        run.send(Stop())
        run.wait()
    assert [event.reason for event in run.of(CheckpointSaved)] == ["interrupted"]
