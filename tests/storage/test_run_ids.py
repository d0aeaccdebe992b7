"""Runs without --run-id: each has a folder of its own, and --resume finds the newest."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.session.messages import LogEmitted, RunStarted
from rl_tui.engine.storage.disk import Disk
from rl_tui.engine.storage.run_folder import RunFolder
from rl_tui.engine.storage.run_ids import newest_run_id, next_run_id, run_name
from tests.deadline import DEADLINE_SECONDS
from tests.running.runs import LiveRun, behavior, ending, run_to_end

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("/usr/lib/rl-tui/config/ppo/CartPole.yaml", "CartPole"),
        ("walker.v2.yaml", "walker.v2"),
        ("Mein Läufer (2).yml", "Mein-L-ufer-2-"),
        (".hidden.yaml", "hidden"),
        ("-x.yaml", "x"),
        ("ü.yaml", "run"),
        ("", "run"),
        ("x" * 200 + ".yaml", "x" * 56),
    ],
)
def test_a_run_is_named_by_its_file(tmp_path: Path, file: str, name: str) -> None:
    assert run_name(file) == name
    assert RunFolder(tmp_path, f"{name}-999999").run_id == f"{name}-999999", "it can name a folder, counted too"


def test_runs_of_one_name_are_counted(tmp_path: Path) -> None:
    assert next_run_id(tmp_path / "missing", "Walker") == "Walker"
    for others in ("Walkers", "Walker-x", "Walker-01", "Walker-0", "Walker-20261122", "Walker-2-2", "aWalker"):
        (tmp_path / others).mkdir()
    assert next_run_id(tmp_path, "Walker") == "Walker"
    (tmp_path / "Walker").mkdir()
    assert next_run_id(tmp_path, "Walker") == "Walker-2"
    (tmp_path / "Walker-9").mkdir()
    (tmp_path / "walker-10").write_text("a name that differs only in case is taken where the disk ignores case")
    assert next_run_id(tmp_path, "Walker") == "Walker-11"


def test_the_newest_run_has_the_highest_number(tmp_path: Path) -> None:
    assert newest_run_id(tmp_path, "Walker") is None
    for name in ("Walker", "Walker-2", "Walker-10"):
        (tmp_path / name).mkdir()
    assert newest_run_id(tmp_path, "Walker") == "Walker-10"
    for name in ("Walker-10", "Walker-2"):
        (tmp_path / name / "events.jsonl").write_text('{"v": 1, "n": 1, "event": "RunStarted"}\n')
    (tmp_path / "Walker-2/Walker/checkpoints/00000100").mkdir(parents=True)
    assert newest_run_id(tmp_path, "Walker") == "Walker-2", "the run with the highest number failed at its start"
    (tmp_path / "Walker-10/run.lock").touch()
    with (tmp_path / "Walker-10/run.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert newest_run_id(tmp_path, "Walker") == "Walker-10", "it is still running"


def test_runs_of_files_that_are_numbered_themselves_are_not_taken_for_each_other(tmp_path: Path) -> None:
    """walker.yaml and walker-2.yaml lie side by side."""
    for name, expected in [
        ("walker", "walker"),
        ("walker-2", "walker-2-1"),
        ("walker", "walker-2"),
        ("walker-2", "walker-2-2"),
        ("walker-2-2", "walker-2-2-1"),
        ("walker", "walker-3"),
    ]:
        assert next_run_id(tmp_path, name) == expected
        (tmp_path / expected).mkdir()
    newest = {name: newest_run_id(tmp_path, name) for name in ("walker", "walker-2", "walker-2-2")}
    assert newest == {"walker": "walker-3", "walker-2": "walker-2-2", "walker-2-2": "walker-2-2-1"}
    assert newest_run_id(tmp_path, "walker-3") is None


def unnamed(folder: Path, file: str = "config/Line.yaml", max_steps: int = 256, **settings: object) -> RunConfig:
    document = {
        "behaviors": {"Line": behavior(max_steps=max_steps)},
        "env_settings": {"env": "toy:line", "num_envs": 4, "seed": 1},
        "checkpoint_settings": {"results_dir": str(folder / "results"), **settings},
        "torch_settings": {"device": "cpu"},
    }
    return parse_config(yaml.safe_dump(document).encode(), file)


def logged(run: LiveRun, text: str) -> list[str]:
    return [event.message for event in run.of(LogEmitted) if text in event.message]


def test_each_run_without_a_name_has_its_own_folder_and_resume_continues_the_newest(tmp_path: Path) -> None:
    for run_id in ("Line", "Line-2"):
        run = run_to_end(unnamed(tmp_path))
        assert run.launch.exit_code == 0
        (started,) = run.of(RunStarted)
        assert (started.run_id, started.path) == (run_id, str(tmp_path / "results" / run_id))
        assert f"run_id: {run_id}\n" in (tmp_path / "results" / run_id / "configuration.yaml").read_text()
    run = run_to_end(unnamed(tmp_path, max_steps=512, resume=True))
    (started,) = run.of(RunStarted)
    assert (started.run_id, started.resumed) == ("Line-2", True)
    assert len(logged(run, "resume: true continues Line-2")) == 1
    run = run_to_end(unnamed(tmp_path, "other/Walker.yaml", resume=True))
    assert run.launch.exit_code == 2
    assert re.match(r"other/Walker.yaml:\d+:\d+: checkpoint_settings.resume: .* resume: true$", ending(run).reason)
    assert sorted(os.listdir(tmp_path / "results")) == ["Line", "Line-2"]


def test_resume_or_start_always_means_the_first_run_of_a_file(tmp_path: Path) -> None:
    """So that a job continues its own run even if others of the same file were started meanwhile."""
    for _ in range(2):
        assert run_to_end(unnamed(tmp_path)).launch.exit_code == 0
    for file, run_id, is_resumed in [("config/Line.yaml", "Line", True), ("Line-2.yaml", "Line-2-1", False)] * 2:
        run = run_to_end(unnamed(tmp_path, file, 512, resume_or_start=True))
        (started,) = run.of(RunStarted)
        assert (started.run_id, started.resumed) == (run_id, is_resumed or (tmp_path / "again").exists())
        if file == "Line-2.yaml":
            (tmp_path / "again").touch()
    assert sorted(os.listdir(tmp_path / "results")) == ["Line", "Line-2", "Line-2-1"]


def test_force_leaves_earlier_runs_alone_where_no_run_is_named(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "results", "Line") as earlier:
        earlier.open()
    run = run_to_end(unnamed(tmp_path, force=True))
    assert run.of(RunStarted)[0].run_id == "Line-2"
    assert "--run-id" in logged(run, "--force")[0]


def test_a_run_that_cannot_start_leaves_no_folder_and_takes_no_number(tmp_path: Path) -> None:
    config = unnamed(tmp_path, initialize_from="missing")
    assert run_to_end(config).launch.exit_code == 2
    assert os.listdir(tmp_path / "results") == []


OPEN = """
import sys
from pathlib import Path
from rl_tui.engine.storage.run_folder import RunFolder
sys.stdin.readline()
folder = RunFolder(Path(sys.argv[1]), "Line", is_counted=True)
folder.open()
print(folder.run_id, flush=True)
sys.stdin.readline()
"""


def test_processes_that_start_at_once_get_different_folders(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OPEN, str(tmp_path)]
    processes = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
    taken = [process.communicate("end\n", timeout=DEADLINE_SECONDS)[0].strip() for process in processes]
    assert sorted(taken) == ["Line", "Line-2", "Line-3", "Line-4"]


def test_the_second_process_to_create_a_folder_uses_the_next_number(tmp_path: Path) -> None:
    """Another process makes it between the look and the making."""

    class Slow(Disk):
        def make_folder(self, path: Path) -> None:
            if path.name in ("Line", "Line-2") and not path.exists():
                path.mkdir()
            super().make_folder(path)

    with RunFolder(tmp_path, "Line", Slow(), is_counted=True) as folder:
        folder.open()
        assert folder.run_id == "Line-3"
