"""Training in Unity players and in the Editor, by the real command line; a stand-in plays both."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from rl_tui.engine.sampling.environments.unity.ports import EDITOR_PORT, is_free
from rl_tui.engine.session.messages import CheckpointSaved, EnvironmentRestarted, EnvironmentRestarting, PolicyExported
from rl_tui.engine.specs import UnityPackage
from rl_tui.engine.storage.checkpoints import CheckpointStore
from tests.end_to_end.program import events_of, finish, read_until, run, start
from tests.sampling.unity.test_hostile_connections import called
from tests.unity_player.executable import make_player

BALL = """\
behaviors:
  3DBall:
    trainer_type: ppo
    hyperparameters: {batch_size: 64, buffer_size: 2048}
    network_settings: {hidden_units: 32, num_layers: 1}
    time_horizon: 200
    max_steps: 10000
    summary_freq: 2000
"""
UNENDING = BALL.replace("10000", "1e9")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "3DBall.yaml").write_text(BALL)
    make_player(tmp_path)
    return tmp_path


def said_by_players(run_logs: Path) -> list[dict[str, object]]:
    """Every object in the logs of the players, in their order."""
    lines = [line for log in sorted(run_logs.glob("Player-*.log")) for line in log.read_text().splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


def seeds_of_players(results: Path) -> list[int]:
    """What they were told, in the order of their logs."""
    return [int(str(each["seed"])) for each in said_by_players(results / "run_logs") if "seed" in each]


def players_of(folder: Path) -> list[int]:
    """The processes that run the players of that folder."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if str(folder) in process.cwd() and "tests.unity_player" in process.cmdline():
                found.append(process.pid)
    return found


@pytest.mark.slow
def test_players_train_with_the_flags_of_mlagents_learn_and_one_that_crashes_is_started_again(folder: Path) -> None:
    flags = [
        "--env=./player",
        "--num-envs",
        "2",
        "--no-graphics",
        "--time-scale",
        "7",
        "--width=90",
        "--num-areas",
        "2",
        "--seed=7",
    ]
    flags += ["--set", "env_settings.training_analytics=true"]
    trouble = ["--env-args", "--trouble", "kill@10", "--trouble-once", "once", "--slow-step", "0.01", "--level", "3"]
    exit_code, stdout, stderr = run("3DBall.yaml", "--no-ui", "--run-id", "u1", *flags, *trouble, folder=folder)
    assert (exit_code, stderr) == (0, ""), stdout
    results = folder / "results/u1"
    events = events_of(results)
    [restarting] = [event for event in events if isinstance(event, EnvironmentRestarting)]
    assert "killed by SIGKILL" in restarting.reason
    assert [event.worker for event in events if isinstance(event, EnvironmentRestarted)] == [restarting.worker]
    assert (results / "3DBall.onnx").stat().st_size > 0
    newest = CheckpointStore(results / "3DBall/checkpoints", "3DBall", 0).list()[-1]
    assert newest.spec is not None
    assert newest.spec.unity_package == UnityPackage("3.0.0", "HWC")
    said = said_by_players(results / "run_logs")
    arguments = [each["arguments"] for each in said if "arguments" in each]
    assert all(isinstance(words, list) and {"-nographics", "-batchmode", "--level"} <= {*words} for words in arguments)
    settings = {(each["key"], str(each["value"])) for each in said if each.get("channel") == "engine configuration"}
    assert {("resolution", "[90, 84]"), ("time_scale", "7.0")} <= settings
    assert {each["kind"] for each in said if each.get("channel") == "training analytics"} == {
        "TrainingEnvironmentInitialized",
        "TrainingBehaviorInitialized",
    }
    assert {each["num_areas"] for each in said if "num_areas" in each} == {2}
    ports = {each["port"] for each in said if "port" in each}
    assert len(ports) in (2, 3), "the port of the one that is started again may be taken by then, as by another test"
    assert sorted(seeds_of_players(results)) == sorted([7, 8, 7 + restarting.worker + 2])
    assert players_of(folder) == []

    longer = ["--resume", "--seed=7", "--set", "behaviors.3DBall.max_steps=11000"]
    exit_code, stdout, stderr = run(
        "3DBall.yaml", "--no-ui", "--run-id", "u1", "--env=./player", *longer, *trouble, folder=folder
    )
    assert (exit_code, stderr) == (0, ""), stdout
    last = [event for event in events_of(results) if isinstance(event, CheckpointSaved)][-1]
    assert last.step >= 11000
    assert max(seeds_of_players(results)) >= 7 + 10000, "other episodes than before"

    (folder / "once").unlink()  # its player is killed, too
    exit_code, stdout, stderr = run("evaluate", "u1", "--episodes", "3", "--onnx", folder=folder)
    assert exit_code == 0, stdout + stderr
    assert re.fullmatch(r"unity:.* killed by SIGKILL.*; worker 0 is started again \(restart 1\)\n", stderr)
    assert re.search(r"^episodes +3 +3$", stdout, re.MULTILINE)
    assert players_of(folder) == []


@pytest.mark.slow
def test_player_without_a_configuration_is_checked_and_trained_with_the_defaults(folder: Path) -> None:
    exit_code, stdout, stderr = run("check-env", "./player", "--steps", "40", "--num-envs", "1", folder=folder)
    assert (exit_code, stderr) == (0, ""), stdout
    assert "a vector of 8, float32" in stdout
    assert stdout.endswith("./player is ready for training\n")
    exit_code, stdout, stderr = run(
        "--env", "player", "--no-ui", "--set", "default_settings.max_steps=1000", folder=folder
    )
    assert exit_code == 0, stdout + stderr
    assert stderr == "no CONFIG: every behavior is trained by PPO with its default settings\n"
    [exported] = [event for event in events_of(folder / "results/ppo") if isinstance(event, PolicyExported)]
    assert Path(exported.path).name == "3DBall-1008.onnx"


@pytest.mark.parametrize(
    ("words", "exit_code", "reason"),
    [
        (
            ["--env", "player", "--env-args", "--behavior", "Bal"],
            2,
            "has no such behavior, it has Bal. Did you mean Bal",
        ),
        (
            ["--env", "player", "--timeout-wait", "1", "--env-args", "--never-connects"],
            3,
            "did not connect to port",
        ),
        (
            ["--env", "player", "--env-args", "--communication-version", "2.0.0"],
            3,
            "speaks version 2.0.0 of the protocol",
        ),
    ],
)
def test_player_that_cannot_be_trained_in_is_refused_with_the_reason(
    folder: Path, words: list[str], exit_code: int, reason: str
) -> None:
    ended, stdout, stderr = run("3DBall.yaml", "--no-ui", *words, folder=folder)
    assert ended == exit_code, stdout
    assert reason in stderr
    assert players_of(folder) == []


def test_a_stop_does_not_wait_for_players_that_start(folder: Path) -> None:
    flags = ["--env=./player", "--timeout-wait", "300", "--env-args", "--never-connects"]
    process = start("3DBall.yaml", "--no-ui", "--run-id", "s", *flags, folder=folder)
    read_until(process, "starting a player")
    process.send_signal(signal.SIGINT)
    exit_code, stdout, stderr = finish(process)
    assert (exit_code, stderr) == (130, ""), stdout
    assert "Run stopped: before training began (exit code 130)" in stdout
    assert not (folder / "results/s").exists(), "nothing to resume from"
    assert players_of(folder) == []


@contextlib.contextmanager
def play(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The Editor, with Play pressed within."""
    editor = subprocess.Popen([folder / "player", "--editor"], cwd=folder)
    try:
        yield editor
    finally:
        editor.kill()
        editor.wait()


@pytest.mark.slow
def test_editor_is_waited_for_and_play_may_be_stopped_and_pressed_again(folder: Path) -> None:
    if not is_free(EDITOR_PORT):
        pytest.skip(f"port {EDITOR_PORT} is taken")
    (folder / "3DBall.yaml").write_text(UNENDING)
    process = start("3DBall.yaml", "--no-ui", "--run-id", "ed", folder=folder)
    said = read_until(process, "Press Play in the Unity Editor")
    assert "no environment is named: it trains in the Unity Editor. For another, set env (or --env) to gymnas" in said
    assert "yet" not in said, "no behavior is missed before it is there"
    for _ in range(3):  # more failures than a minute may have
        assert called(EDITOR_PORT, b"no message").startswith("PERMISSION_DENIED")
    with play(folder):
        said = read_until(process, "Mean Reward")
        assert {"was refused" in line for line in said.splitlines() if "WARNING" in line} == {True}
    assert "ERROR" not in read_until(process, "Press Play in the Unity Editor")
    with play(folder):
        read_until(process, "Mean Reward")
        process.send_signal(signal.SIGINT)
        exit_code, stdout, stderr = finish(process)
    assert (exit_code, stderr) == (130, ""), stdout
    assert re.search(r"step \d+ saved", stdout)
    assert not [event for event in events_of(folder / "results/ed") if isinstance(event, EnvironmentRestarting)]
