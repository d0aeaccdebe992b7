"""What runs left: summaries, names, and files that are broken in every way."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.session.codec import SCHEMA_VERSION, encode
from rl_tui.engine.session.messages import (
    AddNote,
    BehaviorRolledBack,
    BehaviorStarted,
    CheckpointRemoved,
    CheckpointSaved,
    DevicesSampled,
    Envelope,
    EpisodesFinished,
    Event,
    LeagueReported,
    LogEmitted,
    MetricsReported,
    ProgressReported,
    RunStarted,
    RunStateChanged,
    SaveCheckpoint,
)
from rl_tui.engine.session.summaries import BehaviorSummary, RunSummary, plain
from rl_tui.engine.session.view import RunView
from rl_tui.engine.storage.archive import Archive
from rl_tui.engine.storage.event_log import read_events
from rl_tui.engine.storage.run_folder import RunFolder
from rl_tui.engine.storage.run_summary import HEAD_BYTES, LONG_TAIL_BYTES, TAIL_BYTES, summarize
from tests.deadline import DEADLINE_SECONDS
from tests.running.runs import behavior, configuration, live, run_to_end

ROOT = Path(__file__).parents[2]
T = 1_000_000.0


def started(name: str = "Walker", step: int = 0) -> BehaviorStarted:
    return BehaviorStarted(name, "ppo", "toy:line", step, 1000, 8, 5000, False)


def episodes(step: int, mean: float, count: int = 100, name: str = "Walker") -> EpisodesFinished:
    return EpisodesFinished(name, step, count, mean, mean, mean, 10.0)


def progress(step: int, name: str = "Walker") -> ProgressReported:
    return ProgressReported(name, step, step, 100.0, 1)


RUN = RunStarted("first", "results/first", 1, "cpu", False, {})
DEVICES = DevicesSampled((), "no NVIDIA driver", 1.0, 2, 1, 2, 3, 4, 5)
TRAINING = RunStateChanged("training")
END = RunStateChanged("finished", "", 0)


def lines(*events: Event, start: float = T, seconds: float = 1.0) -> str:
    """A file of these events, one every so many seconds."""
    return "".join(encode(Envelope(n, start + (n - 1) * seconds, event)) + "\n" for n, event in enumerate(events, 1))


def make_run(results: Path, name: str, events: str) -> Path:
    folder = results / name
    folder.mkdir(parents=True)
    (folder / "configuration.yaml").write_text("behaviors: {}\n")
    (folder / "events.jsonl").write_text(events)
    return folder


def summary_of(folder: Path) -> RunSummary:
    summary = summarize(folder)
    assert summary is not None
    return summary


# ---------------------------------------------------------------------------------------------------- real runs


def test_a_real_run_is_summarized_as_it_ended(tmp_path: Path) -> None:
    run = run_to_end(configuration(tmp_path, {"Line": behavior()}))
    archive = Archive(tmp_path / "results")
    (summary,) = archive.runs()
    (line,) = summary.behaviors
    saved = run.of(CheckpointSaved)
    assert (summary.run_id, summary.state, summary.is_alive, summary.exit_code) == ("run", "finished", False, 0)
    assert summary.note == ""
    assert (line.name, line.algorithm, line.max_steps) == ("Line", "ppo", 512)
    assert line.step == run.of(ProgressReported)[-1].step == saved[-1].step
    assert line.best_return == max(event.mean_return for event in saved if event.mean_return is not None)
    assert line.last_return is not None
    assert summary.started_at == run.mail[0].time
    assert summary.last_event_at == run.mail[-1].time
    assert summary.elapsed_seconds is not None
    assert 0 < summary.elapsed_seconds < 60
    assert [envelope.event for envelope in archive.events("run")][-1] == run.events[-1]
    assert "Line" in archive.configuration("run")


def test_a_resume_that_was_refused_leaves_the_run_as_it_was(tmp_path: Path) -> None:
    run = run_to_end(configuration(tmp_path, {"Line": behavior()}))
    other = {"Line": behavior(network_settings__hidden_units=16)}
    assert run_to_end(configuration(tmp_path, other, checkpoint_settings={"resume": True})).launch.exit_code == 7
    summary = summary_of(run.folder)
    assert (summary.state, summary.exit_code) == ("finished", 0)


def test_a_live_run_is_alive_and_one_that_ended_is_not(tmp_path: Path) -> None:
    endless = configuration(tmp_path, {"Line": behavior(max_steps=10**9)})
    with live(endless) as run:
        run.wait_for(ProgressReported, lambda event: event.step > 0)
        run.send(SaveCheckpoint())  # so that earlier events are in the file
        deadline = time.monotonic() + DEADLINE_SECONDS
        while (summary := summary_of(run.folder)).state != "training" and time.monotonic() < deadline:
            time.sleep(0.05)
        assert (summary.state, summary.is_alive, summary.exit_code) == ("training", True, None)
    summary = summary_of(run.folder)
    assert (summary.state, summary.is_alive, summary.exit_code) == ("stopped", False, 0)


HOLD = """
import sys
from pathlib import Path
from rl_tui.engine.storage.run_folder import RunFolder
RunFolder(Path(sys.argv[1]), sys.argv[2]).open(resume=True)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_killed_run_is_interrupted_and_was_alive_until_then(tmp_path: Path) -> None:
    make_run(tmp_path, "first", lines(RUN, started(), TRAINING, progress(500), episodes(500, 3.0)))
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path), "first"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        alive = summary_of(tmp_path / "first")
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=DEADLINE_SECONDS)
    dead = summary_of(tmp_path / "first")
    assert (alive.state, alive.is_alive) == ("training", True)
    assert (dead.state, dead.is_alive, dead.exit_code) == ("interrupted", False, None)
    assert dead.behaviors == alive.behaviors == (BehaviorSummary("Walker", "ppo", 500, 1000, None, 3.0, "toy:line"),)


def test_looking_at_a_run_does_not_block_its_writer(tmp_path: Path) -> None:
    with RunFolder(tmp_path, "first") as folder:
        folder.open()
    summarize(tmp_path / "first")
    with RunFolder(tmp_path, "first") as folder:
        folder.open(resume=True)


# ---------------------------------------------------------------------------------------------------- summaries


def test_runs_come_newest_first(tmp_path: Path) -> None:
    for name, start in (("middle", T + 100), ("oldest", T), ("newest", T + 200)):
        make_run(tmp_path, name, lines(RUN, END, start=start))
    assert [run.run_id for run in Archive(tmp_path).runs()] == ["newest", "middle", "oldest"]


def test_a_long_file_is_read_at_its_ends_only(tmp_path: Path) -> None:
    """Behaviors, their limits and the start come from the head, everything else from the tail."""
    middle = lines(*(LogEmitted("info", "", "x" * 1000) for _ in range(2 * LONG_TAIL_BYTES // 1000)))
    head = lines(RUN, started(), started("Crawler"), TRAINING, episodes(10, -1000.0), progress(10))
    tail = lines(progress(700), episodes(701, 50.0, 60), episodes(702, 100.0, 60), progress(710), start=T + 9000)
    folder = make_run(tmp_path, "first", head + middle + tail)
    assert folder.joinpath("events.jsonl").stat().st_size > 2 * LONG_TAIL_BYTES
    summary = summary_of(folder)
    assert summary.started_at == T
    assert summary.last_event_at == T + 9003
    assert summary.elapsed_seconds == 9003.0
    assert summary.behaviors == (
        BehaviorSummary("Walker", "ppo", 710, 1000, None, 80.0, "toy:line"),
        BehaviorSummary("Crawler", "ppo", 0, 1000, None, None, "toy:line"),
    )
    assert summary.state == "interrupted"


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="needs sparse files")
def test_a_file_of_gigabytes_costs_nothing(tmp_path: Path) -> None:
    folder = make_run(tmp_path, "first", lines(RUN, started(), TRAINING))
    with (folder / "events.jsonl").open("r+b") as file:
        file.truncate(2 << 30)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + lines(progress(900), END, start=T + 100).encode())
    began = time.thread_time()
    summary = summary_of(folder)
    assert time.thread_time() - began < 0.1
    assert (summary.state, summary.behaviors[0].step) == ("finished", 900)


def test_the_best_checkpoint_and_a_step_come_from_the_status_where_events_are_silent(tmp_path: Path) -> None:
    noise = lines(*(LogEmitted("info", "", "x" * 1000) for _ in range(2 * LONG_TAIL_BYTES // 1000)))
    folder = make_run(tmp_path, "first", lines(RUN, started(), TRAINING) + noise + lines(END))
    list_checkpoints(folder, {100: 5.0, 200: 9.0, 300: None, 400: 7.0})
    assert summary_of(folder).behaviors == (BehaviorSummary("Walker", "ppo", 400, 1000, 9.0, 7.0, "toy:line"),)


def test_a_resumed_run_is_not_over_because_it_once_was(tmp_path: Path) -> None:
    events = lines(RUN, started(), TRAINING, progress(600), END) + lines(RUN, started(step=500), start=T + 5000)
    summary = summary_of(make_run(tmp_path, "first", events))
    assert (summary.state, summary.exit_code) == ("interrupted", None)
    assert summary.behaviors[0].step == 500
    assert (summary.started_at, summary.elapsed_seconds) == (T, 1.0)


def test_a_run_that_was_resumed_twice_shows_its_newest_max_steps(tmp_path: Path) -> None:
    for steps in (128, 256, 384):
        noisy = behavior(max_steps=steps, checkpoint_interval=64)
        run = run_to_end(
            configuration(tmp_path, {"Walker": noisy}, checkpoint_settings={"resume": steps > 128}),
            *(AddNote("x" * 400) for _ in range(80)),
        )
    summary = summarize(run.folder)
    assert summary is not None
    assert (run.folder / "events.jsonl").stat().st_size > HEAD_BYTES + TAIL_BYTES
    assert summary.behaviors[0].max_steps == 384


def test_a_process_that_only_plays_does_not_train_what_was_interrupted(tmp_path: Path) -> None:
    folder = make_run(tmp_path, "first", lines(RUN, started(), TRAINING, progress(600)))
    (folder / "inference.jsonl").write_text(lines(RUN))
    with RunFolder(tmp_path, "first") as run:
        run.open(resume=True)
        summary = summary_of(folder)
    assert (summary.state, summary.is_alive) == ("interrupted", True)


def test_time_of_a_resumed_run_is_its_newest_processes(tmp_path: Path) -> None:
    noise = lines(*(LogEmitted("info", "", "x" * 1000) for _ in range(2 * LONG_TAIL_BYTES // 1000)))
    summaries = MetricsReported("Walker", 600, 30.0, {}, None, None, None, True)
    tail = lines(summaries, progress(610), start=T + 9000)
    assert summary_of(make_run(tmp_path, "first", lines(RUN, started()) + noise + tail)).elapsed_seconds == 31.0


def test_a_rolled_back_behavior_has_the_step_of_its_checkpoint(tmp_path: Path) -> None:
    events = lines(RUN, started(), episodes(900, -50.0), BehaviorRolledBack("Walker", 300, 900, "x"))
    (walker,) = summary_of(make_run(tmp_path, "first", events)).behaviors
    assert (walker.step, walker.last_return) == (300, None)


def test_rating_is_that_of_the_newest_policy(tmp_path: Path) -> None:
    rated = [LeagueReported("Walker", step, 1200.0 + step / 100, 0, True, (0, 1), 9, ()) for step in (500, 900)]
    (walker,) = summary_of(make_run(tmp_path, "first", lines(RUN, started(), *rated))).behaviors
    assert (walker.step, walker.rating) == (900, 1209.0)
    rolled = lines(RUN, started(), *rated, BehaviorRolledBack("Walker", 300, 900, "x"))
    (walker,) = summary_of(make_run(tmp_path, "second", rolled)).behaviors
    assert (walker.step, walker.rating) == (300, None)


def list_checkpoints(folder: Path, returns: Mapping[int, float | None]) -> None:
    """training_status.json names checkpoints of these steps and returns."""
    entries = [
        {"steps": step, "reward": reward, "file_path": "", "creation_time": 1.0, "auxillary_file_paths": []}
        for step, reward in returns.items()
    ]
    (folder / "run_logs").mkdir()
    status = {"Walker": {"checkpoints": entries}, "metadata": {"stats_format_version": "0.3.0"}}
    (folder / "run_logs" / "training_status.json").write_text(json.dumps(status))


def checkpoint(step: int, mean: float) -> CheckpointSaved:
    return CheckpointSaved("Walker", step, f"results/first/Walker/{step}", "interval", mean, True, 1, 0.1)


def numbers(folder: Path) -> tuple[object, ...]:
    """Step, best and last return of the only behavior, as the list of runs has them."""
    (walker,) = summary_of(folder).behaviors
    return walker.step, walker.best_return, walker.last_return


def on_screen(folder: Path) -> tuple[object, ...]:
    """The same as a screen has them."""
    view = RunView()
    for envelope in read_events(folder / "events.jsonl"):
        view.apply(envelope)
    (walker,) = view.behaviors.values()
    return walker.step, walker.best_return, walker.mean_return


@pytest.mark.parametrize("last", [episodes(950, 30.0, 1), episodes(950, 500.0, 40), episodes(950, float("nan"), 3)])
def test_the_list_has_the_numbers_of_the_screen(tmp_path: Path, last: Event) -> None:
    """Also where a hundred episodes take more of the file than its last lines, and after a roll back."""
    slow = [
        event for n in range(150) for event in (*(progress(600 + n) for _ in range(4)), episodes(600 + n, float(n), 1))
    ]
    published = [
        RUN,
        started(),
        TRAINING,
        episodes(100, 9.0),
        checkpoint(100, 9.0),
        *slow,
        checkpoint(750, 99.0),
        progress(950),
        last,
    ]
    given_up = [
        CheckpointRemoved("Walker", 750, "results/first/Walker/750"),
        BehaviorRolledBack("Walker", 100, 950, "results/first/Walker/100"),
        progress(120),
        episodes(120, 8.0, 5),
    ]
    stories = {"a": (published, {100: 9.0, 750: 99.0}), "b": ([*published, *given_up], {100: 9.0})}
    for name, (events, on_disk) in stories.items():
        folder = make_run(tmp_path, name, lines(*events))
        list_checkpoints(folder, on_disk)
        assert folder.joinpath("events.jsonl").stat().st_size > 3 * TAIL_BYTES
        assert numbers(folder) == pytest.approx(on_screen(folder), nan_ok=True)
    assert numbers(folder) == (120, 9.0, 8.0)


@pytest.mark.parametrize(("last", "state"), [(progress(700), "training"), (DEVICES, "paused")])
def test_what_a_live_run_does_shows_where_its_state_was_published_long_ago(
    tmp_path: Path, last: Event, state: str
) -> None:
    noise = lines(*(DEVICES for _ in range(2 * LONG_TAIL_BYTES // 200)))
    make_run(tmp_path, "first", lines(RUN, started(), TRAINING) + noise + lines(last))
    with RunFolder(tmp_path, "first") as folder:
        folder.open(resume=True)
        assert summary_of(tmp_path / "first").state == state


def test_a_run_that_has_not_published_anything_is_starting(tmp_path: Path) -> None:
    with RunFolder(tmp_path, "first") as folder:
        folder.open()
        summary = summary_of(tmp_path / "first")
    assert (summary.state, summary.is_alive, summary.note) == ("starting", True, "no events.jsonl")


# ---------------------------------------------------------------------------------------------------- garbage


def test_a_folder_without_events_is_listed_with_a_note(tmp_path: Path) -> None:
    folder = make_run(tmp_path, "old", "")
    (folder / "events.jsonl").unlink()
    summary = summary_of(folder)
    assert (summary.state, summary.behaviors, summary.started_at) == ("unknown", (), None)
    assert summary.note == "no events.jsonl"


@pytest.mark.parametrize(
    "content", ["", "\n\n", "garbage\n", "\x00" * 500, '{"v": 2, "t": 1}\n', "[" * 5000, "[]\n3\n"]
)
def test_a_file_without_events_is_said_to_have_none(tmp_path: Path, content: str) -> None:
    summary = summary_of(make_run(tmp_path, "first", content))
    assert summary.state == "unknown"
    assert summary.note.startswith("events.jsonl ")


def test_torn_and_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    events = lines(RUN, started()) + "garbage\n\xff\n{}\n" + lines(progress(7)) + encode(Envelope(9, T, END))[:-20]
    summary = summary_of(make_run(tmp_path, "first", events))
    assert (summary.state, summary.behaviors[0].step, summary.note) == ("interrupted", 7, "")


def test_numbers_of_any_size_can_be_listed(tmp_path: Path) -> None:
    huge = (
        '{"v": 1, "t": 1, "event": "EpisodesFinished", "behavior": "B", "step": 5, "count": 1%s, "mean_return": 1%s}\n'
    )
    huge += '{"v": 1, "t": 1%s, "event": "ProgressReported", "behavior": "B", "step": 1%s}\n'
    folder = make_run(tmp_path, "first", lines(RUN) + huge.replace("%s", "0" * 400))
    (summary,) = Archive(tmp_path).runs()
    assert summary == summary_of(folder)
    assert summary.behaviors == (BehaviorSummary("B", "", 5, 0, None, None),)


def test_a_status_that_is_none_is_named(tmp_path: Path) -> None:
    for number, content in enumerate(
        ["", "[]", "{", '{"W": 1}', '{"W": {"checkpoints": [1]}}', '{"W": {"checkpoints": 3}}']
    ):
        folder = make_run(tmp_path, f"run{number}", lines(RUN, END))
        (folder / "run_logs").mkdir()
        (folder / "run_logs" / "training_status.json").write_text(content)
        assert summary_of(folder).note.startswith("training_status.json "), content


def test_what_cannot_be_read_is_named_and_the_others_are_listed(tmp_path: Path) -> None:
    make_run(tmp_path, "good", lines(RUN, END))
    folder = make_run(tmp_path, "folder", "")
    (folder / "events.jsonl").unlink()
    (folder / "events.jsonl").mkdir()
    pipe = make_run(tmp_path, "pipe", "")
    for name in ("events.jsonl", "run.lock"):
        (pipe / name).unlink(missing_ok=True)
        os.mkfifo(pipe / name)
    make_run(tmp_path, "loop", "").joinpath("events.jsonl").unlink()
    (tmp_path / "loop" / "events.jsonl").symlink_to("events.jsonl")
    (tmp_path / "nothing").mkdir()
    (tmp_path / "a file").write_text("")
    (tmp_path / "to nowhere").symlink_to(tmp_path / "gone")
    notes = {run.run_id: run.note for run in Archive(tmp_path).runs()}
    said = {name: note.partition(": ")[0] for name, note in notes.items()}
    assert said == {"good": "", "folder": "events.jsonl", "pipe": "events.jsonl", "loop": "events.jsonl"}


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    folder = make_run(tmp_path, "secret", lines(RUN, END))
    folder.chmod(0)
    try:
        assert os.strerror(errno.EACCES) in summary_of(folder).note
    finally:
        folder.chmod(0o700)


def test_a_linked_run_is_a_run(tmp_path: Path) -> None:
    make_run(tmp_path / "elsewhere", "first", lines(RUN, END))
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "link").symlink_to(tmp_path / "elsewhere" / "first")
    (summary,) = Archive(tmp_path / "results").runs()
    assert (summary.run_id, summary.state) == ("link", "finished")


def test_without_results_there_are_no_runs(tmp_path: Path) -> None:
    assert Archive(tmp_path / "results").runs() == []
    (tmp_path / "results").write_text("")
    with pytest.raises(ConfigError, match=f"^{tmp_path}/results: "):
        Archive(tmp_path / "results").runs()


def test_a_folder_that_has_gone_is_not_a_run(tmp_path: Path) -> None:
    assert summarize(tmp_path / "gone") is None


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = {"behavior", "step", "t", "state", "exit_code", "count", "mean_return", "max_steps", "algorithm"}
EVENT_NAMES = st.sampled_from(
    ["RunStarted", "RunStateChanged", "BehaviorStarted", "ProgressReported", "EpisodesFinished", "MetricsReported"]
)
FOREIGN_LINES = st.tuples(
    EVENT_NAMES, st.dictionaries(st.sampled_from([*sorted(FIELDS), "elapsed_seconds"]), JSON_VALUES)
).map(lambda parts: json.dumps({"v": 1, "event": parts[0], "t": T, **parts[1]}))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(FOREIGN_LINES | st.text(max_size=30), max_size=12))
def test_no_line_breaks_a_summary(tmp_path: Path, content: list[str]) -> None:
    shutil.rmtree(tmp_path / "first", ignore_errors=True)
    folder = make_run(tmp_path, "first", "")
    (folder / "events.jsonl").write_bytes("\n".join(content).encode("utf-8", "surrogatepass"))
    json.dumps(plain(summary_of(folder)), allow_nan=False)


# ---------------------------------------------------------------------------------------------------- names


def test_a_run_is_found_by_its_id_and_by_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_run(tmp_path / "results", "first", lines(RUN, END))
    lonely = tmp_path / "copy.jsonl"
    lonely.write_text(lines(RUN, END))
    archive = Archive(tmp_path / "results")
    assert archive.resolve("first") == folder
    assert archive.resolve(str(folder)) == folder
    assert archive.resolve(str(folder / "events.jsonl")) == folder / "events.jsonl"
    for name in ("first", str(folder), str(folder / "events.jsonl"), str(lonely)):
        assert [envelope.event for envelope in archive.events(name)] == [RUN, END]
    assert archive.configuration(str(folder / "events.jsonl")) == "behaviors: {}\n"
    monkeypatch.chdir(tmp_path)
    assert archive.resolve("copy.jsonl") == Path("copy.jsonl")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cartpol", "cartpole-1"),
        ("zebra", "rl-tui ls"),
        ("x" * 5000, "x"),
        ("a\0b", "a"),
        ("", ": "),
        (".", "events.jsonl"),
    ],
)
def test_a_name_that_is_none_is_refused_with_a_guess(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    make_run(tmp_path / "results", "cartpole-1", lines(RUN))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as error:
        Archive(tmp_path / "results").resolve(name)
    assert said in str(error.value)


def test_events_that_cannot_be_read_are_refused_with_their_line(tmp_path: Path) -> None:
    make_run(tmp_path, "first", lines(RUN) + "garbage\n" + lines(END))
    make_run(tmp_path, "empty", "").joinpath("events.jsonl").unlink()
    published: list[Any] = []
    with pytest.raises(ConfigError, match=r"events\.jsonl:2: "):
        published.extend(Archive(tmp_path).events("first"))
    assert [envelope.event for envelope in published] == [RUN]
    with pytest.raises(ConfigError, match=r"/empty/events\.jsonl: "):
        next(Archive(tmp_path).events("empty"))


def test_a_configuration_must_be_text(tmp_path: Path) -> None:
    folder = make_run(tmp_path, "first", "")
    (folder / "configuration.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"/configuration\.yaml: .* at byte 0"):
        Archive(tmp_path).configuration("first")
    (folder / "configuration.yaml").unlink()
    with pytest.raises(ConfigError, match=r"/configuration\.yaml: "):
        Archive(tmp_path).configuration("first")


# ---------------------------------------------------------------------------------------------------- speed


def test_listing_imports_next_to_nothing() -> None:
    program = "import sys, rl_tui.engine.storage.archive, rl_tui.engine.session.summaries; print(*sys.modules)"
    listed = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy = {"numpy", "torch", "pydantic", "yaml", "textual", "rich", "rl_tui.engine.session.messages", "difflib"}
    assert set(listed.stdout.split()) & heavy == set()


def test_the_versions_agree() -> None:
    assert SCHEMA_VERSION == 1, "summarizing reads lines of version 1 without the classes of the events"


def test_fifty_runs_are_listed(tmp_path: Path) -> None:
    busy = lines(RUN, started(), TRAINING, *(episodes(step, 1.0, 1) for step in range(1000)), END)
    for number in range(50):
        make_run(tmp_path, f"run{number}", busy)
    assert len(Archive(tmp_path).runs()) == 50
