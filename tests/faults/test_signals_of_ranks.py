"""Signals, terminals and launchers of a run on several ranks."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from rl_tui.engine.session.messages import BehaviorStarted, CheckpointSaved, RunStateChanged
from tests.deadline import DEADLINE_SECONDS, wait_until
from tests.end_to_end.program import (
    events_of,
    finish,
    read_until,
    run,
    start,
    surroundings,
    terminal,
    wait_for_summary,
)
from tests.faults.rank_programs import HOST, LOST, TERMINATED, named, ranks, write
from tests.sampling.driving import survivors

STARTED = ("line.yaml", "--no-ui", "--ranks", "2", "--run-id", "run")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path)
    return tmp_path


@contextmanager
def all_of(process: subprocess.Popen[str]) -> Iterator[list[psutil.Process]]:
    """A run's processes, those of other ranks too, which are gone afterwards without further ado."""
    top = psutil.Process(process.pid)
    processes = [top, *top.children(recursive=True)]
    try:
        yield processes
        assert survivors(processes, DEADLINE_SECONDS) == []
    finally:
        for each in processes:
            with contextlib.suppress(psutil.Error):
                each.kill()
        process.wait()


def rank_among(processes: list[psutil.Process], rank: int) -> psutil.Process:
    """The one that trains as that rank."""
    found = [each for each in processes if each.environ().get("RANK") == str(rank) and "rl_tui" in each.cmdline()]
    return found[-1]  # the first one may watch it


@pytest.mark.parametrize("rank", [0, 2])
def test_sigterm_to_any_rank_stops_all_with_everything_saved(rank: int, folder: Path) -> None:
    with ranks(folder, size=3) as program:
        program.wait_until_saved()
        program.signal(rank, signal.SIGTERM)
        ended = program.finish()
        assert [each.exit_code for each in ended] == [TERMINATED, 0, 0 if rank == 0 else TERMINATED], ended
        assert program.saved[-1].reason == "interrupted"
        assert program.newest_step() == program.saved[-1].step
        assert program.reason == "everything is saved"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_first_process_of_ranks_that_it_has_started_ends_them(number: signal.Signals, folder: Path) -> None:
    process = start(*STARTED, folder=folder)
    wait_for_summary(folder / "results/run")
    with all_of(process) as processes:
        assert len(processes) >= 3
        process.send_signal(number)
        code = finish(process)[0]
    assert code == (-number if number == signal.SIGKILL else TERMINATED)


def test_started_rank_that_is_killed_is_named(folder: Path) -> None:
    process = start(*STARTED, folder=folder)
    wait_for_summary(folder / "results/run")
    with all_of(process) as processes:
        rank_among(processes, 1).kill()
        code, stdout, _ = finish(process)
    assert code == LOST
    assert f"{named(1, 2)} was lost: its process has ended" in stdout


def test_ctrl_c_in_the_terminal_saves_and_stops_once(folder: Path) -> None:
    with terminal(*STARTED, folder=folder) as screen:
        wait_for_summary(folder / "results/run")
        with all_of(screen.process):
            screen.press("ctrl+c")
            assert screen.wait() == 128 + signal.SIGINT
    events = events_of(folder / "results/run")
    assert [event.reason for event in events if isinstance(event, CheckpointSaved)].count("interrupted") == 1
    assert events[-1] == RunStateChanged("stopped", "everything is saved", 130)


@pytest.mark.parametrize("has_screen", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_ranks_outlive_the_terminal(has_screen: bool, folder: Path) -> None:
    words = [word for word in STARTED if word != "--no-ui" or not has_screen]
    results = folder / "results/run"
    with terminal(*words, folder=folder) as screen:
        summaries = wait_for_summary(results)
        with all_of(screen.process):
            screen.hang_up()
            wait_for_summary(results, summaries + 20)
            assert run("ctl", str(results), "stop", folder=folder)[0] == 0
            wait_until(lambda: events_of(results)[-1] == RunStateChanged("stopped", "everything is saved", 0))
    assert len([event for event in events_of(results) if isinstance(event, BehaviorStarted)]) == 1


def test_torchrun_starts_ranks_again_and_they_go_on_from_the_checkpoint(folder: Path) -> None:
    words = ["--standalone", "--nproc-per-node", "2", "--max-restarts", "1", "-m", "rl_tui"]
    process = subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *words, "line.yaml", "--no-ui", "--run-id", "run",
         "--resume-or-start", "--set", "behaviors.Line.max_steps=3000"],
        cwd=folder, env=surroundings(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, start_new_session=True,
    )  # fmt: skip
    try:
        read_until(process, " saved")
        rank_among(psutil.Process(process.pid).children(recursive=True), 1).kill()
        code, stdout, _ = finish(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert code == 0, stdout
    started = [event.step for event in events_of(folder / "results/run") if isinstance(event, BehaviorStarted)]
    assert len(started) == 2
    assert started[1] > 0
    assert events_of(folder / "results/run")[-1] == RunStateChanged("finished", "", 0)


BAD = {
    "no world": ({"RANK": "0"}, "RANK=0 is set in the environment, but not WORLD_SIZE, MASTER_ADDR, MASTER_PORT"),
    "no answer": (
        {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"},
        "rank 0 of 2 does not answer at 127.0.0.1:1 within 0.5 s (Connection refused)",
    ),
    "no others": (
        {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"},
        f"rank 1 has not come within 0.5 s: this is rank 0 of 2, on {HOST}",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_surroundings_are_named_before_anything_is_trained(what: str, folder: Path) -> None:
    more, text = BAD[what]
    words = ("line.yaml", "--no-ui", "--join-timeout", "0.5")
    code, stdout, stderr = finish(start(*words, folder=folder, more=more))
    assert code == (2 if what == "no world" else LOST), stdout + stderr
    assert text in stderr
    assert not (folder / "results").exists()


def test_ranks_with_different_files_are_refused_on_all(folder: Path) -> None:
    other = folder / "other"
    other.mkdir()
    write(other)
    text = (other / "line.yaml").read_text()
    (other / "line.yaml").write_text(text.replace("batch_size: 32", "batch_size: 16"))
    with ranks(folder, size=2, folders={1: other}) as program:
        ended = program.finish()
    assert [each.exit_code for each in ended] == [2, 2], ended
    for each in ended:
        assert f"{named(1, 2)} has another configuration than rank 0 on {HOST}: " in each.stderr
        assert re.search(r"batch_size is 16 there, 32 here", each.stderr)
    assert not (folder / "results").exists()
