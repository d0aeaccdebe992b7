"""events.jsonl: written, torn, continued and replayed."""

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_tui.engine.session.messages import (
    BehaviorStarted,
    BehaviorStateChanged,
    DevicesSampled,
    Envelope,
    EpisodesFinished,
    LogEmitted,
    ProgressReported,
    RunStarted,
    RunStateChanged,
    TimeSplit,
    Worker,
    WorkersSampled,
)
from rl_tui.engine.session.view import RunView
from rl_tui.engine.storage.event_log import JsonLinesWriter, last_epoch, read_events
from tests.deadline import DEADLINE_SECONDS

RUN = RunStarted("a", "results/a", 1, "cpu", False, {})


def log(text: object) -> LogEmitted:
    return LogEmitted("info", "", str(text))


def progress(step: int, name: str = "B") -> ProgressReported:
    return ProgressReported(name, step, step, 1.0, step)


def episodes(step: int) -> EpisodesFinished:
    return EpisodesFinished("B", step, 1, 1.0, 1.0, 1.0, 1.0)


def written(path: Path, *events, append: bool = False, seconds: float = 1.0, epoch: int = 1) -> list[Envelope]:
    """Write the events as one process would, `seconds` apart, and return their envelopes. epoch: 0 as earlier versions
    did, the reader counts them."""
    writer = JsonLinesWriter(path, append)
    envelopes = [Envelope(n, 100.0 + n * seconds, event, epoch) for n, event in enumerate(events, start=1)]
    for envelope in envelopes:
        writer.write(envelope)
    writer.close()
    assert writer.failed is None
    return envelopes


def test_what_was_written_is_read(tmp_path):
    path = tmp_path / "results" / "a" / "events.jsonl"
    assert written(path, RUN, log("one"), episodes(1), RunStateChanged("finished", "", 0)) == list(read_events(path))


def test_flushing_makes_lines_whole_for_every_reader(tmp_path):
    path = tmp_path / "events.jsonl"
    writer = JsonLinesWriter(path, append=False)
    writer.write(Envelope(1, 0.0, RUN))
    assert not path.exists()
    writer.flush()
    assert len(list(read_events(path))) == 1
    writer.write(Envelope(2, 0.0, log("later")))
    assert len(list(read_events(path))) == 1
    writer.close()
    assert len(list(read_events(path))) == 2


def test_a_file_without_events_is_not_made(tmp_path):
    JsonLinesWriter(tmp_path / "events.jsonl", append=True).close()
    assert list(tmp_path.iterdir()) == []


def test_a_new_run_empties_the_file(tmp_path):
    path = tmp_path / "events.jsonl"
    written(path, RUN, log("old"))
    written(path, RUN)
    assert [envelope.event for envelope in read_events(path)] == [RUN]


@pytest.mark.parametrize("epochs", [(0, 0, 0), (0, 0, 3), (1, 2, 3), (2, 4, 7), (0, 5, 6)])
def test_each_process_is_an_epoch(tmp_path, epochs):
    """In logs of earlier versions (0) they are counted."""
    path = tmp_path / "events.jsonl"
    resumed = RunStarted("a", "results/a", 1, "cpu", True, {})
    written(path, RUN, log(1), log(2), epoch=epochs[0])
    written(path, resumed, log(3), append=True, epoch=epochs[1])
    written(path, log("before"), resumed, progress(1), append=True, epoch=epochs[2])
    found = [own or counted for own, counted in zip(epochs, (1, 2, 3), strict=True)]
    expected = [
        (epoch, number) for epoch, count in zip(found, (3, 2, 3), strict=True) for number in range(1, count + 1)
    ]
    assert [(envelope.epoch, envelope.number) for envelope in read_events(path)] == expected
    assert last_epoch(path) == found[2]
    with path.open("ab") as file:
        file.write(b'{"v": 1, "e": 99, "n": ')
    assert last_epoch(path) == found[2], "a torn line does not count"


def test_a_log_without_events_has_no_epoch(tmp_path):
    path = tmp_path / "events.jsonl"
    assert last_epoch(path) == 0
    path.touch()
    assert last_epoch(path) == 0


@given(st.integers(1, 300))
def test_a_torn_last_line_is_left_out_and_cut_off_when_the_run_is_resumed(tmp_path_factory, num_bytes):
    path = tmp_path_factory.mktemp("torn") / "events.jsonl"
    events = [RUN, *(log(i) for i in range(5))]
    written(path, *events)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(path.read_bytes()[: -min(num_bytes, len(b"".join(lines)))])
    left = list(read_events(path))
    whole = path.read_bytes().count(b"\n")
    assert len(left) in {whole, whole + 1}  # the last line may lack nothing but its newline
    written(path, RUN, append=True)
    assert [e.event for e in read_events(path)] == [*events[:whole], RUN]


@pytest.mark.parametrize("tail", [b"\x00" * 200_000, b'{"v": 1, "n": ', b"\xff\xfe", b"x" * 65_536])
def test_any_torn_tail_is_cut_off(tmp_path, tail):
    path = tmp_path / "events.jsonl"
    written(path, RUN, log(1))
    with path.open("ab") as file:
        file.write(tail)
    assert len(list(read_events(path))) == 2
    written(path, log(2), append=True, epoch=2)
    assert [(e.epoch, e.number) for e in read_events(path)] == [(1, 1), (1, 2), (2, 1)]


def test_a_bad_line_elsewhere_is_named(tmp_path):
    path = tmp_path / "events.jsonl"
    written(path, RUN, log(1))
    path.write_text(path.read_text().replace("RunStarted", "RunStart"))
    with pytest.raises(ValueError, match=r"events\.jsonl:1: "):
        list(read_events(path))


def test_deltas_are_thinned_and_the_file_stays_small(tmp_path):
    path = tmp_path / "events.jsonl"
    devices = DevicesSampled((), "no NVIDIA driver", 0, 1, 1, 1, 1, 1, 1)
    split = TimeSplit("B", 1, 1, 1, 1, 1)
    workers = [WorkersSampled("gym:X", (name,), (Worker(0, 7, 1.0, 0.0, 0, 0, 1),)) for name in "BC"]
    written(path, *[progress(1), progress(1, "C"), devices, split, *workers] * 1000, seconds=0.25 / 6)  # 250 s
    kinds = [json.loads(line)["event"] for line in path.read_text().splitlines()]
    assert kinds.count("ProgressReported") == pytest.approx(250, abs=4)  # every 2 s for each of two behaviors
    assert kinds.count("DevicesSampled") == pytest.approx(25, abs=2)
    assert kinds.count("TimeSplit") == pytest.approx(25, abs=2)
    assert kinds.count("WorkersSampled") == pytest.approx(50, abs=4), "of each of two environments"


EVENTS = st.one_of(
    st.builds(progress, st.integers(0, 100), st.sampled_from("BC")),
    st.builds(episodes, st.integers(0, 100)),
    st.builds(TimeSplit, st.sampled_from("BC"), *[st.floats(0, 9)] * 5),
    st.builds(log, st.integers()),
    st.just(BehaviorStateChanged("B", "training")),
    st.just(BehaviorStarted("B", "ppo", "gym:X", 5, 10, 1, 1, False)),
)


@given(st.lists(EVENTS, max_size=40), st.sampled_from([0.1, 1.0, 5.0]))
def test_the_replayed_view_ends_equal_to_the_live_one(tmp_path_factory, events, seconds):
    path = tmp_path_factory.mktemp("replay") / "events.jsonl"
    live, replayed = RunView(), RunView()
    for envelope in written(path, RUN, *events, RunStateChanged("finished", "", 0), seconds=seconds):
        live.apply(envelope)
    for envelope in read_events(path):
        replayed.apply(envelope)
    assert live == replayed


def test_a_pipe_in_the_place_of_the_file_is_reported_and_does_not_raise_or_wait(tmp_path):
    os.mkfifo(tmp_path / "events.jsonl")
    writer = JsonLinesWriter(tmp_path / "events.jsonl", append=False)
    for number in range(3):
        writer.write(Envelope(number, 0.0, log(number)))
        writer.flush()
    writer.close()
    assert writer.failed is not None
    assert "events.jsonl" in writer.failed


def test_lines_stay_whole_when_space_returns(tmp_path):
    """In a process of its own, because a limit on file sizes counts for a whole process."""
    program = """
import resource, signal, sys
from pathlib import Path
from rl_tui.engine.storage.event_log import JsonLinesWriter
from rl_tui.engine.session.messages import Envelope, LogEmitted
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
writer = JsonLinesWriter(Path(sys.argv[1]), append=False)
for number in range(1, 31):
    limit = 1000 if 10 < number <= 20 else resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    writer.write(Envelope(number, 0.0, LogEmitted("info", "", "x" * 50)))
    writer.flush()
assert "File too large" in writer.failed, writer.failed
writer.close()
"""
    path = tmp_path / "events.jsonl"
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, timeout=DEADLINE_SECONDS)
    numbers = [envelope.number for envelope in read_events(path)]
    assert numbers == [*range(1, numbers.index(21) + 1), *range(21, 31)]
    assert numbers != list(range(1, 31))


def test_a_folder_that_cannot_be_made_is_reported_and_does_not_raise(tmp_path):
    (tmp_path / "results").write_text("a file stands where the folder should be")
    writer = JsonLinesWriter(tmp_path / "results" / "events.jsonl", append=True)
    writer.write(Envelope(1, 0.0, RUN))
    writer.close()
    assert writer.failed is not None


def test_a_killed_writer_leaves_a_file_that_can_be_continued(tmp_path):
    program = """
import sys
from pathlib import Path
from rl_tui.engine.storage.event_log import JsonLinesWriter
from rl_tui.engine.session.messages import Envelope, LogEmitted
writer = JsonLinesWriter(Path(sys.argv[1]), append=True)
print("ready", flush=True)
number = 0
while True:
    number += 1
    writer.write(Envelope(number, 0.0, LogEmitted("info", "", "x" * 3000)))
    writer.flush()
"""
    path = tmp_path / "events.jsonl"
    for _ in range(3):
        command = [sys.executable, "-c", program, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            deadline = time.monotonic() + DEADLINE_SECONDS
            before = path.stat().st_size if path.exists() else 0
            while (path.stat().st_size if path.exists() else 0) <= before:
                assert time.monotonic() < deadline
            os.kill(process.pid, signal.SIGKILL)
        numbers = [envelope.number for envelope in read_events(path)]
        starts = [*(at for at, number in enumerate(numbers) if number == 1), len(numbers)]
        assert all(numbers[one:other] == list(range(1, other - one + 1)) for one, other in pairwise(starts))
