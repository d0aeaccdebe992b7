"""Runs in which a behavior appears while others train."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.session.messages import (
    Attend,
    BehaviorStarted,
    BehaviorStateChanged,
    CheckpointSaved,
    EnvironmentFailed,
    EpisodesFinished,
    EvaluationReported,
    HyperparametersReported,
    LogEmitted,
    MetricsReported,
    Pause,
    PolicyExported,
    ProgressReported,
    Resume,
    RollBack,
    RunStateChanged,
    SetHyperparameter,
    Stop,
    TimeSplit,
    WorkerFailed,
)
from rl_tui.engine.storage.checkpoint_format import read
from tests.running.growing import RELEASE
from tests.running.runs import ENDLESS, THREADED, LiveRun, behavior, configuration, ending, live, run_to_end, tensors_of

GROWING = "tests.running.growing:Growing"


def growing(folder: Path, at: int = 100, behaviors: Any = None, env: str = GROWING, **changes: Any) -> RunConfig:
    """Two environments, with default settings for what has none, unless `behaviors` has everything."""
    settings = {"env_kwargs": {"at": at}, "num_envs": 2} | changes.pop("env_settings", {})
    behaviors = behaviors or {name: behavior() for name in ("Left", "Right")}
    return configuration(folder, behaviors, env, env_settings=settings, **changes)


def states(run: LiveRun, name: str) -> list[str]:
    return [event.state for event in run.of(BehaviorStateChanged) if event.behavior == name]


def warnings(run: LiveRun) -> str:
    return "\n".join(event.message for event in run.of(LogEmitted) if event.level == "warning")


@pytest.mark.parametrize(("threaded", "workers"), [(False, 0), (True, 0), (False, 2)])
def test_behavior_that_appears_trains_to_its_end(tmp_path: Path, threaded: bool, workers: int) -> None:
    behaviors = {name: behavior(threaded=threaded, max_steps=400) for name in ("Left", "Right")}
    run = run_to_end(growing(tmp_path, behaviors=behaviors, env_settings={"num_workers": workers}))
    assert run.launch.exit_code == 0, ending(run).reason
    assert f"{GROWING} has no behavior Right yet; it is trained from when it appears" in warnings(run)
    for name in ("Left", "Right"):
        assert states(run, name) == ["training", "finished"]
        assert [event.step for event in run.of(MetricsReported) if event.behavior == name] == [100, 200, 300, 400]
        for kind in (EpisodesFinished, ProgressReported, TimeSplit, HyperparametersReported, PolicyExported):
            assert name in {event.behavior for event in run.of(kind)}, kind  # type: ignore[attr-defined]  # all have one
        saved = [event for event in run.of(CheckpointSaved) if event.behavior == name][-1]
        assert 400 <= saved.step < 400 + 64
        assert (run.folder / f"{name}.onnx").exists()
    started = {event.behavior: event for event in run.of(BehaviorStarted)}
    assert started["Left"].num_agents == 2
    # Of the instances that have met it: in worker processes one may be a step ahead of the other.
    assert started["Right"].num_agents in ((2, 4) if workers else (4,))
    sampled = [event.sampled for event in run.of(ProgressReported) if event.behavior == "Left"]
    at = [run.events.index(event) for event in run.of(BehaviorStarted)]
    assert 0 < at[0] < at[1]
    assert sampled[-1] > 200
    status = json.loads((run.folder / "run_logs/training_status.json").read_text())
    assert {"Left", "Right"} < set(status)
    timers = json.loads((run.folder / "run_logs/timers.json").read_text())
    assert "Right" in json.dumps(timers)


def test_behavior_without_an_entry_trains_with_the_default_settings(tmp_path: Path) -> None:
    config = growing(tmp_path, behaviors={"Left": behavior()})
    assert config.default_settings is None
    config = config.model_copy(update={"default_settings": config.behaviors["Left"]})
    run = run_to_end(config)
    assert run.launch.exit_code == 0
    assert states(run, "Right") == ["training", "finished"]
    assert "yet" not in warnings(run)


def test_default_settings_that_are_not_supported_end_the_run_once_a_behavior_needs_them(tmp_path: Path) -> None:
    config = growing(tmp_path, at=60, behaviors={"Left": behavior(max_steps=ENDLESS)})
    defaults = config.behaviors["Left"].model_copy(update={"init_path": "Left.pt"})
    run = run_to_end(config.model_copy(update={"default_settings": defaults}))
    assert run.launch.exit_code == 2
    assert "default_settings.init_path: starting from a PyTorch file" in ending(run).reason


@pytest.mark.parametrize("threaded", THREADED)
def test_behavior_without_settings_ends_the_run_with_the_others_saved(tmp_path: Path, threaded: bool) -> None:
    run = run_to_end(growing(tmp_path, at=60, behaviors={"Left": behavior(threaded=threaded, max_steps=ENDLESS)}))
    assert run.launch.exit_code == 2
    assert ending(run).state == "failed"
    assert "the environment has a behavior 'Right', the file has Left" in ending(run).reason
    assert states(run, "Left") == ["training", "failed"]
    assert not run.of(EnvironmentFailed)
    assert not run.of(WorkerFailed)
    assert read(Path(run.of(CheckpointSaved)[-1].path))[1].step > 0
    assert not (run.folder / "Right").exists()


def test_behavior_without_settings_stops_every_environment_of_the_run(tmp_path: Path) -> None:
    behaviors = {"Left": behavior(max_steps=ENDLESS), "Pole": behavior(max_steps=ENDLESS)}
    config = configuration(
        tmp_path,
        behaviors,
        {"Left": "tests.running.growing:Held", "Pole": "toy:line"},
        env_settings={"env_kwargs": {"Left": {"at": 60}}, "num_envs": 2},
    )
    RELEASE.clear()
    with live(config) as run:
        try:
            run.wait_for(MetricsReported, lambda event: event.behavior == "Pole")
        finally:
            RELEASE.set()
        assert run.wait() == 2
    assert "'Right'" in ending(run).reason
    assert states(run, "Pole") == ["training", "stopped"]
    assert {event.behavior for event in run.of(CheckpointSaved)} == {"Left", "Pole"}


@pytest.mark.parametrize("threaded", THREADED)
def test_late_behavior_obeys_commands_and_resumes_where_it_stopped(tmp_path: Path, threaded: bool) -> None:
    behaviors = {name: behavior(threaded=threaded, max_steps=ENDLESS) for name in ("Left", "Right")}
    with live(growing(tmp_path, behaviors=behaviors)) as run:
        run.wait_for(MetricsReported, lambda event: event.behavior == "Right")
        assert run.send(SetHyperparameter("Right", "learning_rate", 1e-4)).ok
        assert run.send(Pause("Right")).ok
        assert run.of(RunStateChanged)[-1].state == "paused" or run.wait_for(
            RunStateChanged, lambda event: event.state == "paused"
        )
        assert run.send(Resume()).ok
        assert run.send(Stop()).ok
    assert run.wait() == 0
    saved = {event.behavior: event for event in run.of(CheckpointSaved)}
    assert states(run, "Right") == ["training", "paused", "training", "stopped"]
    resumed = growing(tmp_path, behaviors=behaviors, checkpoint_settings={"resume": True})
    with live(resumed) as again:
        again.wait_for(BehaviorStarted, lambda event: event.behavior == "Left")
        status = json.loads((again.folder / "run_logs/training_status.json").read_text())
        assert status["Right"]["checkpoints"][-1]["steps"] == saved["Right"].step
        started = again.wait_for(BehaviorStarted, lambda event: event.behavior == "Right")
        assert started.step == saved["Right"].step
        again.wait_for(MetricsReported, lambda event: event.behavior == "Right")
        assert again.send(Stop()).ok
    before, after = (tensors_of(Path(path)) for path in (saved["Right"].path, again.of(CheckpointSaved)[-1].path))
    assert before.keys() == after.keys()


@pytest.mark.parametrize("workers", [0, 1])
def test_environment_may_begin_without_any_behavior(tmp_path: Path, workers: int) -> None:
    settings = {"num_workers": workers}
    run = run_to_end(growing(tmp_path, at=3, env="tests.running.growing:Empty", env_settings=settings))
    assert run.launch.exit_code == 0
    assert "has no behaviors yet; Left, Right: each is trained from when it appears" in warnings(run)
    for name in ("Left", "Right"):
        assert states(run, name) == ["training", "finished"]


def test_environment_that_fails_before_it_has_a_behavior_fails_the_run(tmp_path: Path) -> None:
    run = run_to_end(growing(tmp_path, env="tests.running.growing:NeverAny"))
    assert run.launch.exit_code == 3
    [failure] = run.of(EnvironmentFailed)
    assert "step raised RuntimeError: lost" in failure.reason
    assert (ending(run).state, ending(run).reason) == ("failed", failure.reason)


def test_checkpoint_that_a_late_behavior_is_to_start_from_must_be_there_at_the_start(tmp_path: Path) -> None:
    run_to_end(growing(tmp_path, behaviors={"Left": behavior(max_steps=64)}, checkpoint_settings={"run_id": "first"}))
    config = growing(tmp_path, checkpoint_settings={"initialize_from": "first"})
    run = run_to_end(config)
    assert run.launch.exit_code == 7
    assert ending(run).reason == "--initialize-from first: it has no checkpoint of Right"
    assert not run.of(BehaviorStarted)


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value")
@pytest.mark.parametrize("threaded", THREADED)
def test_late_behavior_that_diverged_is_rolled_back_and_appears_again(tmp_path: Path, threaded: bool) -> None:
    """New environments have not met it yet. The other behavior has finished, and acts on."""
    RELEASE.clear()
    behaviors = {"Left": behavior(max_steps=128), "Right": behavior(threaded=threaded, checkpoint_interval=64)}
    with live(growing(tmp_path, behaviors=behaviors, at=20, env="tests.running.growing:Diverging")) as run:
        run.launch.send(Attend(True, "screen"))
        failure = run.wait_for(BehaviorStateChanged, lambda event: event.state == "failed")
        assert (failure.behavior, failure.can_roll_back) == ("Right", True)
        run.wait_for(RunStateChanged, lambda event: event.state == "paused")
        good = run.wait_for(CheckpointSaved, lambda event: event.behavior == "Right" and event.reason != "error")
        RELEASE.set()
        assert run.send(RollBack("Right", good.path)).ok
        assert run.wait() == 0, run.recent_events()
    assert states(run, "Left") == ["training", "finished"]
    assert states(run, "Right") == ["training", "failed", "training", "finished"]


@pytest.mark.parametrize("at", [10, 80])
def test_behaviors_of_one_environment_are_evaluated_together(at: int, tmp_path: Path) -> None:
    """With 80, Right appears in the evaluation of Left before training has met it."""
    behaviors = {
        name: behavior(max_steps=600, evaluation={"interval": 100, "episodes": 60}) for name in ("Left", "Right")
    }
    run = run_to_end(growing(tmp_path, at=at, behaviors=behaviors))
    assert run.launch.exit_code == 0, run.recent_events()
    for name in ("Left", "Right"):
        evaluated = [event for event in run.of(EvaluationReported) if event.behavior == name]
        assert evaluated[-1].step >= 500
        assert {event.episodes for event in evaluated} == {60}
    waits = "evaluation waits until behavior Right appears in training"
    assert [event.message for event in run.of(LogEmitted) if "evaluation" in event.message] == [waits] * (at == 80)


def test_late_behavior_plays_with_inference(tmp_path: Path) -> None:
    run_to_end(growing(tmp_path))
    config = growing(tmp_path, at=20, checkpoint_settings={"resume": True, "inference": True})
    with live(config) as run:
        run.wait_for(EpisodesFinished, lambda event: event.behavior == "Right")
        assert run.send(Stop()).ok
    assert run.wait() == 0
    assert states(run, "Right") == ["training", "stopped"]


def test_agents_that_leave_and_environments_that_cannot_be_closed_are_warned_of(tmp_path: Path) -> None:
    """No segment ever ends, so that no block comes."""
    vanishing = growing(tmp_path, 10**9, {"Left": behavior()}, "tests.running.growing:Vanishing")
    with live(vanishing) as run:
        warned = run.wait_for(LogEmitted, lambda event: "without the end of an episode" in event.message)
        assert run.send(Stop()).ok
    assert re.fullmatch(r"\d+ agents have left .*; their unfinished steps were dropped", warned.message)
    for instance in (0, 1):
        text = f"instance {instance}: close raised RuntimeError: stuck, at tests/running/growing.py:"
        assert text in warnings(run)


def test_behavior_without_settings_is_refused_with_the_name_that_may_be_meant(tmp_path: Path) -> None:
    run = run_to_end(growing(tmp_path, 3, {"Left": behavior(), "Righty": behavior()}))
    assert run.launch.exit_code == 2
    assert "the file has Left, Righty. Did you mean Right instead of Righty?" in ending(run).reason
    run = run_to_end(growing(tmp_path, 3, {"Lef": behavior()}, checkpoint_settings={"run_id": "other"}))
    assert run.launch.exit_code == 2
    assert "behaviors.Lef: tests.running.growing:Growing has no such behavior, it has Left. Did" in ending(run).reason
    settings: dict[str, Any] = {"env_settings": {"env_kwargs": {}}, "checkpoint_settings": {"run_id": "third"}}
    tag = growing(tmp_path, 3, {"Other": behavior()}, "pettingzoo:mpe2.simple_tag_v3", **settings)
    run = run_to_end(tag)
    assert "Add an entry for adversary and agent, or default_settings." in ending(run).reason
