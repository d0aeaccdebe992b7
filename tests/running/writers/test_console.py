"""The run on a stream, as text and as JSON lines."""

import io
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from rl_tui.engine.running.writers.console import ConsoleWriter, clock_time
from rl_tui.engine.session.codec import decode
from rl_tui.engine.session.messages import (
    BehaviorRolledBack,
    BehaviorStarted,
    BehaviorStateChanged,
    CheckpointFailed,
    CheckpointSaved,
    CommandAsked,
    CommandFinished,
    DevicesSampled,
    Envelope,
    EnvironmentAwaits,
    EnvironmentFailed,
    EnvironmentRestarted,
    EnvironmentRestarting,
    EpisodesFinished,
    ExportFailed,
    HyperparameterChanged,
    HyperparametersReported,
    LessonChanged,
    LogEmitted,
    MetricsReported,
    NoteAdded,
    PolicyExported,
    ProgressReported,
    RanksReported,
    RankStatus,
    RunStarted,
    RunStateChanged,
    TimeSplit,
    WarningCleared,
    WarningRaised,
    WorkerFailed,
)
from rl_tui.engine.session.sentences import summary
from tests.deadline import DEADLINE_SECONDS

SUMMARY = MetricsReported("3DBall", 12000, 20.0354, {}, 1.20288, 0.6924, None, True)
QUIET = (
    ProgressReported("B", 1, 1, 1.0, 1),
    TimeSplit("B", 1, 1, 1, 1, 1),
    DevicesSampled((), "no NVIDIA driver", 0, 1, 1, 1, 1, 1, 1),
    RanksReported((RankStatus(0, "a", "cpu", 10.0, 0.2), RankStatus(1, "a", "cpu", 10.0, 0.4))),
    EpisodesFinished("B", 1, 1, 1, 1, 1, 1),
    HyperparametersReported("B", {"beta": 0.1}),
    EnvironmentAwaits("unity:editor", ""),
)


def printed(*events, log_format="text", debug=False) -> list[str]:
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8")
    writer = ConsoleWriter(stream, log_format, debug=debug)
    for number, event in enumerate(events, start=1):
        writer.write(Envelope(number, 5.0, event))
    writer.close()
    return stream.buffer.getvalue().decode().splitlines()


def test_a_summary_reads_as_in_mlagents():
    assert printed(SUMMARY) == [
        "[INFO] 3DBall. Step: 12000. Time Elapsed: 20.035 s. Mean Reward: 1.203. Std of Reward: 0.692. Training."
    ]


def test_a_summary_of_self_play_ends_with_its_rating_as_in_mlagents():
    rated = replace(SUMMARY, metrics={**SUMMARY.metrics, "Self-play/ELO": 1241.2346})
    (said,) = printed(rated)
    assert said.endswith(" Mean Reward: 1.203. Std of Reward: 0.692. Training. ELO: 1241.235.")


def test_a_summary_without_episodes_reads_as_in_mlagents():
    event = MetricsReported("B", 1000, 1.0, {}, None, None, None, False)
    assert summary(event).line == (
        "B. Step: 1000. Time Elapsed: 1.000 s. No episode was completed since last summary. Not Training."
    )


def test_a_summary_of_what_learns_without_acting_has_its_losses():
    started = BehaviorStarted("B", "bc", "toy:line", 0, 1000, 1, 100, False, learns_offline=True)
    metrics = {"Losses/Cloning Loss": 0.25, "Losses/Held-Out Cloning Loss": 0.00125, "Policy/Learning Rate": 1e-3}
    event = MetricsReported("B", 1000, 1.0, metrics, None, None, None, True)
    text = "B. Step: 1000. Time Elapsed: 1.000 s. Cloning Loss: 0.25. Held-Out Cloning Loss: 0.00125. Training."
    assert printed(started, event) == [f"[INFO] {text}"]  # its start is held back until the run trains
    stream = io.StringIO()
    ConsoleWriter(stream, has_trained=True, offline=["B"]).write(Envelope(1, 5.0, event))
    assert stream.getvalue() == f"[INFO] {text}\n"


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (RunStateChanged("training"), "[INFO] Run training"),
        (BehaviorStateChanged("B", "failed", "its environment hung"), "[ERROR] B: failed: its environment hung"),
        (
            CheckpointSaved("B", 500, "results/a/B/B-500", "interval", 12.5, True, 1, 0.1),
            "[INFO] B: step 500 saved, return 12.5, best: results/a/B/B-500",
        ),
        (CheckpointFailed("B", 5, "asked", "disk full"), "[ERROR] B: step 5 not saved (asked): disk full"),
        (
            PolicyExported("B", 5, "results/a/B.onnx", 1.2e-7, 0.1),
            "[INFO] B: step 5 exported (max difference 1.2e-07): results/a/B.onnx",
        ),
        (ExportFailed("B", 5, "differs"), "[ERROR] B: step 5 not exported: differs"),
        (LogEmitted("warning", "B", "no effect"), "[WARNING] B: no effect"),
        (LogEmitted("info", "", "hello"), "[INFO] hello"),
        (
            EnvironmentFailed("gym:X", ("A", "B"), "hung"),
            "[ERROR] Environment failed, ending A, B: gym:X: hung",
        ),
        (
            EnvironmentRestarting("gym:X", 1, ("A", "B"), "gym:X, worker 1: step raised", "", 3),
            "[WARNING] Environment gym:X: worker 1, restart 3: step raised",
        ),
        (
            EnvironmentRestarted("gym:X", 1, 2.25),
            "[INFO] Environment gym:X: worker 1 acts again after 2.2 s",
        ),
        (EnvironmentAwaits("unity:editor", "press Play"), "[INFO] Environment unity:editor: press Play"),
        (CommandAsked("1f", "Pause", None), "[INFO] pause requested"),
        (CommandAsked("1f", "SaveCheckpoint", "B"), "[INFO] B: checkpoint requested"),
        (CommandAsked("1f", "Stop", None), "[INFO] stop requested"),
        (CommandFinished("1f", False, "the run is over"), "[ERROR] command 1f failed: the run is over"),
        (HyperparameterChanged("B", 5, "beta", 0.005, 0.25), "[INFO] B: beta 0.005 -> 0.25 from step 5"),
        (
            BehaviorRolledBack("B", 500, 900, "results/a/B/B-500"),
            "[WARNING] B: rolled back from step 900 to step 500: results/a/B/B-500",
        ),
        (
            LessonChanged("B", 5, "wall_height", 2, 3, "higher"),
            "[INFO] B: wall_height: lesson 2 of 3 (higher) from step 5",
        ),
        (LessonChanged("B", 5, "wall", 2, 3), "[INFO] B: wall: lesson 2 of 3 from step 5"),
        (NoteAdded("warmer\nnow"), "[INFO] Note: warmer now"),
        (NoteAdded("limps", "B"), "[INFO] Note on B: limps"),
        (
            WarningRaised("entropy", "B", "entropy 0.01 since step 5", "raise beta"),
            "[WARNING] B: entropy 0.01 since step 5; raise beta",
        ),
        (WarningRaised("disk", "", "the disk is nearly full", ""), "[WARNING] the disk is nearly full"),
        (WarningCleared("entropy", "B"), "[INFO] B: cleared: entropy"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_each_thing_that_happens_is_one_line(event, line):
    assert printed(event) == [line]


def test_outcome_of_a_command_says_which_one():
    assert printed(
        CommandAsked("1f", "Pause", None),
        CommandAsked("2e", "RollBack", "B"),
        CommandFinished("2e", False, "B has ended"),
        CommandFinished("1f", True, "A, B paused"),
    )[2:] == ["[ERROR] B: roll back failed: B has ended", "[INFO] pause done: A, B paused"]


def test_warning_that_has_passed_is_named_in_its_own_words():
    raised = WarningRaised("entropy", "B", "entropy 0.01 since step 5", "raise beta")
    assert printed(raised, WarningCleared("entropy", "B"))[1] == "[INFO] B: cleared: entropy 0.01 since step 5"


def test_the_reason_of_a_failed_run_is_printed_here_only_if_it_had_started():
    failed = RunStateChanged("failed", "no", 3)
    assert printed(failed) == ["[ERROR] Run failed (exit code 3)"]
    assert printed(RunStateChanged("training"), failed)[1] == "[ERROR] Run failed: no (exit code 3)"


def test_the_reason_of_a_failure_is_printed_once_unless_others_trained_on():
    failure = EnvironmentFailed("env", ("A", "B"), "step raised; no", "Traceback\nKeyError: 1\n")
    ended = [BehaviorStateChanged(name, "failed", "step raised; no") for name in "AB"]
    run_failed = RunStateChanged("failed", "step raised; no", 3)
    training = RunStateChanged("training")
    assert printed(training, failure, *ended, run_failed)[1:] == [
        "[ERROR] Environment failed, ending A, B: env: step raised; no",
        "Traceback",
        "KeyError: 1",
        "[ERROR] A: failed",
        "[ERROR] B: failed",
        "[ERROR] Run failed (exit code 3)",
    ]
    assert printed(training, *ended[:1], SUMMARY, run_failed)[-1] == "[ERROR] Run failed: step raised; no (exit code 3)"
    other = RunStateChanged("failed", "step raised; no; step 5 of B not saved", 3)
    assert printed(training, failure, other)[-1] == f"[ERROR] Run failed: {other.reason} (exit code 3)"


def test_what_only_moves_a_screen_has_no_line_of_text():
    assert printed(*QUIET) == []


def test_debug_lines_and_all_of_a_traceback_need_debug():
    calls = [f"  call {number}" for number in range(20)]
    detail = "\n".join(["Traceback (most recent call last):", *calls])
    events = LogEmitted("debug", "B", "detail"), EnvironmentFailed("gym:X", ("B",), "raised", detail)
    failed = "[ERROR] Environment failed, ending B: gym:X: raised"
    assert printed(*events) == [failed, "...", *calls[-12:]]
    at = clock_time(5.0)
    assert printed(*events, debug=True) == [f"{at} [DEBUG] B: detail", f"{at} {failed}", *detail.splitlines()]


def test_debug_says_when_how_long_and_where_the_time_goes():
    split = TimeSplit("3DBall", 12.04, 3.0, 4.5, 0.0, 0.46)
    devices = DevicesSampled((), "no NVIDIA driver", 0, 2, 2**30, 4 * 2**30, 1, 2**40, 1)
    saved = CheckpointSaved("3DBall", 500, "p", "interval", None, False, 2048, 0.0123)
    exported = PolicyExported("3DBall", 500, "p.onnx", 1e-7, 0.25)
    lines = printed(devices, devices, split, SUMMARY, saved, exported, debug=True)
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.000 \[", line) for line in lines)
    assert [line.partition("[DEBUG] ")[2] for line in lines if "[DEBUG]" in line] == [
        "machine: 2 CPUs, 3.0 GiB of memory free, 1.0 TiB of disk; no NVIDIA driver",
        "3DBall: seconds so far: environment 12.0, policy 3.0, updates 4.5, waiting 0.0, other 0.5",
        "3DBall: checkpoint of step 500: 2.0 KiB in 0.012 s",
        "3DBall: export of step 500: written and checked in 0.250 s",
    ]
    assert len(lines) == 7


def test_debug_says_with_each_summary_what_the_ranks_do():
    there = RankStatus(0, "gpu06", "cuda:0", 510.4, 0.38), RankStatus(1, "gpu07", "cuda:0", 509.6, 0.02)
    lines = printed(RanksReported(there), SUMMARY, debug=True)
    assert [line.partition("[DEBUG] ")[2] for line in lines if "[DEBUG]" in line] == [
        "ranks: 0 on gpu06 (cuda:0) 510 steps/s, waiting 38%, 1 on gpu07 (cuda:0) 510 steps/s, waiting 2%"
    ]
    here = tuple(replace(each, host="gpu06") for each in there)
    (line,) = [line for line in printed(RanksReported(here), SUMMARY, debug=True) if "[DEBUG]" in line]
    assert line.endswith("ranks: 0 (cuda:0) 510 steps/s, waiting 38%, 1 (cuda:0) 510 steps/s, waiting 2%")


def test_a_failed_worker_always_shows_its_traceback():
    assert printed(WorkerFailed("learner:B", "ValueError: no", "Traceback\n  in f\n")) == [
        "[ERROR] learner:B: failed: ValueError: no",
        "Traceback",
        "  in f",
    ]


def test_names_and_messages_cannot_steer_the_terminal():
    event = LogEmitted("info", "env", "\x1b]0;title\x07two\nlines\x1b[2J\u202e \x9b1m")
    assert printed(event) == ["[INFO] env: two lines "]


def test_run_has_started_once_it_trains():
    started = RunStarted("a", "results/a", 1, "cpu", True, {"torch": "2.13"})
    behavior = BehaviorStarted("B", "ppo", "gym:X", 500, 900, 8, 1000, False)
    doubt = LogEmitted("warning", "", "batch_size: too small")
    assert printed(started, doubt, behavior, RunStateChanged("training")) == [
        "[WARNING] batch_size: too small",
        "[INFO] Run a resumed in results/a (seed 1, cpu; torch 2.13)",
        "[INFO] B: ppo on gym:X from step 500 of 900, 8 agents, 1000 parameters, not threaded",
        "[INFO] Run training",
    ]
    acting = BehaviorStarted("B", "ppo", "gym:X", 0, 0, 8, 1000, False)
    assert printed(acting, RunStateChanged("training"))[0] == (
        "[INFO] B: ppo on gym:X, inference only, 8 agents, 1000 parameters, not threaded"
    )


def test_run_that_fails_at_its_start_has_not_started():
    started = RunStarted("a", "results/a", 1, "cpu", True, {"torch": "2.13"})
    doubt = LogEmitted("warning", "", "batch_size: too small")
    failed = RunStateChanged("failed", "no such environment", 2)
    assert printed(started, doubt, failed) == [
        "[WARNING] batch_size: too small",
        "[ERROR] Run failed (exit code 2)",
    ]


def test_json_has_every_event_and_ends_with_the_exit_code():
    events = (RunStarted("a", "p", 1, "cpu", False, {}), *QUIET, SUMMARY, RunStateChanged("finished", "", 0))
    envelopes = [decode(line) for line in printed(*events, log_format="json")]
    assert [envelope.event for envelope in envelopes] == list(events)
    assert envelopes[-1].event.exit_code == 0


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_name_can_be_printed_in_any_encoding(encoding):
    stream = io.TextIOWrapper(io.BytesIO(), encoding)
    writer = ConsoleWriter(stream)
    writer.write(Envelope(1, 0.0, LogEmitted("info", "漢", "Größe \ud800")))
    assert writer.failed is None
    assert stream.buffer.getvalue().startswith(b"[INFO] ")


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_reader_that_left_ends_the_writing_and_not_the_run(log_format):
    reader, writer_end = os.pipe()
    os.close(reader)
    stream = os.fdopen(writer_end, "w")
    writer = ConsoleWriter(stream, log_format)
    for number in range(3):
        writer.write(Envelope(number, 0.0, SUMMARY))
        assert writer.failed == "Broken pipe"
    writer.close()
    with pytest.raises(BrokenPipeError):
        stream.close()  # the lines that were not read


def test_a_closed_stream_ends_the_writing_and_not_the_run():
    stream = io.StringIO()
    stream.close()
    writer = ConsoleWriter(stream)
    writer.write(Envelope(1, 0.0, SUMMARY))
    assert writer.failed is not None


def test_every_line_can_be_read_as_soon_as_it_is_written():
    program = (
        "import sys; from rl_tui.engine.running.writers.console import ConsoleWriter\n"
        "from rl_tui.engine.session.messages import *\n"
        "writer = ConsoleWriter(sys.stdout, 'json')\n"
        "writer.write(Envelope(1, 0.0, LogEmitted('info', '', 'first')))\n"
        "sys.stdin.readline()\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert decode(process.stdout.readline()).event.message == "first"
        process.communicate("\n", timeout=DEADLINE_SECONDS)
    assert process.returncode == 0
