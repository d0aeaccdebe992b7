"""The files that only describe a run: where the disk refuses one, a warning says so and the run continues."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rl_tui.engine.session.messages import (
    CheckpointFailed,
    CheckpointSaved,
    ExportFailed,
    ExportPolicy,
    LogEmitted,
    MetricsReported,
    Pause,
    Resume,
    RunStateChanged,
    SaveCheckpoint,
    Stop,
)
from rl_tui.engine.session.view import RunView
from rl_tui.engine.storage.event_log import read_events
from tests.running.runs import ENDLESS, behavior, configuration, ending, live, run_to_end


@pytest.mark.parametrize("name", ["events.jsonl", "run_logs/timers.json", "run_logs/training_status.json"])
def test_log_that_cannot_be_written_is_named_and_the_run_goes_on(tmp_path: Path, name: str) -> None:
    run_to_end(configuration(tmp_path, {"Walker": behavior()}))
    blocked = tmp_path / "results/run" / name
    blocked.unlink()
    (blocked / "in the way").mkdir(parents=True)
    longer = {"Walker": behavior(max_steps=1024)}
    run = run_to_end(configuration(tmp_path, longer, checkpoint_settings={"resume": True}))
    assert run.launch.exit_code == 0, run.recent_events()
    assert run.of(CheckpointSaved)[-1].reason == "final"
    complaints = [event.message for event in run.of(LogEmitted) if event.level in ("warning", "error")]
    assert any(blocked.name in message for message in complaints), complaints


def test_configuration_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    run_to_end(configuration(tmp_path, {"Walker": behavior()}))
    blocked = tmp_path / "results/run/configuration.yaml"
    blocked.unlink()
    (blocked / "in the way").mkdir(parents=True)
    run = run_to_end(configuration(tmp_path, {"Walker": behavior()}, checkpoint_settings={"resume": True}))
    assert run.launch.exit_code == 2
    assert "configuration.yaml: cannot be written" in ending(run).reason


def test_disk_that_refuses_checkpoints_and_exports_fails_them_and_at_the_end_the_run(tmp_path: Path) -> None:
    with live(configuration(tmp_path, {"Walker": behavior(max_steps=ENDLESS)})) as run:
        run.wait_for(MetricsReported)
        run.send(Pause())
        run.wait_for(RunStateChanged, lambda event: event.state == "paused")
        checkpoints, final = run.folder / "Walker/checkpoints", run.folder / "Walker.onnx"
        shutil.rmtree(checkpoints)
        checkpoints.write_text("in the way")
        (final / "in the way").mkdir(parents=True)
        saved, exported = run.send(SaveCheckpoint()), run.send(ExportPolicy())
        assert (saved.ok, exported.ok) == (False, False)
        assert "checkpoints" in saved.message
        assert "Walker.onnx" in exported.message
        assert run.of(CheckpointFailed)[0].message == saved.message
        assert run.of(ExportFailed)[-1].message == exported.message
        checkpoints.unlink()
        checkpoints.mkdir()
        shutil.rmtree(final)
        assert run.send(SaveCheckpoint()).ok, "as soon as there is room again"
        assert run.send(Resume()).ok
        seen = len(run.mail)
        run.wait_for(MetricsReported, after=seen)
        checkpoints.rename(tmp_path / "away")
        checkpoints.write_text("in the way")
        run.send(Stop())
        assert run.wait() == 7
        assert run.of(CheckpointFailed)[-1].reason == "interrupted"
        assert run.of(RunStateChanged)[-1].state == "unsaved"


def test_screen_replayed_from_the_file_shows_what_the_live_one_showed(tmp_path: Path) -> None:
    run = run_to_end(configuration(tmp_path, {"Walker": behavior(checkpoint_interval=200)}))
    live_view, replayed = RunView(), RunView()
    for envelope in run.mail:
        live_view.apply(envelope)
    for envelope in read_events(run.folder / "events.jsonl"):
        replayed.apply(envelope)
    assert replayed.state == live_view.state == "finished"
    left, right = live_view.behaviors["Walker"], replayed.behaviors["Walker"]
    assert (left.state, left.step, left.max_steps) == (right.state, right.step, right.max_steps)
    assert left.histories == right.histories
    assert left.metrics == right.metrics
    assert [e.step for _, e in left.checkpoints] == [e.step for _, e in right.checkpoints]
