"""What environments print and raise has limits, and what is cut is kept in a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from rl_tui.engine.running.log_limits import LogLimits
from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.sampling.environments.unity.player import LaunchPlan, Player
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import EnvironmentFailed, LogEmitted, ProgressReported, RunStateChanged
from tests.running.runs import behavior, configuration, run_to_end

LONG = "<" + "é" * 1_000_000 + ">"


class Wordy(Line):
    """An environment that says too much when it fails."""

    def __init__(self) -> None:
        super().__init__("Walker", 4)

    def step(self, actions: object) -> object:
        raise ValueError(LONG)


def test_long_text_of_an_event_is_cut_in_its_middle_and_says_where_it_is_whole() -> None:
    bus, kept = EventBus(), list[str]()
    bus.keep_whole = lambda text: kept.append(text) or "run_logs/messages.log"
    mail = bus.subscribe()
    bus.publish(EnvironmentFailed("gym", ("A",), "short", LONG))
    (envelope,) = mail.drain()
    event = envelope.event
    assert isinstance(event, EnvironmentFailed)
    assert event.reason == "short"
    assert len(event.detail.encode()) < 65_000
    assert event.detail.startswith("<é")
    assert event.detail.endswith("é>")
    assert "1936002 bytes are left out here; the whole text is in run_logs/messages.log" in event.detail
    assert kept == [LONG]


def test_names_are_never_cut() -> None:
    """They say what an event is about: a reader that knows the behavior would take a cut one for another."""
    bus = EventBus()
    mail = bus.subscribe()
    event = ProgressReported(LONG, 1, 1, 1.0, 1)
    bus.publish(event)
    bus.publish(LogEmitted("info", LONG, LONG))
    progress, log = (envelope.event for envelope in mail.drain())
    assert progress is event
    assert isinstance(log, LogEmitted)
    assert log.source == LONG
    assert len(log.message.encode()) < 65_000


def test_run_that_fails_with_a_long_message_has_short_events_and_the_whole_message_in_a_file(tmp_path: Path) -> None:
    run = run_to_end(configuration(tmp_path, {"Walker": behavior()}, "tests.running.test_log_limits:Wordy"))
    (ended,) = [event for event in run.of(RunStateChanged) if event.exit_code is not None]
    assert ended.exit_code == 3
    assert "run_logs/messages.log" in ended.reason
    lines = (run.folder / "events.jsonl").read_text().splitlines()
    assert max(len(value) for line in lines for value in json.loads(line).values() if isinstance(value, str)) < 65_000
    assert LONG in (run.folder / "run_logs/messages.log").read_text()


def test_full_log_is_emptied_while_another_process_goes_on_writing_to_it(tmp_path: Path) -> None:
    said = list[str]()
    limits = LogLimits(tmp_path, said.append, largest=1000)
    with (tmp_path / "worker-0.log").open("ab") as log:
        writer = subprocess.Popen([sys.executable, "-c", "while input(): print('x' * 998, flush=True)"],
                                  stdin=subprocess.PIPE, stdout=log, text=True)  # fmt: skip
        assert writer.stdin is not None
        for _ in range(3):
            writer.stdin.write("more\n")
        writer.stdin.write("\n")
        writer.stdin.close()
        writer.wait()
        limits.check()
        assert (tmp_path / "worker-0.log.1").stat().st_size == 3 * 999
        assert (tmp_path / "worker-0.log").stat().st_size == 0
        os.write(log.fileno(), b"next\n")
    limits.check()
    assert (tmp_path / "worker-0.log").read_text() == "next\n"
    (line,) = said
    assert "worker-0.log: full at" in line
    assert "worker-0.log.1" in line


UNITY = """
import sys
with open(sys.argv[1], "wb", buffering=0) as log:
    for line in sys.stdin:
        letter, count = line.split()
        print(log.write(letter.encode() * int(count)), flush=True)
"""


def test_full_log_of_a_player_is_emptied_too_though_unity_does_not_append_to_it(tmp_path: Path) -> None:
    said = list[str]()
    limits, log = LogLimits(tmp_path, said.append, largest=100_000), tmp_path / "Player-0.log"
    program = [sys.executable, "-c", UNITY, str(log)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as player:
        assert player.stdin is not None
        assert player.stdout is not None
        for letter, count in (("a", 150_000), ("b", 160_000), ("c", 10)):
            player.stdin.write(f"{letter} {count}\n")
            player.stdin.flush()
            player.stdout.readline()
            limits.check()
        player.stdin.close()
    assert (tmp_path / "Player-0.log.1").read_bytes() == b"b" * 160_000, "and none of the zeros before it"
    assert log.read_bytes().endswith(b"\0cccccccccc")
    assert 512 * log.stat().st_blocks < 100_000
    assert ["Player-0.log: full at" in line for line in said] == [True, True]
    plan = LaunchPlan(Path("game"), 0, log_folder=tmp_path)
    assert Player(plan).tail() == f"{log}:\ncccccccccc", "what an error shows of it"
