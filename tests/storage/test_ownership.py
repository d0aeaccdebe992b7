"""What is in a folder before a run starts in it: who wrote it, and that other programs' files are not touched."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.session.messages import LogEmitted
from rl_tui.engine.specs import State
from rl_tui.engine.storage.checkpoints import CheckpointStore
from rl_tui.engine.storage.run_folder import RunFolder
from tests.running.runs import behavior, configuration, ending, run_to_end

FLAGS = [(False, False), (True, False), (False, True), (True, True)]  # resume, force
STATUS = {"3DBall": {"checkpoints": []}, "metadata": {"stats_format_version": "0.3.0", "mlagents_version": "1.1.0"}}


def picture(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file and folder with its mode, its time of change and its content."""
    paths = [folder, *folder.rglob("*")]
    return {
        str(path): (path.lstat().st_mode, path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in paths
    }


def write(folder: Path, **files: str) -> Path:
    """The folder with these files; `__` in a name stands for a slash, `DOT` for a dot."""
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("DOT", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


def ml_agents_run(folder: Path) -> Path:
    write(folder, run_logs__training_statusDOTjson=json.dumps(STATUS), run_logs__timersDOTjson="{}")
    return write(folder, configurationDOTyaml="behaviors: {}", BallDOTonnx="graph", Ball__Ball100DOTpt="pickle")


def refused(folder: Path, expected: str) -> None:
    before = picture(folder)
    for resume, force in FLAGS:
        with RunFolder(folder.parent, folder.name) as run, pytest.raises(ConfigError, match=expected) as raised:
            run.open(resume, force)
        assert "another --run-id" in str(raised.value)
        assert "--resume" not in str(raised.value)
        assert picture(folder) == before


def test_a_run_of_ml_agents_is_left_as_it_is(tmp_path: Path) -> None:
    refused(ml_agents_run(tmp_path / "ball"), "of ML-Agents")


def test_ml_agents_own_sample_run_is_left_as_it_is(tmp_path: Path) -> None:
    if "MLAGENTS_DATA" not in os.environ:
        pytest.skip("MLAGENTS_DATA does not name the folder of ML-Agents' sample files")
    sample = Path(os.environ["MLAGENTS_DATA"], "results/first3DBallRun")
    refused(Path(shutil.copytree(sample, tmp_path / "ball")), "of ML-Agents")


def test_a_run_of_ml_agents_that_was_killed_is_known_by_its_checkpoints(tmp_path: Path) -> None:
    refused(write(tmp_path / "ball", Ball__Ball100DOTpt="pickle"), "of ML-Agents")


def test_ml_agents_run_in_a_folder_of_ours_is_left_as_it_is(tmp_path: Path) -> None:
    """Both have the same default folder for results, and its --force does not clear up."""
    with RunFolder(tmp_path, "ball") as folder:
        folder.open()
        folder.events.write_text('{"v": 1, "n": 1}\n')
    refused(ml_agents_run(folder.path), "of ML-Agents")


def test_a_folder_with_a_users_own_files_is_left_as_it_is(tmp_path: Path) -> None:
    folder = write(tmp_path / "thesis", chapterDOTtex="\\section", figures__oneDOTpng="", eventsDOTjsonl="[1]\n")
    refused(folder, r"\(chapter.tex, events.jsonl, figures\)")


def test_many_files_are_not_all_named(tmp_path: Path) -> None:
    refused(write(tmp_path / "a", **{f"file{number}": "" for number in range(9)}), r"\(file0, file1, file2, \.\.\.\)")


def test_a_lock_of_another_program_makes_no_run_of_a_folder(tmp_path: Path) -> None:
    refused(write(tmp_path / "daemon", runDOTlock="4711\n", stateDOTdb="rows"), r"\(run.lock, state.db\)")
    refused(
        write(tmp_path / "server", runDOTlock="4711\n", configurationDOTyaml="port: 80"),
        r"\(configuration.yaml, run.lock\)",
    )


def test_a_whole_run_refuses_with_exit_code_2_and_touches_nothing(tmp_path: Path) -> None:
    ml_agents_run(tmp_path / "results/run")
    before = picture(tmp_path)
    for resume, force in FLAGS:
        settings = {"resume": resume, "force": force}
        run = run_to_end(configuration(tmp_path, {"Line": behavior()}, checkpoint_settings=settings))
        assert ending(run).exit_code == 2
        assert "of ML-Agents" in ending(run).reason
        assert picture(tmp_path) == before


CONFIGURED = "default_settings: null\nbehaviors: {}\n"
KILLED: list[dict[str, str]] = [
    {},
    {"runDOTlock": ""},
    {"runDOTlock": "4711\n"},
    {"runDOTlock": "4711\n", "run_logs__workerDOTlog": ""},
    {"runDOTlock": "4711\n", "DOTtmp-configurationDOTyaml": "beh"},
    {"runDOTlock": "4711\n", "configurationDOTyaml": CONFIGURED},
    {"runDOTlock": "4711\n", "configurationDOTyaml": CONFIGURED, "eventsDOTjsonl": ""},
    {"runDOTlock": "4711\n", "configurationDOTyaml": CONFIGURED, "Line__DOTtmp-Line-5DOTonnx": "", "a": "b"},
    {"eventsDOTjsonl": '{"v": 1, "n": 1, "t": 1.5, "event": "RunStateChanged", "state": "starting"}\n'},
]


@pytest.mark.parametrize("files", KILLED)
@pytest.mark.parametrize(("resume", "force"), FLAGS)
def test_a_run_that_was_killed_at_any_early_moment_can_be_tried_again(
    tmp_path: Path, files: dict[str, str], resume: bool, force: bool
) -> None:
    (tmp_path / "walk").mkdir()
    write(tmp_path / "walk", **files)
    with RunFolder(tmp_path, "walk") as folder:
        folder.open(resume, force)


def test_a_run_is_known_by_its_checkpoints_alone(tmp_path: Path) -> None:
    """What matters was copied to another machine."""
    store = CheckpointStore(RunFolder(tmp_path, "walk").behavior("Walker").checkpoints, "Walker", 5)
    store.save(100, State(), None, "final")
    with RunFolder(tmp_path, "walk") as folder:
        folder.open(resume=True)


def test_a_run_that_was_killed_before_its_first_checkpoint_starts_from_scratch_and_says_so(tmp_path: Path) -> None:
    write(tmp_path / "results/run", runDOTlock="4711\n", configurationDOTyaml=CONFIGURED)
    config = configuration(tmp_path, {"Line": behavior()}, checkpoint_settings={"resume": True})
    run = run_to_end(config)
    assert run.launch.exit_code == 0
    said = [event.message for event in run.of(LogEmitted) if event.level == "warning"]
    assert len(said) == 1


@pytest.mark.parametrize(
    ("make", "expected"),
    [(ml_agents_run, "of ML-Agents"), (lambda path: write(path, a="b"), r"\(a\)")],
)
def test_nothing_is_initialized_from_another_programs_folder(tmp_path: Path, make, expected: str) -> None:
    make(tmp_path / "other")
    before = picture(tmp_path)
    with pytest.raises(ConfigError, match=f"^--initialize-from other: .*{expected}"):
        RunFolder(tmp_path, "other").require_exists("--initialize-from")
    assert picture(tmp_path) == before


@pytest.mark.parametrize(
    "left", ["Line/checkpoints/Line-5/x", "Line/checkpoints.previous/Line-5/x", "Line.onnx", "Line/Line-5.onnx"]
)
def test_a_run_that_has_learned_something_is_only_replaced_with_force(tmp_path: Path, left: str) -> None:
    folder = write(tmp_path / "walk", runDOTlock="4711\n", configurationDOTyaml=CONFIGURED)
    (folder / left).parent.mkdir(parents=True, exist_ok=True)
    (folder / left).write_text("learned")
    with pytest.raises(ConfigError, match=f"^{folder} .*--force"):
        RunFolder(tmp_path, "walk").open()


def test_a_run_that_has_reported_summaries_is_only_replaced_with_force(tmp_path: Path) -> None:
    """It was killed before its first checkpoint, late enough for curves."""
    config = configuration(tmp_path, {"Line": behavior()})
    run = run_to_end(config)
    shutil.rmtree(run.folder / "Line/checkpoints")
    for policy in [*run.folder.glob("*.onnx"), *run.folder.glob("*/*.onnx")]:
        policy.unlink()
    before = picture(run.folder)
    assert "--force" in ending(run_to_end(config)).reason
    assert picture(run.folder) == before


def test_a_run_that_failed_before_its_first_step_is_tried_again_without_force(tmp_path: Path) -> None:
    failing = configuration(tmp_path, {"Line": behavior()}, env="tests.running.environments:Breaking")
    run = run_to_end(failing)
    assert run.launch.exit_code == 3
    assert not list(run.folder.rglob("checkpoints/*")), "nothing was learned that could be saved"
    assert not list(run.folder.rglob("*.onnx"))
    again = run_to_end(configuration(tmp_path, {"Line": behavior()}))
    assert again.launch.exit_code == 0
    assert [event for event in again.of(LogEmitted) if event.message.startswith(f"{run.folder}: ")]


def test_a_run_without_a_checkpoint_starts_again_from_its_initial_one(tmp_path: Path) -> None:
    first = run_to_end(configuration(tmp_path, {"Line": behavior()}, checkpoint_settings={"run_id": "first"}))
    (initial,) = map(str, first.folder.glob("Line/checkpoints/*"))
    write(tmp_path / "results/run", runDOTlock="4711\n", configurationDOTyaml=CONFIGURED)
    settings = {"Line": behavior(init_path=initial)}
    run = run_to_end(configuration(tmp_path, settings, checkpoint_settings={"resume": True}))
    said = [event.message for event in run.of(LogEmitted) if event.source == "Line" and event.level != "debug"]
    assert said[1] == f"loaded {initial}"


def test_what_a_killed_process_was_writing_is_swept_by_the_next_writer_alone(tmp_path: Path) -> None:
    run = run_to_end(configuration(tmp_path, {"Line": behavior()}))
    names = [".tmp-Line.onnx", "run_logs/.tmp-timers.json", "Line/.tmp-Line-5.onnx", "Line/policies/.tmp-a.onnx"]
    left = [run.folder / name for name in (*names, "Line/checkpoints/.tmp-Line-5/state.json", "Line/.tmp-replay")]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("half")
    with pytest.raises(ConfigError):
        RunFolder(run.folder.parent, "run").open()
    assert all(path.exists() for path in left)
    with RunFolder(run.folder.parent, "run") as folder:
        folder.open(resume=True)
        assert not any(path.exists() for path in left)
        assert not [path for path in run.folder.rglob("*") if path.name.startswith(".tmp-")]
        assert len(list(run.folder.glob("Line/checkpoints/*/state.json"))) == 1


def test_a_results_folder_that_cannot_be_made_is_named_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for results in (tmp_path / "file/below", tmp_path / ("x" * 300), Path("/proc/results")):
        for settings in ({"run_id": "a"}, {"run_id": None}, {"run_id": "a", "force": True}):
            paths = {"results_dir": str(results), **settings}
            run = run_to_end(configuration(tmp_path, {"Line": behavior()}, checkpoint_settings=paths))
            assert ending(run).exit_code == 2
            assert "--results-dir" in ending(run).reason


WANDERING = """
import os
from rl_tui.engine.sampling.environments.toys.line import Line
def make():
    os.chdir("/")
    return Line("Line", 4)
"""


def test_an_environment_that_changes_the_working_directory_does_not_move_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wandering.py").write_text(WANDERING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    first = run_to_end(configuration(Path(), {"Line": behavior()}, checkpoint_settings={"run_id": "first"}))
    (initial,) = first.folder.glob("Line/checkpoints/*")
    settings = {"Line": behavior(init_path=str(initial.relative_to(tmp_path)))}
    run = run_to_end(configuration(Path(), settings, env="wandering:make"))
    assert Path.cwd() == Path("/")
    assert run.launch.exit_code == 0, ending(run)
    assert {path.name for path in (tmp_path / "results/run").iterdir()} >= {"Line", "Line.onnx", "events.jsonl"}


@pytest.mark.parametrize(
    "name",
    [
        "events.jsonl",
        "inference.jsonl",
        "run_logs",
        "run_logs/timers.json",
        "Line/checkpoints",
        "Line/checkpoints.abandoned",
        "Line/policies",
        "screenshots",
    ],
)
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_inside_a_runs_folder_is_refused_and_not_written_through(
    tmp_path: Path, name: str, exists: bool
) -> None:
    folder = write(tmp_path / "walk", runDOTlock="4711\n", configurationDOTyaml=CONFIGURED)
    elsewhere = write(tmp_path / "elsewhere", kept="precious") if exists else tmp_path / "missing"
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).symlink_to(elsewhere)
    before = picture(tmp_path)
    for resume, force in FLAGS:
        with (
            RunFolder(tmp_path, "walk") as run,
            pytest.raises(ConfigError, match=f"^{run.path}/{name}: "),
        ):
            run.open(resume, force)
        assert picture(tmp_path) == before


def test_a_lock_that_is_a_link_makes_no_run_of_a_folder(tmp_path: Path) -> None:
    folder = write(tmp_path / "walk", configurationDOTyaml=CONFIGURED)
    (folder / "run.lock").symlink_to(write(tmp_path / "elsewhere", kept="4711\n") / "kept")
    refused(folder, r"\(configuration.yaml, run.lock\)")
