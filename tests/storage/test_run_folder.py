"""The run's folder: directory rules, the lock, names of behaviors, the training status."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_tui.engine.config.loading import parse_config
from rl_tui.engine.errors import ConfigError, RunBusyError
from rl_tui.engine.specs import State
from rl_tui.engine.storage.behavior_folder import file_name
from rl_tui.engine.storage.checkpoints import CheckpointStore
from rl_tui.engine.storage.disk import write_atomically
from rl_tui.engine.storage.run_folder import RunFolder
from rl_tui.engine.storage.training_status import (
    BehaviorStatus,
    CheckpointEntry,
    read_training_status,
    status_of,
    write_training_status,
)
from tests.deadline import DEADLINE_SECONDS

ROOT = Path(__file__).parents[2]


def test_a_new_run_gets_its_folders_with_ml_agents_names(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "results", "first") as folder:
        assert folder.open() == ()
        walker = folder.add_behavior("Walker")
        names = [folder.configuration, folder.events, folder.timers, folder.training_status]
        names += [walker.path, walker.export(500), walker.final_export, walker.checkpoints]
    assert [str(name.relative_to(tmp_path / "results" / "first")) for name in names] == [
        "configuration.yaml",
        "events.jsonl",
        "run_logs/timers.json",
        "run_logs/training_status.json",
        "Walker",
        "Walker/Walker-500.onnx",
        "Walker.onnx",
        "Walker/checkpoints",
    ]
    assert folder.run_logs.is_dir()
    assert walker.path.is_dir()


def test_an_existing_folder_is_refused_with_three_ways_out(tmp_path: Path) -> None:
    folder = earlier_run(tmp_path)
    before = sorted(folder.path.rglob("*"))
    with pytest.raises(ConfigError, match=r"--resume.*--force.*--run-id"):
        RunFolder(tmp_path, "first").open()
    assert sorted(folder.path.rglob("*")) == before, "nothing is left in a folder that was refused"


def test_resuming_needs_the_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^--resume: .*first"):
        RunFolder(tmp_path, "first").open(resume=True)
    assert os.listdir(tmp_path) == []


def test_resuming_that_a_file_asks_for_is_named_as_it_stands_there(tmp_path: Path) -> None:
    """Also where a flag names the run; a flag that says the same comes first."""
    text = f"behaviors: {{A: {{}}}}\ncheckpoint_settings: {{resume: true, run_id: first, results_dir: {tmp_path}}}\n"
    of_file = parse_config(text.encode(), "c.yaml")
    with pytest.raises(ConfigError, match=r"^c.yaml:2:23: checkpoint_settings.resume: .*first.* resume: true "):
        RunFolder.of(of_file).open(resume=True)
    by_flag = parse_config(text.encode(), "c.yaml", {"checkpoint_settings.resume": True})
    with pytest.raises(ConfigError, match=r"^--resume: .*first.* --resume "):
        RunFolder.of(by_flag).open(resume=True)


def test_initializing_needs_a_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^--initialize-from: "):
        RunFolder(tmp_path, "first").require_exists("--initialize-from")
    (tmp_path / "first").mkdir()
    with pytest.raises(ConfigError, match=r"^--initialize-from: "):
        RunFolder(tmp_path, "first").require_exists("--initialize-from")
    RunFolder(tmp_path, earlier_run(tmp_path).run_id).require_exists("--initialize-from")


def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "first").write_text("")
    for resume in (False, True):
        with pytest.raises(ConfigError, match=f"^{tmp_path}/first: "):
            RunFolder(tmp_path, "first").open(resume)


def test_a_results_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    with pytest.raises(ConfigError, match=f"^{tmp_path}/results/first: .*--results-dir"):
        RunFolder(tmp_path / "results", "first").open()


def test_results_may_stand_on_another_disk_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "results").symlink_to(tmp_path / "scratch")
    with RunFolder(tmp_path / "results", "first") as folder:
        folder.open()
        store = CheckpointStore(folder.add_behavior("Walker").checkpoints, "Walker", 5)
        store.save(1, State(), None, "final")
    assert (tmp_path / "scratch" / "first" / "Walker" / "checkpoints" / "Walker-1").is_dir()


@pytest.mark.parametrize("run_id", ["", ".", "..", "a/b", "/etc", "-x", "a\n", "a\0", "ü", "x" * 65, "a b"])
def test_a_run_id_must_be_a_plain_name(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(ConfigError, match="--run-id"):
        RunFolder(tmp_path, run_id)


def earlier_run(results: Path) -> RunFolder:
    folder = RunFolder(results, "first")
    with folder:
        folder.open()
        walker = folder.add_behavior("Walker")
        CheckpointStore(walker.checkpoints, "Walker", 5).save(100, State({}, {}), 1.0, "final")
        for path in (walker.export(100), walker.final_export, folder.events, folder.training_status):
            path.write_text("old")
        (walker.path / "events.out.tfevents.1.host.2.0").write_text("old")
    return folder


def test_force_moves_old_checkpoints_aside_and_removes_event_files(tmp_path: Path) -> None:
    folder = earlier_run(tmp_path)
    with folder:
        done = folder.open(force=True)
    walker = folder.behavior("Walker")
    assert done == (
        f"removed {walker.path / 'events.out.tfevents.1.host.2.0'}",
        f"moved {walker.checkpoints} to {walker.path / 'checkpoints.previous'}",
    )
    assert CheckpointStore(walker.checkpoints, "Walker", 5).newest_valid().path is None
    assert os.listdir(walker.path / "checkpoints.previous") == ["Walker-100"]
    assert walker.export(100).exists()
    assert walker.final_export.exists()
    assert not folder.events.exists()
    assert not folder.training_status.exists()


def test_force_keeps_one_earlier_generation_of_checkpoints(tmp_path: Path) -> None:
    folder = earlier_run(tmp_path)
    for _ in range(2):
        with folder:
            folder.open(force=True)
    walker = folder.behavior("Walker")
    assert os.listdir(walker.path / "checkpoints.previous") == ["Walker-100"], "an empty run displaces nothing"
    CheckpointStore(walker.checkpoints, "Walker", 5).save(7, State({}, {}), None, "final")
    with folder:
        folder.open(force=True)
    assert os.listdir(walker.path / "checkpoints.previous") == ["Walker-7"]


def test_resume_wins_over_force(tmp_path: Path) -> None:
    folder = earlier_run(tmp_path)
    with folder:
        assert folder.open(resume=True, force=True) == ()
    store = CheckpointStore(folder.behavior("Walker").checkpoints, "Walker", 5)
    assert store.newest_valid().path is not None


def test_resume_or_start_continues_a_run_and_starts_one_where_there_is_none(tmp_path: Path) -> None:
    earlier_run(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked/run.lock").write_text("12 on tower\n")
    (tmp_path / "unlearned").mkdir()
    (tmp_path / "unlearned/events.jsonl").write_text('{"v": 1}\n')
    (tmp_path / "torn/Walker/checkpoints/.tmp-Walker-64").mkdir(parents=True)  # killed in its first checkpoint
    (tmp_path / "torn/run.lock").touch()
    (tmp_path / "torn/configuration.yaml").write_text("default_settings: null\n")
    for name, is_resumed in {
        "first": True, "missing": False, "empty": False, "locked": False, "unlearned": True, "torn": True
    }.items():  # fmt: skip
        before = {path for path in tmp_path.glob(f"{name}/**/*") if not path.name.startswith(".tmp-")}
        with RunFolder(tmp_path, name) as folder:
            folder.require_startable(resume=False, force=False, or_start=True)
            assert folder.has_begun == is_resumed
            for force in (False, True):
                assert folder.open(force=force, or_start=True) == ()
                assert folder.is_resumed == is_resumed
                folder.close()
            assert before <= set(tmp_path.glob(f"{name}/**/*")), "nothing is replaced, even with force"
            assert not list(folder.path.rglob(".tmp-*"))


def test_resume_or_start_is_refused_where_resume_is(tmp_path: Path) -> None:
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign/thesis.pdf").touch()
    (tmp_path / "file").touch()
    earlier_run(tmp_path).events.unlink()
    (tmp_path / "first/events.jsonl").symlink_to(tmp_path / "file")
    for name, reason in {"foreign": "thesis.pdf", "file": "/file: ", "first": "/events.jsonl: "}.items():
        for attempt in (RunFolder.open, RunFolder.require_startable):
            flags = {} if attempt == RunFolder.open else {"resume": False, "force": False}
            with pytest.raises(ConfigError, match=reason):
                attempt(RunFolder(tmp_path, name), **flags, or_start=True)
    assert os.listdir(tmp_path / "foreign") == ["thesis.pdf"]


@pytest.mark.parametrize("name", ["events.jsonl", "run.lock", "configuration.yaml", "run_logs/training_status.json"])
@pytest.mark.parametrize("resume", [True, False])
def test_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(tmp_path: Path, name: str, resume: bool) -> None:
    path = earlier_run(tmp_path).path / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    with pytest.raises(ConfigError, match=f"^{path}: "):
        RunFolder(tmp_path, "first").open(resume, force=True)
    assert path.is_fifo()


def test_a_second_writer_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    with RunFolder(tmp_path, "first") as first:
        first.open()
        with pytest.raises(RunBusyError, match=f"^{first.path}: this process"):
            RunFolder(tmp_path, "first").open(resume=True)
        (first.path / "run.lock").write_text(f"pid 1 on {socket.gethostname()}\n")  # as of another process
        for resume, force in ((False, False), (True, False), (False, True)):
            with pytest.raises(RunBusyError, match=rf"\(pid 1 on {socket.gethostname()}\)"):
                RunFolder(tmp_path, "first").open(resume, force)
        for attempt in (RunFolder.open, RunFolder.require_startable):
            with pytest.raises(RunBusyError, match="another process"):
                attempt(RunFolder(tmp_path, "first"), resume=False, force=False, or_start=True)
    RunFolder(tmp_path, "first").open(resume=True)


HOLD_THE_LOCK = """
import sys, time
from pathlib import Path
from rl_tui.engine.storage.run_folder import RunFolder
folder = RunFolder(Path(sys.argv[1]), "first")
folder.open(resume=True)
print("locked", flush=True)
sys.stdin.read()
"""


def test_lock_of_a_process_that_is_gone_is_waited_for(tmp_path: Path) -> None:
    """The process that it has watched, and that trains, has been killed with it and is about to end."""
    (tmp_path / "first").mkdir()
    command = [sys.executable, "-c", HOLD_THE_LOCK, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "locked\n"
        gone = subprocess.Popen(["true"])
        gone.wait()
        (tmp_path / "first/run.lock").write_text(f"pid {gone.pid} on {socket.gethostname()}\n")
        threading.Timer(0.1, writer.kill).start()
        with RunFolder(tmp_path, "first") as folder:
            folder.open(resume=True)


def test_killing_the_writer_frees_the_run(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    for _ in range(3):
        command = [sys.executable, "-c", HOLD_THE_LOCK, str(tmp_path)]
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "locked\n"
            with pytest.raises(RunBusyError, match=rf"another process \(pid {writer.pid} on "):
                RunFolder(tmp_path, "first").open(resume=True)
            writer.send_signal(signal.SIGKILL)
            writer.wait(DEADLINE_SECONDS)
        with RunFolder(tmp_path, "first") as folder:
            folder.open(resume=True)


@pytest.mark.parametrize("name", ["Walker", "3DBall", "my.agent_2-b", "x" * 64])
def test_a_plain_name_is_its_own_file_name(name: str) -> None:
    assert file_name(name) == name


NOT_PLAIN = ["", ".", "..", "../up", "/etc/passwd", "a/b", "a\\b", "a\0b", "a\n", "x" * 65, "-rf", ".hidden", "dot."]
NOT_PLAIN += ["Große", "\ud800", "CON", "nul", "com1.txt", "Lpt9"]
NOT_PLAIN += ["run_logs", "Configuration.YAML", "run.lock", "events.jsonl", "A.onnx"]


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_any_other_name_is_converted_to_a_slug_and_a_hash(name: str) -> None:
    found = file_name(name)
    assert found != name
    assert file_name(found) == found, "the outcome is itself a plain name"


@given(st.text(st.characters(), max_size=300) | st.from_regex(r"(\.\./|[a-z]|/|\\|\0|:|~){1,20}"))
def test_no_name_leads_out_of_the_folder(name: str) -> None:
    found = RunFolder(Path("/results"), "run").behavior(name)
    assert found.path.parent == Path("/results/run")
    assert len(os.fsencode(found.export(10**15).name)) < 200
    assert os.path.normpath(found.path) == str(found.path)


def test_names_that_differ_only_in_case_get_folders_that_differ_in_more(tmp_path: Path) -> None:
    with RunFolder(tmp_path, "first") as folder:
        folder.open()
        first, second = folder.add_behavior("Walker"), folder.add_behavior("WALKER")
        assert first.path.name == "Walker"
        assert second.path.name.startswith("WALKER-")
        assert folder.behavior("WALKER") == second
        assert folder.behavior("Walker") == first, "found again in any order"


def test_a_behavior_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    with RunFolder(tmp_path, "first") as folder:
        folder.open()
        (folder.path / "Walker").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(ConfigError, match=f"^{folder.path}/Walker: "):
            folder.add_behavior("Walker")


def test_a_file_in_the_place_of_a_behavior_folder_is_refused(tmp_path: Path) -> None:
    with RunFolder(tmp_path, "first") as folder:
        folder.open()
        (folder.path / "Walker").write_text("")
        with pytest.raises(ConfigError, match=f"^{folder.path}/Walker: "):
            folder.add_behavior("Walker")


def test_a_file_is_replaced_whole_and_links_are_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("precious")
    (tmp_path / "status").symlink_to(target)
    (tmp_path / ".tmp-status").write_text("left by a killed writer")
    write_atomically(tmp_path / "status", b"new")
    assert (tmp_path / "status").read_bytes() == b"new"
    assert not (tmp_path / "status").is_symlink()
    assert target.read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "status"]


SAMPLE = "results/first3DBallRun/run_logs/training_status.json"


def test_the_training_status_has_ml_agents_shape_to_the_letter(tmp_path: Path) -> None:
    """Read ML-Agents' own file, write it again: the same text but for who wrote it."""
    if "MLAGENTS_DATA" not in os.environ:
        pytest.skip("MLAGENTS_DATA does not name the folder of ML-Agents' sample files")
    sample = Path(os.environ["MLAGENTS_DATA"]) / SAMPLE
    status = read_training_status(sample, "2.1.1+cpu")
    assert "rl_tui_version None" in status.warning
    assert "torch" not in status.warning
    assert [entry.steps for entry in status.behaviors["3DBall"].checkpoints] == [499652, 500652]
    write_training_status(tmp_path / "status.json", status.behaviors, "2.1.1+cpu")
    ours, theirs = (tmp_path / "status.json").read_text(), sample.read_text()
    assert ours.replace('"rl_tui_version": "0.1.0"', '"mlagents_version": "1.1.0.dev0"') == theirs


def test_the_status_lists_the_checkpoints_that_stand(tmp_path: Path) -> None:
    with RunFolder(tmp_path, "first") as folder:
        folder.open()
        walker = folder.add_behavior("Walker")
        store = CheckpointStore(walker.checkpoints, "Walker", 5)
        for step, mean_return in ((100, None), (200, 7.5)):
            store.save(step, State(), mean_return, "interval")
        write_training_status(folder.training_status, {"Walker": status_of(walker, store.list(), True)}, "2.0")
        body = json.loads(folder.training_status.read_text())
        assert body["Walker"]["checkpoints"][0]["reward"] is None
        assert body["Walker"]["checkpoints"][1]["file_path"] == str(walker.export(200))
        assert body["Walker"]["final_checkpoint"]["file_path"] == str(walker.final_export)
        assert body["Walker"]["final_checkpoint"]["auxillary_file_paths"] == [str(store.folder / "Walker-200")]
        again = read_training_status(folder.training_status, "2.0")
        assert again.warning == ""
        assert again.behaviors == {"Walker": status_of(walker, store.list(), True)}


BROKEN = [b"", b"[]", b"[1]", b"null", b"{", b"\xff", b"[" * 100_000, b'{"W": 1}', b'{"metadata": []}']
BROKEN += [b'{"W": {"checkpoints": 3}}', b'{"W": {"checkpoints": [1]}}', b'{"W": {"checkpoints": [{"steps": "a"}]}}']


@pytest.mark.parametrize("content", BROKEN)
def test_a_broken_status_is_a_warning(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "status.json").write_bytes(content)
    status = read_training_status(tmp_path / "status.json", "2.0")
    assert status.behaviors == {}
    assert status.warning.startswith(f"{tmp_path}/status.json: ")


def test_a_missing_status_is_a_warning(tmp_path: Path) -> None:
    assert read_training_status(tmp_path / "status.json", "2.0").warning.startswith(f"{tmp_path}/status.json: ")


def test_an_unfinished_behavior_has_no_final_checkpoint(tmp_path: Path) -> None:
    entry = CheckpointEntry(1, "a.onnx", None, 5.0, ("a",))
    write_training_status(tmp_path / "status.json", {"Walker": BehaviorStatus((entry,))}, "2.0")
    assert "final_checkpoint" not in json.loads((tmp_path / "status.json").read_text())["Walker"]
