"""What is said of files and folders that cannot be used: errors and paths are here, the words in messages.txt."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np

from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.errors import CheckpointError, ConfigError, NonFiniteError, RlTuiError, RunBusyError
from rl_tui.engine.specs import State
from rl_tui.engine.storage.archive import Archive
from rl_tui.engine.storage.checkpoint_format import STATE, TENSORS
from rl_tui.engine.storage.checkpoints import CheckpointStore, require_same_keys
from rl_tui.engine.storage.file_names import MANIFEST
from rl_tui.engine.storage.replay_buffer_file import read_replay_buffer, write_replay_buffer
from rl_tui.engine.storage.run_folder import RunFolder
from rl_tui.engine.storage.training_status import read_training_status
from tests.golden_files import catalog, check_file
from tests.storage.test_archive import END, RUN, lines, make_run, summary_of
from tests.storage.test_checkpoints import a_state, a_store, rewrite_state
from tests.storage.test_ownership import ml_agents_run, write
from tests.storage.test_replay_buffer_file import REPLAY, FullDisk, LyingDisk
from tests.storage.test_run_folder import earlier_run

Act: TypeAlias = Callable[[Path], object]
"""What fails in a folder of its own, or returns what is said."""


def saved(folder: Path, number: float = 0.0) -> Path:
    return a_store(folder).save(1, a_state(number), None, "interval")


def load_damaged(damage: Callable[[Path], object]) -> Act:
    def act(folder: Path) -> None:
        path = saved(folder)
        damage(path)
        a_store(folder).load(path)

    return act


def none_is_valid(folder: Path) -> None:
    store = a_store(folder)
    for step in (1, 2):
        (store.save(step, a_state(), None, "interval") / TENSORS).write_text("{}")
    store.newest_valid()


def change_a_byte(path: Path) -> None:
    content = bytearray((path / TENSORS).read_bytes())
    content[-1] ^= 1
    (path / TENSORS).write_bytes(content)


def save(state: State) -> Act:
    return lambda folder: a_store(folder).save(1, state, None, "interval")


def with_file(folder: Path, name: str) -> Path:
    (folder / name).write_text("")
    return folder / name


def other_arrays(folder: Path) -> None:
    expected = {"a": np.zeros(3, np.float32), "b": np.zeros((2, 2), np.float32), "c": np.zeros(1, np.float32)}
    found = {"b": np.zeros((2, 3), np.float32), "c": np.zeros(1, np.float64), "d": np.zeros(4, np.int64)}
    require_same_keys(expected, found)


CHECKPOINTS: dict[str, tuple[type[RlTuiError], str, Act]] = {
    "weights are cut short": (CheckpointError, TENSORS, load_damaged(lambda at: (at / TENSORS).write_bytes(b"short"))),
    "a byte of the weights has changed": (CheckpointError, TENSORS, load_damaged(change_a_byte)),
    "the manifest is gone": (CheckpointError, MANIFEST, load_damaged(lambda at: (at / MANIFEST).unlink())),
    "the manifest is no JSON": (CheckpointError, MANIFEST, load_damaged(lambda at: (at / MANIFEST).write_text("{"))),
    "the manifest is a list": (CheckpointError, MANIFEST, load_damaged(lambda at: (at / MANIFEST).write_text("[]"))),
    "the manifest lacks a file": (CheckpointError, MANIFEST, load_damaged(lambda at: (at / MANIFEST).write_text("{}"))),
    "its format is newer": (CheckpointError, STATE, load_damaged(lambda at: rewrite_state(at, format_version=2))),
    "its step is no number": (CheckpointError, STATE, load_damaged(lambda at: rewrite_state(at, step="many"))),
    "its spec is empty": (CheckpointError, STATE, load_damaged(lambda at: rewrite_state(at, spec={}))),
    "it is of another behavior": (
        CheckpointError,
        "Crawler",
        lambda folder: CheckpointStore(saved(folder).parent, "Crawler", 5).load(folder / "Walker/checkpoints/Walker-1"),
    ),
    "every checkpoint is damaged": (CheckpointError, "Walker-2", none_is_valid),
    "it is in another folder": (
        CheckpointError,
        "Walker-6",
        lambda folder: a_store(folder).newer_than(folder / "Walker-6"),
    ),
    "a weight is NaN": (NonFiniteError, "policy.weight", save(a_state(np.nan))),
    "a number is infinite": (NonFiniteError, "a[1].b", save(State({}, {"a": [1.0, {"b": np.inf}]}))),
    "its arrays are others than the network's": (CheckpointError, "float32[2, 3]", other_arrays),
    "it lacks 20 arrays": (
        CheckpointError,
        "a0",
        lambda folder: require_same_keys({f"a{number}": np.zeros(1) for number in range(20)}, {}),
    ),
    "a file is in the place of the behavior's folder": (
        CheckpointError,
        "Walker",
        lambda folder: (with_file(folder, "Walker"), saved(folder)),
    ),
    "a file is in the place of all checkpoints": (
        CheckpointError,
        "checkpoints",
        lambda folder: CheckpointStore(with_file(folder, "checkpoints"), "Walker", 5).newest_valid(),
    ),
}


def read_replay(prepare: Callable[[Path], object]) -> Act:
    def act(folder: Path) -> None:
        prepare(folder / "replay")
        read_replay_buffer(folder / "replay", "Walker")

    return act


REPLAY_BUFFERS: dict[str, tuple[type[RlTuiError], str, Act]] = {
    "it is gone": (CheckpointError, "replay", read_replay(lambda path: None)),
    "it is a pipe": (CheckpointError, "replay", read_replay(os.mkfifo)),
    "it is of another behavior": (
        CheckpointError,
        "Runner",
        read_replay(lambda path: write_replay_buffer(path, "Runner", 17, REPLAY)),
    ),
    "the disk is full": (
        CheckpointError,
        "replay",
        lambda folder: write_replay_buffer(folder / "replay", "Walker", 2, REPLAY, FullDisk(0)),
    ),
    "the disk keeps something else": (
        CheckpointError,
        "replay",
        lambda folder: write_replay_buffer(folder / "replay", "Walker", 2, REPLAY, LyingDisk()),
    ),
}


def open_run(prepare: Callable[[Path], object], *, resume: bool = False, force: bool = False) -> Act:
    def act(folder: Path) -> object:
        prepare(folder)
        with RunFolder(folder, "first") as run:
            return run.open(resume, force)

    return act


def resume_by_a_file(folder: Path) -> object:
    text = f"behaviors: {{A: {{}}}}\ncheckpoint_settings: {{resume: true, run_id: first, results_dir: {folder}}}\n"
    return RunFolder.of(parse_config(text.encode(), "c.yaml")).open(resume=True)


def busy(pid: int, act: Act) -> Act:
    """While a process writes to the run. pid: of it."""

    def with_writer(folder: Path) -> object:
        with RunFolder(folder, "first") as first:
            first.open()
            (first.path / "run.lock").write_text(f"pid {pid} on {socket.gethostname()}\n")
            return act(folder)

    return with_writer


def pipe(folder: Path) -> None:
    earlier_run(folder).events.unlink()
    os.mkfifo(folder / "first/events.jsonl")


def link(folder: Path) -> None:
    earlier_run(folder).events.unlink()
    (folder / "first/events.jsonl").symlink_to(folder / "elsewhere")


def add_behavior(prepare: Callable[[Path], object]) -> Act:
    def act(folder: Path) -> None:
        with RunFolder(folder, "first") as run:
            run.open()
            prepare(run.path / "Walker")
            run.add_behavior("Walker")

    return act


def forgotten(folder: Path) -> None:
    write(folder / "first", runDOTlock="4711\n", configurationDOTyaml="default_settings: null\nbehaviors: {}\n")


RUN_FOLDERS: dict[str, tuple[type[RlTuiError] | None, str, Act]] = {
    "rl-tui, where a run has learned": (ConfigError, "--force", open_run(earlier_run)),
    "rl-tui, where a run has not learned": (None, "first", open_run(forgotten)),
    "rl-tui --resume, without a run": (ConfigError, "--resume", open_run(lambda folder: None, resume=True)),
    "resume: true in c.yaml, without a run": (ConfigError, "c.yaml:2:23", resume_by_a_file),
    "--initialize-from, without a run": (
        ConfigError,
        "--initialize-from",
        lambda folder: RunFolder(folder, "first").require_exists("--initialize-from"),
    ),
    "--initialize-from, of ML-Agents": (
        ConfigError,
        "--initialize-from first",
        lambda folder: (
            ml_agents_run(folder / "first"),
            RunFolder(folder, "first").require_exists("--initialize-from"),
        ),
    ),
    "--run-id 'a b'": (ConfigError, "--run-id", lambda folder: RunFolder(folder, "a b")),
    "a file is in the place of the run": (ConfigError, "first", open_run(lambda folder: with_file(folder, "first"))),
    "a file is in the place of the results": (
        ConfigError,
        "--results-dir",
        lambda folder: RunFolder(with_file(folder, "results"), "first").open(),
    ),
    "a run of ML-Agents": (ConfigError, "first", open_run(lambda folder: ml_agents_run(folder / "first"), force=True)),
    "a thesis": (
        ConfigError,
        "chapter.tex",
        open_run(lambda folder: write(folder / "first", chapterDOTtex="", figures__oneDOTpng="")),
    ),
    "nine files": (
        ConfigError,
        "file0",
        open_run(lambda folder: write(folder / "first", **{f"file{number}": "" for number in range(9)})),
    ),
    "a pipe in the place of its events": (ConfigError, "events.jsonl", open_run(pipe, force=True)),
    "a link in the place of its events": (ConfigError, "events.jsonl", open_run(link, resume=True)),
    "another process writes": (RunBusyError, "pid 1", busy(1, open_run(lambda folder: None))),
    "this process writes": (RunBusyError, "first", busy(os.getpid(), open_run(lambda folder: None, resume=True))),
    "a behavior's folder is a link": (ConfigError, "Walker", add_behavior(lambda path: path.symlink_to("/tmp"))),
    "a behavior's folder is a file": (ConfigError, "Walker", add_behavior(lambda path: path.touch())),
}


def named(name: str) -> Act:
    def act(folder: Path) -> object:
        make_run(folder, "cartpole-1", lines(RUN))
        return Archive(folder).resolve(name)

    return act


def read_run(prepare: Callable[[Path], object], read: Callable[[Archive], object]) -> Act:
    def act(folder: Path) -> object:
        prepare(make_run(folder, "first", lines(RUN) + "garbage\n" + lines(END)))
        return read(Archive(folder))

    return act


def remove(prepare: Callable[[Path], object]) -> Act:
    def act(folder: Path) -> None:
        prepare(folder)
        Archive(folder).remove("first")

    return act


def link_to_a_run(folder: Path) -> None:
    make_run(folder, "elsewhere", lines(RUN))
    (folder / "first").symlink_to(folder / "elsewhere")


def note_of(prepare: Callable[[Path], object]) -> Act:
    def act(folder: Path) -> str:
        run = make_run(folder, "first", lines(RUN, END))
        (run / "run_logs").mkdir()
        prepare(run)
        return summary_of(run).note

    return act


def broken_status(folder: Path) -> str:
    with_file(folder, "status.json")
    return read_training_status(folder / "status.json", "2.0").warning


LISTED_RUNS: dict[str, tuple[type[RlTuiError] | None, str, Act]] = {
    "cartpol": (ConfigError, "cartpole-1", named("cartpol")),
    "zebra": (ConfigError, "zebra", named("zebra")),
    "a folder without a run": (ConfigError, "/usr", named("/usr")),
    "a file in the place of the results": (
        ConfigError,
        "results",
        lambda folder: Archive(with_file(folder, "results")).runs(),
    ),
    "a line that is no event": (
        ConfigError,
        "events.jsonl:2: ",
        read_run(lambda run: None, lambda archive: list(archive.events("first"))),
    ),
    "no events": (
        ConfigError,
        "events.jsonl",
        read_run(lambda run: (run / "events.jsonl").unlink(), lambda archive: list(archive.events("first"))),
    ),
    "a configuration that is not text": (
        ConfigError,
        "configuration.yaml",
        read_run(
            lambda run: (run / "configuration.yaml").write_bytes(b"\xff\xfe"),
            lambda archive: archive.configuration("first"),
        ),
    ),
    "removing a link": (ConfigError, "first", remove(link_to_a_run)),
    "removing a run of ML-Agents": (ConfigError, "first", remove(lambda folder: ml_agents_run(folder / "first"))),
    "removing other files": (ConfigError, "a", remove(lambda folder: write(folder / "first", a=""))),
    "removing nothing": (ConfigError, "first", remove(lambda folder: None)),
    "removing a run that trains": (RunBusyError, "pid 1", busy(1, remove(lambda folder: None))),
    "note: a run without events": (None, "events.jsonl", note_of(lambda run: (run / "events.jsonl").unlink())),
    "note: a file without events": (None, "events.jsonl", note_of(lambda run: (run / "events.jsonl").write_text(""))),
    "note: a folder in the place of events": (
        None,
        "events.jsonl",
        note_of(lambda run: ((run / "events.jsonl").unlink(), (run / "events.jsonl").mkdir())),
    ),
    "note: a status that is none": (
        None,
        "training_status.json",
        note_of(lambda run: (run / "run_logs/training_status.json").write_text("[]")),
    ),
    "warning: a status that is none": (None, "status.json", broken_status),
    "warning: a status that is gone": (
        None,
        "status.json",
        lambda folder: read_training_status(folder / "status.json", "2.0").warning,
    ),
}

CATALOG = {
    "Checkpoints": CHECKPOINTS,
    "Replay buffers": REPLAY_BUFFERS,
    "Folders of runs": RUN_FOLDERS,
    "Recorded runs": LISTED_RUNS,
}


def test_every_message_has_its_error_and_its_path_and_is_in_the_catalog(tmp_path: Path) -> None:
    sections: dict[str, list[tuple[str, list[str]]]] = {}
    for title, cases in CATALOG.items():
        for given, (error, names, act) in cases.items():
            folder = tmp_path / "results"
            folder.mkdir()
            found, said = outcome(act, folder)
            shutil.rmtree(folder)
            assert (found, names in said) == (error, True), f"{given}: {found}, {names} in\n{said}"
            shown = said.replace(str(tmp_path), "/home/me").replace(socket.gethostname(), "HOST")
            sections.setdefault(title, []).append((given, shown.splitlines()))
    check_file(Path(__file__).parent / "messages.txt", catalog(sections))


def outcome(act: Act, folder: Path) -> tuple[type[RlTuiError] | None, str]:
    """The error and what it says; what was returned, without one."""
    try:
        said = act(folder)
    except RlTuiError as error:
        return type(error), str(error)
    return None, "\n".join(said) if isinstance(said, tuple) else str(said)
