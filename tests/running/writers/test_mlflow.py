"""Runs recorded by the real library in a local database, read back through its client."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.running.writers import guarded
from rl_tui.engine.session.messages import AddNote, LogEmitted, MetricsReported, SetHyperparameter, Stop
from tests.end_to_end.program import finish, surroundings
from tests.running.runs import ENDLESS, LiveRun, behavior, configuration, live

ONE_WRITER = """\
import sys
from importlib.util import find_spec
from pathlib import Path
from rl_tui.engine.running.writers.base import WriterContext
from rl_tui.engine.running.writers.mlflow import MlflowWriter
from rl_tui.engine.running.writers.settings import MlflowSettings

folder = Path(sys.argv[1])
folder.mkdir()
MlflowWriter(MlflowSettings(), WriterContext(folder.name, folder, 0.0, False, {}, lambda _: folder, print)).close()
"""

NEEDED = ("mlflow", "sqlalchemy", "alembic")
pytestmark = [
    pytest.mark.skipif(not all(map(find_spec, NEEDED)), reason=f"not all of {', '.join(NEEDED)} are installed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # in the code of libraries
]


@pytest.fixture(autouse=True)
def local(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the user's is read, nothing is sent, and no slow disk ends a writer early."""
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setattr(guarded, "CLOSING_SECONDS", 60.0)
    monkeypatch.chdir(tmp_path)


def config(folder: Path, beta: float, **changes: Any) -> RunConfig:
    settings = behavior(max_steps=ENDLESS, hyperparameters__beta=beta)
    writers = {"mlflow": {"experiment": "walking", "tags": {"team": "legs"}}}
    return configuration(folder, {"Walker": settings}, writers=writers, **changes)


def train(folder: Path, beta: float, **changes: Any) -> LiveRun:
    """A run of a few summaries, in which a hyperparameter is changed and a note is written."""
    with live(config(folder, beta, **changes)) as run:
        run.wait_for(MetricsReported)
        assert run.send(SetHyperparameter("Walker", "beta", 0.25)).ok
        assert run.send(AddNote("it limps")).ok
        run.wait_for(MetricsReported, after=len(run.mail))
        run.send(Stop())
        assert run.wait() == 0
    assert [event for event in run.of(LogEmitted) if event.source == "writer mlflow" and event.level != "info"] == []
    return run


@pytest.mark.slow
def test_run_and_its_resumed_rest_are_one_run(tmp_path: Path) -> None:
    run = train(tmp_path, 0.01)
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{run.folder.parent / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("walking")
    assert experiment is not None
    (found,) = client.search_runs([experiment.experiment_id])
    assert (found.info.run_name, found.info.status) == ("run", "FINISHED")
    assert found.data.tags["team"] == "legs"
    assert found.data.params["behaviors.Walker.hyperparameters.beta"] == "0.01"
    assert found.data.params["behaviors.Walker.trainer_type"] == "ppo"
    assert found.data.params["env_settings.env"] == "toy:line"
    summaries = run.of(MetricsReported)
    for tag in ("Losses/Policy Loss", "Environment/Episode Length"):
        history = client.get_metric_history(found.info.run_id, f"Walker/{tag}")
        assert [(each.step, each.value) for each in history] == [
            (event.step, pytest.approx(event.metrics[tag])) for event in summaries if tag in event.metrics
        ]
    assert "Walker/Is Training" not in found.data.metrics
    assert found.data.metrics["Walker/Hyperparameters/beta"] == 0.25
    description = found.data.tags["mlflow.note.content"].splitlines()
    assert "- Note: it limps" in description
    assert any(" saved" in line for line in description)

    train(tmp_path, 0.02, checkpoint_settings={"resume": True})
    (again,) = client.search_runs([experiment.experiment_id])
    assert (again.info.run_id, again.info.status) == (found.info.run_id, "FINISHED")
    assert again.data.params["behaviors.Walker.hyperparameters.beta"] == "0.01"
    assert again.data.tags["behaviors.Walker.hyperparameters.beta"] == "0.02"
    assert again.data.tags["mlflow.note.content"].splitlines()[: len(description)] == description
    assert max(each.step for each in client.get_metric_history(again.info.run_id, "Walker/Policy/Entropy")) > max(
        event.step for event in summaries
    )
    assert os.listdir(tmp_path) == ["results"]
    assert sorted(os.listdir(tmp_path / "results")) == ["mlflow.db", "mlflow.db.lock", "run"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_runs_that_start_at_once_stand_side_by_side_in_one_database(tmp_path: Path) -> None:
    """Each sets the database up, which fails where two do."""
    names = [f"seed-{number}" for number in range(3)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", ONE_WRITER, str(tmp_path / name)],
            cwd=tmp_path,
            env=surroundings(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for process in processes:
        exit_code, stdout, stderr = finish(process, 600)
        assert exit_code == 0, stdout + stderr
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("rl-tui")
    assert experiment is not None
    assert sorted(run.info.run_name for run in client.search_runs([experiment.experiment_id])) == names
