"""Runs that learn from a teacher: another run, one of its checkpoints, or an exported file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rl_tui.engine.learning.bc.settings import HELD_OUT, LOSS
from rl_tui.engine.running.preflight import refusals
from rl_tui.engine.session.messages import (
    CheckpointSaved,
    EpisodesFinished,
    LogEmitted,
    MetricsReported,
    PolicyExported,
    RunStateChanged,
    WarningRaised,
)
from tests.running.runs import LiveRun, behavior, configuration, run_to_end
from tests.running.test_offline import demonstrations, offline  # noqa: F401  # the fixture of every test here

SCORE = "Evaluation/Cumulative Reward"
HYPER = {"batch_size": 32, "steps_per_update": 64, "samples_per_update": 320, "learning_rate": 1e-2}


@pytest.fixture
def teacher(tmp_path: Path) -> LiveRun:
    """A run that has learned to go to the side that is shown."""
    run = run_to_end(offline(tmp_path / "first", max_steps=6400))
    assert run.launch.exit_code == 0
    return run


def taught(folder: Path, teacher: object, changes: Any = None, **settings: Any) -> Any:
    hyper = HYPER | {"teacher": str(teacher)} | settings.pop("hyper", {})
    own = {"trainer_type": "bc", "hyperparameters": hyper, "max_steps": 1280} | settings
    return configuration(folder, {"A": behavior(**own)}, env="toy:one-step", **(changes or {}))


def logged(run: LiveRun) -> str:
    return "\n".join(event.message for event in run.of(LogEmitted))


@pytest.mark.parametrize("source", ["run", "checkpoint", "exported", "for unity"])
def test_a_student_does_what_its_teacher_does(tmp_path: Path, teacher: LiveRun, source: str) -> None:
    saved, exported = teacher.of(CheckpointSaved)[-1], teacher.of(PolicyExported)[-1]
    path = {
        "run": teacher.folder,
        "checkpoint": Path(saved.path),
        "exported": Path(exported.path),
        "for unity": teacher.folder / "A.onnx",
    }[source]
    run = run_to_end(taught(tmp_path, path, evaluation={"interval": 640, "episodes": 40}))
    assert run.launch.exit_code == 0, ending_of(run)
    assert [event.metrics[SCORE] for event in run.of(MetricsReported) if SCORE in event.metrics][-1] == 1.0
    assert run.of(EpisodesFinished), "its agents act"
    summary = [event.metrics for event in run.of(MetricsReported) if LOSS in event.metrics][-1]
    assert summary[LOSS] < 0.1
    assert summary[HELD_OUT] < 0.1
    assert summary["Policy/Labels"] > 1000
    assert not run.of(WarningRaised)
    used = saved.path if source in ("run", "checkpoint") else str(path)
    assert f"the teacher is {used}" in logged(run)


def ending_of(run: LiveRun) -> str:
    return run.of(RunStateChanged)[-1].reason


def test_a_resumed_run_has_its_labels(tmp_path: Path, teacher: LiveRun) -> None:
    run_to_end(taught(tmp_path, teacher.folder, max_steps=640))
    resumed = run_to_end(taught(tmp_path, teacher.folder, {"checkpoint_settings": {"resume": True}}))
    labels = [event.metrics["Policy/Labels"] for event in resumed.of(MetricsReported) if LOSS in event.metrics]
    assert min(labels) > 640
    assert "replay" in logged(resumed)


def test_a_run_can_begin_with_demonstrations_and_continue_with_a_teacher(tmp_path: Path, teacher: LiveRun) -> None:
    run = run_to_end(taught(tmp_path, teacher.folder, init_path=str(teacher.folder)))
    assert run.launch.exit_code == 0
    losses = [event.metrics[HELD_OUT] for event in run.of(MetricsReported) if HELD_OUT in event.metrics]
    assert losses[0] < 0.1, "it begins as its teacher ends"


def test_a_teacher_that_is_not_there_is_named_before_the_start(tmp_path: Path) -> None:
    config = taught(tmp_path, tmp_path / "none")
    (line,) = refusals(config)
    assert line.startswith(f"behaviors.A.hyperparameters.teacher: {tmp_path / 'none'}: there is no such file or folder")
    run = run_to_end(config)
    assert (run.launch.exit_code, ending_of(run)) == (2, line)


def test_a_teacher_of_another_task_is_refused_with_what_differs(tmp_path: Path, teacher: LiveRun) -> None:
    own = {"trainer_type": "bc", "hyperparameters": HYPER | {"teacher": str(teacher.folder)}}
    run = run_to_end(configuration(tmp_path, {"A": behavior(**own)}, env="gymnasium:CartPole-v1"))
    assert run.launch.exit_code == 2
    assert "behaviors.A.hyperparameters.teacher" in ending_of(run)
    assert "was trained with" in ending_of(run)
    assert "(here" in ending_of(run)


def test_a_file_of_another_task_is_refused(tmp_path: Path, teacher: LiveRun) -> None:
    own = {"trainer_type": "bc", "hyperparameters": HYPER | {"teacher": str(teacher.folder / "A.onnx")}}
    run = run_to_end(configuration(tmp_path, {"A": behavior(**own)}, env="gymnasium:CartPole-v1"))
    assert run.launch.exit_code == 2
    text = f"{teacher.folder / 'A.onnx'}: acts by other observations: obs_0 [1] (here obs_0 [4])"
    assert ending_of(run) == f"behaviors.A.hyperparameters.teacher: {text}"


def test_a_teacher_with_memory_is_not_supported_yet(tmp_path: Path) -> None:
    memory = {"memory": {"sequence_length": 8, "memory_size": 8}, "hidden_units": 8}
    remembering = run_to_end(offline(tmp_path / "first", max_steps=640, network_settings=memory))
    run = run_to_end(taught(tmp_path, remembering.folder))
    assert run.launch.exit_code != 0
    assert "a teacher with memory is not supported yet" in ending_of(run)


def test_a_checkpoint_away_from_its_run_is_refused(tmp_path: Path, teacher: LiveRun) -> None:
    moved = tmp_path / "moved"
    Path(teacher.of(CheckpointSaved)[-1].path).rename(moved)
    run = run_to_end(taught(tmp_path, moved))
    assert run.launch.exit_code != 0
    assert "name a checkpoint in its run" in ending_of(run)


@pytest.mark.parametrize(
    ("path", "found"), [("first/results/run/A", "a folder without checkpoints"), ("a.demo", "another file")]
)
def test_what_is_no_policy_is_named(tmp_path: Path, teacher: LiveRun, path: str, found: str) -> None:
    run = run_to_end(taught(tmp_path, tmp_path / path))
    assert run.launch.exit_code == 2
    must = "must be the folder of a run, a checkpoint in it, or an ONNX file"
    assert ending_of(run) == f"behaviors.A.hyperparameters.teacher: {tmp_path / path}: {must}, got {found}"


def test_the_id_of_a_run_is_completed(tmp_path: Path, teacher: LiveRun) -> None:
    config = taught(tmp_path / "first", "run")
    assert any(line.endswith(f"Did you mean {teacher.folder}?") for line in refusals(config))
