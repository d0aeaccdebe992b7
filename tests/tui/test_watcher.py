"""The process that watches another one: how that ended is said, and it ends, whatever it does.

The child is a few lines without torch, so that each case takes a fraction of a second.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.deadline import DEADLINE_SECONDS
from tests.end_to_end.program import surroundings

PROGRAM = """
import ctypes, os, signal, sys, time
from rl_tui.engine.process.vital_signs import SIGNS
from rl_tui.tui.command_line.watcher import play_watched, run_watched
from rl_tui.tui.terminal.signals import RunSignals

libc = ctypes.PyDLL(None)  # whose functions keep the interpreter


def say(*words):
    print(*words, flush=True)


def wait(signals):
    while True:
        SIGNS.beat('main')
        time.sleep(0.01)
        for command in signals.pop_commands():
            say(type(command).__name__, getattr(command, "mode", ""))
            if getattr(command, "mode", "") == "now":
                return command.exit_code


def child():
    SIGNS.log = sys.argv[1]
    mark = SIGNS.new_mark("gym:Env")
{body}


exit_code = 1
try:
    exit_code = {run}(child)
except KeyboardInterrupt:
    exit_code = 130
finally:
    SIGNS.enter("over", exit_code)
sys.exit(exit_code)
"""
HANGS = "while True: libc.sleep(100)"  # until a signal comes, and then again
IN_A_STEP = ['SIGNS.enter("training")', 'mark.begin("step")']


@contextmanager
def watched(
    folder: Path, *body: str, run: str = "run_watched", stdin: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[str]]:
    """A program whose child does that; killed at the end."""
    source = PROGRAM.format(run=run, body="\n".join(f"    {line}" for line in body))
    process = subprocess.Popen(
        [sys.executable, "-c", source, str(folder / "output.log")],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=surroundings(),
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize(
    ("body", "exit_code", "said"),
    [
        (["return 5"], 5, ""),
        (["sys.exit(130)"], 130, ""),
        ([*IN_A_STEP, "os._exit(0)"], 3, "gym:Env: step ended the process with exit code 0"),
        ([*IN_A_STEP, "libc.exit(4)"], 3, "gym:Env: step ended the process with exit code 4"),
        ([*IN_A_STEP, "mark.end()", "os._exit(0)"], 1, "rl-tui ended the process with exit code 0"),
        ([*IN_A_STEP, "ctypes.string_at(0)"], 3, "gym:Env: step crashed (SIGSEGV)"),
        ([*IN_A_STEP, "os.abort()"], 3, "gym:Env: step crashed (SIGABRT)"),
        (["ctypes.string_at(0)"], -signal.SIGSEGV, "rl-tui crashed (SIGSEGV); training had not begun"),
        ([*IN_A_STEP, "os.kill(os.getpid(), signal.SIGKILL)"], -signal.SIGKILL, "was killed (SIGKILL)"),
        (["SIGNS.call_seconds = 0.1", *IN_A_STEP, HANGS], 3, "gym:Env: step has not returned for 0.1 s"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else None,
)
def test_end_of_the_child_is_the_end_of_the_program_and_one_that_looks_like_success_is_none(
    body: list[str], exit_code: int, said: str, tmp_path: Path
) -> None:
    with watched(tmp_path, *body) as process:
        _, stderr = process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode == exit_code, stderr
    lines = stderr.splitlines()
    assert len(lines) == (1 if said else 0), stderr
    assert said in stderr
    if "crashed" in said or "returned" in said:
        log = (tmp_path / "output.log").read_text()
        assert said in log
        assert " in child" in log, "the stack"
        assert str(tmp_path / "output.log") in stderr


@pytest.mark.parametrize(
    ("body", "exit_code", "said"),
    [
        (
            ["os._exit(0)"],
            3,
            "gym:Env: step ended the process with exit code 0, as by os._exit, or by exit in a library",
        ),
        (["SIGNS.call_seconds = 1.0", HANGS], 3, "gym:Env: step has not returned for 1 s, and kept everything else"),
        (["SIGNS.call_seconds = 0.5", "time.sleep(3)", "return 0"], 0, ""),  # it waits, and keeps nothing
    ],
    ids=["exits", "hangs", "waits"],
)
def test_what_only_plays_is_watched_too_and_loses_nothing(
    body: list[str], exit_code: int, said: str, tmp_path: Path
) -> None:
    with watched(tmp_path, 'mark.begin("step")', *body, run="play_watched") as process:
        _, stderr = process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode == exit_code, stderr
    assert said in stderr
    assert "training" not in stderr
    assert "checkpoint" not in stderr


def test_interrupt_from_a_terminal_comes_once_to_what_only_plays(tmp_path: Path) -> None:
    body = [
        "try: say('ready'); time.sleep(1000)",
        "except KeyboardInterrupt: say('cleans up'); sys.stdin.readline()",
        "return 5",
    ]
    with watched(tmp_path, *body, run="play_watched") as process:
        assert line_of(process) == "ready"
        os.killpg(process.pid, signal.SIGINT)
        assert line_of(process) == "cleans up"
        assert process.wait(DEADLINE_SECONDS) == 5


@pytest.mark.parametrize("to_group", [False, True], ids=["to the watcher", "to the group"])
def test_signal_reaches_the_child_once(to_group: bool, tmp_path: Path) -> None:
    with watched(tmp_path, 'with RunSignals() as signals: say("ready"); return wait(signals)') as process:
        assert line_of(process) == "ready"
        send = os.killpg if to_group else os.kill
        send(process.pid, signal.SIGUSR1)
        assert line_of(process) == "SaveCheckpoint"
        send(process.pid, signal.SIGINT)
        assert line_of(process) == "Stop checkpoint"
        send(process.pid, signal.SIGUSR1)  # what it is answered by comes after any copy of the one before
        assert line_of(process) == "SaveCheckpoint"
        send(process.pid, signal.SIGINT)
        assert line_of(process) == "Stop now"
        assert process.wait(DEADLINE_SECONDS) == 130


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_to_be_asked_for_a_checkpoint_before_and_after_a_run_does_not_end_it(number: int, tmp_path: Path) -> None:
    body = [
        "say('starts'); os.read(0, 1)",
        "with RunSignals(): pass",
        "say('has ended'); os.read(0, 1)",
        "return 7",
    ]
    with watched(tmp_path, *body, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        for said in ("starts", "has ended"):
            assert line_of(process) == said
            os.killpg(process.pid, number)
            process.stdin.write("x")
            process.stdin.flush()
        assert process.wait(DEADLINE_SECONDS) == 7


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        [HANGS],
        ["while True: SIGNS.beat('main'); time.sleep(0.1)"],
        [*IN_A_STEP, HANGS],
        ['SIGNS.enter("over", 143)', HANGS],
    ],
    ids=["at the start", "at the start, answering", "in a step", "at the end"],
)
def test_sigterm_ends_within_five_seconds_what_does_not_end_by_itself(body: list[str], tmp_path: Path) -> None:
    with watched(tmp_path, "signal.signal(signal.SIGTERM, lambda *_: None)", 'say("ready")', *body) as process:
        assert line_of(process) == "ready"
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_SECONDS) == 143


def test_child_dies_with_the_process_that_watches_it(tmp_path: Path) -> None:
    body = ["say(os.getpid())", HANGS]
    with watched(tmp_path, *body) as process:
        child = int(line_of(process))
        process.kill()
        process.wait()
        deadline = time.monotonic() + DEADLINE_SECONDS
        while _lives(child):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def _lives(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
