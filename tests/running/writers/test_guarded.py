"""Installed writers in whole runs: each gets every event, and none of them can harm the run or another."""

from __future__ import annotations

import io
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.running.writers import guarded
from rl_tui.engine.running.writers.console import ConsoleWriter
from rl_tui.engine.session.messages import (
    DELTAS,
    BehaviorStarted,
    LogEmitted,
    MetricsReported,
    RunStateChanged,
    Stop,
)
from rl_tui.engine.storage.event_log import read_events
from tests.running.runs import ENDLESS, LiveRun, behavior, configuration, live, run_to_end
from tests.running.writers.plugins import lines

__all__ = ["lines"]


def with_writers(folder: Path, writers: dict[str, Any], **changes: Any) -> RunConfig:
    settings = changes.pop("settings", behavior())
    return configuration(folder, {"Walker": settings}, writers=writers, **changes)


def complaints(run: LiveRun, source: str = "writer lines") -> list[LogEmitted]:
    return [event for event in run.of(LogEmitted) if event.source == source and event.level != "info"]


def is_recorded(run: LiveRun) -> bool:
    """Whether the event log has everything that happened, up to the last state."""
    logged = [envelope.event for envelope in read_events(run.folder / "events.jsonl")]
    happened = [event for event in run.events if not isinstance(event, DELTAS)]
    return [event for event in logged if not isinstance(event, DELTAS)] == happened


def test_writer_gets_every_event_of_the_run_in_order_and_what_to_know_of_it(tmp_path: Path, lines: ModuleType) -> None:
    run = run_to_end(with_writers(tmp_path, {"lines": {"path": "a.txt"}}))
    (writer,) = lines.made
    assert run.launch.exit_code == 0
    assert writer.mail == run.mail
    assert writer.is_closed
    kinds = (run.folder / "a.txt").read_text().split()
    assert (kinds[0], kinds[-1]) == ("RunStarted", "RunStateChanged")
    assert (writer.context.run_id, writer.context.folder, writer.context.resumed) == ("run", run.folder, False)
    assert writer.context.configuration == yaml.safe_load((run.folder / "configuration.yaml").read_text())
    assert writer.context.settings_of("Walker")["max_steps"] == 512
    assert writer.context.started_at <= run.mail[0].time
    assert not complaints(run)

    longer = with_writers(
        tmp_path, {"lines": {}}, settings=behavior(max_steps=1024), checkpoint_settings={"resume": True}
    )
    again = run_to_end(longer)
    assert [writer.context.resumed for writer in lines.made] == [False, True]
    assert [event.step for event in again.of(BehaviorStarted)] == [512]
    assert lines.made[-1].mail == again.mail


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("start", "lines 1.0: its constructor raised OSError: [Errno 28] No space left, at "),
        ("write", "lines 1.0: write raised SystemExit: no more of this, at "),
        ("close", "lines 1.0: close raised OSError: [Errno 28] No space left, at "),
    ],
)
def test_writer_that_raises_is_reported_once_and_left_out(
    tmp_path: Path, lines: ModuleType, place: str, reason: str
) -> None:
    run = run_to_end(with_writers(tmp_path, {"lines": {"fails_in": place}, "others": {}}))
    assert run.launch.exit_code == 0
    (complaint,) = complaints(run)
    assert complaint.level == "error"
    assert complaint.message.startswith(reason)
    outcome = "Its last entries may be missing" if place == "close" else "It is left out; the run continues"
    assert complaint.message.endswith(f"lines_writer.py:{_line(lines, place)} in _reach. {outcome}")
    stream = io.StringIO()
    console = ConsoleWriter(stream)
    for envelope in run.mail:
        console.write(envelope)
    assert stream.getvalue().count(f"[ERROR] writer lines: {reason}") == 1
    output = (run.folder / "run_logs/output.log").read_text()
    assert f"writer lines failed in {place if place != 'start' else 'its constructor'}:\nTraceback" in output
    assert "self._reach(" in output
    assert "guarded.py" not in output
    failed, other = sorted(lines.made, key=lambda writer: writer.settings.fails_in == "")
    assert failed.is_closed == (place == "write")
    assert other.is_closed
    assert [e for e in other.mail if not isinstance(e.event, LogEmitted)] == [
        e for e in run.mail if not isinstance(e.event, LogEmitted)
    ]
    assert is_recorded(run)
    assert list((run.folder / "Walker").glob("events.out.tfevents.*"))


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ("LinesWriter", "AttributeError: module 'lines_writer' has no attribute 'LinesWriter'"),
        ("LinesWriter.close", "TypeError: LinesWriter must have a method close"),
    ],
)
def test_writer_that_cannot_be_used_ends_the_run_before_it_starts(
    tmp_path: Path, lines: ModuleType, monkeypatch: pytest.MonkeyPatch, part: str, reason: str
) -> None:
    monkeypatch.delattr(f"lines_writer.{part}")
    run = run_to_end(with_writers(tmp_path, {"lines": {}}))
    about = f"lines of lines 1.0 (writers: lines_writer:LinesSettings) cannot be used: {reason}"
    assert (run.launch.exit_code, run.of(RunStateChanged)[-1].reason) == (2, about)
    assert not run.folder.exists()


def test_run_that_cannot_start_and_one_that_only_plays_have_no_writer(tmp_path: Path, lines: ModuleType) -> None:
    missing = {"torch_settings": {"device": "cuda:99"}}
    broken = configuration(tmp_path, {"Walker": behavior()}, writers={"lines": {}}, **missing)
    assert run_to_end(broken).launch.exit_code == 2
    playing = {"inference": True, "run_id": "played"}
    played = with_writers(tmp_path, {"lines": {}}, settings=behavior(max_steps=64), checkpoint_settings=playing)
    with live(played) as run:
        run.wait_for(RunStateChanged, lambda event: event.state == "training")
        run.send(Stop())
    assert lines.made == []
    assert not list(run.folder.glob("*/events.out.tfevents.*"))


def test_tensorboard_can_be_turned_off(tmp_path: Path) -> None:
    run = run_to_end(with_writers(tmp_path, {"tensorboard": None}))
    assert not list(run.folder.glob("*/events.out.tfevents.*"))
    assert is_recorded(run)
    assert (run.folder / "run_logs/timers.json").exists()


def _line(module: ModuleType, place: str) -> int:
    assert module.__file__ is not None
    raising = "raise SystemExit" if place == "write" else "raise OSError"
    return next(n for n, text in enumerate(Path(module.__file__).read_text().splitlines(), 1) if raising in text)


def test_writer_that_hangs_delays_nothing_and_is_left_behind_with_what_it_lost(
    tmp_path: Path, lines: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "CLOSING_NOW_SECONDS", 0.2)
    left_behind: list[bool] = []
    monkeypatch.setattr(guarded, "leave_behind", lambda: left_behind.append(True))
    monkeypatch.setattr(guarded, "MAILBOX_SIZE", 20)
    writers = {"lines": {"fails_in": "hang"}, "others": {}}
    try:
        with live(with_writers(tmp_path, writers, settings=behavior(max_steps=ENDLESS))) as run:
            run.wait_for(LogEmitted, lambda event: event.source == "writer lines" and event.level == "warning")
            run.wait_for(MetricsReported, after=len(run.mail))
            run.send(Stop("now"))
            assert run.wait() == 0
            lines.released.set()
    finally:
        lines.released.set()
    other = next(writer for writer in lines.made if writer.settings.fails_in == "")
    assert other.is_closed
    assert isinstance(other.mail[-1].event, RunStateChanged)
    assert left_behind == [True]
    losing, left = complaints(run)
    assert losing.message.startswith("is more than 20 events behind, and is losing events")
    assert left.message.startswith("has not finished within 0.2 s and is left behind")
    assert is_recorded(run)
