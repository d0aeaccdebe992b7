"""A behavior goes back to one of its checkpoints: what it resumes from, what is set aside, what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.session.messages import (
    Attend,
    BehaviorRolledBack,
    BehaviorStarted,
    BehaviorStateChanged,
    CheckpointRemoved,
    CheckpointSaved,
    EpisodesFinished,
    HyperparameterChanged,
    HyperparametersReported,
    LogEmitted,
    MetricsReported,
    Pause,
    ProgressReported,
    Resume,
    RollBack,
    RunStateChanged,
    SaveCheckpoint,
    SetHyperparameter,
    Stop,
)
from rl_tui.engine.session.view import RunView
from rl_tui.engine.storage.checkpoint_format import read
from tests.running import environments
from tests.running.runs import ENDLESS, THREADED, LiveRun, behavior, configuration, equal, live


def endless(folder: Path, resume: bool = False, **changes: Any) -> RunConfig:
    settings = behavior(max_steps=ENDLESS, keep_checkpoints=0, **changes)
    return configuration(folder, {"Walker": settings}, checkpoint_settings={"resume": resume})


def trained(run: LiveRun) -> None:
    """Updates have been made since this was called."""
    for _ in range(2):
        run.wait_for(MetricsReported, after=len(run.mail))


def saved(run: LiveRun) -> Path:
    """A new checkpoint, after some more training."""
    trained(run)
    return Path(run.send(SaveCheckpoint("Walker")).message)


def paused(run: LiveRun) -> None:
    assert run.send(Pause()).ok


def step_of(checkpoint: Path) -> int:
    return read(checkpoint)[1].step


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value")
@pytest.mark.parametrize(
    ("reward", "threaded"),
    [
        (3e38, False),
        (1e39, True),
        pytest.param(3e38, True, marks=pytest.mark.slow),
        pytest.param(1e39, False, marks=pytest.mark.slow),
    ],
)
def test_behavior_that_diverged_waits_to_be_rolled_back_where_a_user_watches(
    tmp_path: Path, threaded: bool, reward: float
) -> None:
    """3e38: the loss is no number; 1e39: the reward itself, and with it the environment is refused."""
    environments.RELEASE.clear()
    settings = behavior(max_steps=768, checkpoint_interval=128, threaded=threaded)
    kwargs = {"env_kwargs": {"reward": reward}, "num_envs": 1}
    config = configuration(tmp_path, {"Walker": settings}, "tests.running.environments:Diverging", env_settings=kwargs)
    with live(config) as run:
        run.launch.send(Attend(True, "screen"))
        failure = run.wait_for(BehaviorStateChanged, lambda event: event.state == "failed")
        assert failure.can_roll_back
        run.wait_for(RunStateChanged, lambda event: event.state == "paused")
        good = [event for event in run.of(CheckpointSaved) if event.reason != "error"][-1]
        environments.RELEASE.set()
        outcome = run.send(RollBack("Walker", good.path))
        assert (outcome.ok, outcome.message) == (True, f"resumed from step {good.step}, {good.path}")
        assert run.wait() == 0, run.recent_events()
        states = [event.state for event in run.of(BehaviorStateChanged)]
        assert states == ["training", "failed", "training", "finished"]
        assert 768 <= run.of(CheckpointSaved)[-1].step < 768 + 64


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value")
@pytest.mark.parametrize("leaves", ["stop", "unwatched"])
def test_behavior_that_is_not_rolled_back_ends_the_run_as_before(tmp_path: Path, leaves: str) -> None:
    environments.RELEASE.clear()
    settings = behavior(max_steps=768, checkpoint_interval=128)
    config = configuration(
        tmp_path, {"Walker": settings}, "tests.running.environments:Diverging", env_settings={"num_envs": 1}
    )
    with live(config) as run:
        run.launch.send(Attend(True, "screen"))
        run.wait_for(RunStateChanged, lambda event: event.state == "paused")
        if leaves == "stop":
            run.send(Stop())
        else:
            run.launch.send(Attend(False, "screen"))
        assert run.wait() == 5


@pytest.mark.parametrize(
    ("is_paused", "threaded"),
    [
        (False, False),
        (True, True),
        pytest.param(False, True, marks=pytest.mark.slow),
        pytest.param(True, False, marks=pytest.mark.slow),
    ],
)
def test_training_goes_on_from_the_checkpoint_and_what_is_newer_is_set_aside(
    tmp_path: Path, threaded: bool, is_paused: bool
) -> None:
    with live(endless(tmp_path, threaded=threaded)) as run:
        first, second, third = (saved(run) for _ in range(3))
        steps = [step_of(path) for path in (first, second, third)]
        trained(run)
        if is_paused:
            paused(run)
        outcome = run.send(RollBack("Walker", str(first)))
        assert (outcome.ok, outcome.message) == (True, f"resumed from step {steps[0]}, {first}")
        (event,) = run.of(BehaviorRolledBack)
        assert (event.step, event.path) == (steps[0], str(first))
        assert event.from_step >= steps[2]
        assert [(e.step, e.path) for e in run.of(CheckpointRemoved)] == [
            (steps[1], str(second)),
            (steps[2], str(third)),
        ]
        assert names(first.parent) == {first.name}
        aside = first.parent.with_name("checkpoints.abandoned")
        assert {second.name, third.name} <= names(aside)
        assert [step_of(aside / path.name) for path in (second, third)] == steps[1:], "whole, as they were"
        status = json.loads((run.folder / "run_logs/training_status.json").read_text())
        assert [entry["steps"] for entry in status["Walker"]["checkpoints"]] == [steps[0]]
        run.send(Resume())
        trained(run)
        again = saved(run)
        assert steps[0] < step_of(again)
        assert names(first.parent) == {first.name, again.name}
        run.send(Stop("now"))
        assert run.wait() == 0
    with live(endless(tmp_path, resume=True)) as run:
        assert run.wait_for(BehaviorStarted).step == step_of(again)


@pytest.mark.parametrize("threaded", THREADED)
def test_everything_learned_is_as_in_the_checkpoint(tmp_path: Path, threaded: bool) -> None:
    changes: dict[str, Any] = {"network_settings__normalize": True, "normalize_reward": True}
    with live(endless(tmp_path, threaded=threaded, **changes)) as run:
        first = saved(run)
        trained(run)
        paused(run)
        assert run.send(RollBack("Walker", str(first))).ok
        run.send(SetHyperparameter("Walker", "beta", 0.1))  # or the same checkpoint would be given
        again = Path(run.send(SaveCheckpoint()).message)
        before, after = (read(path)[0].part("trainer") for path in (first, again))
        assert again != first
        assert equal(before.tensors, after.tensors)
        assert before.values == after.values
        assert run.of(CheckpointSaved)[-1].mean_return is None, "recent episodes are of the given-up policy"


@pytest.mark.parametrize("threaded", THREADED)
def test_steps_count_on_from_the_checkpoint_and_never_go_back_otherwise(tmp_path: Path, threaded: bool) -> None:
    with live(endless(tmp_path, threaded=threaded)) as run:
        first = saved(run)
        for _ in range(5):
            trained(run)
        assert run.send(RollBack("Walker", str(first))).ok
        run.wait_for(ProgressReported, after=len(run.mail))
        for _ in range(5):
            trained(run)
        run.send(Stop("now"))
        run.wait()
    (event,) = run.of(BehaviorRolledBack)
    since = run.events[run.events.index(event) :]
    for kind in (ProgressReported, EpisodesFinished, MetricsReported):
        steps = [e.step for e in since if isinstance(e, kind)]
        assert steps == sorted(steps), kind
        assert steps[0] >= event.step, kind
    reports = [e for e in since if isinstance(e, ProgressReported)]
    assert all(0 <= e.sampled - e.step <= 1000 for e in reports), [(e.step, e.sampled) for e in reports]
    summaries = [e.step for e in since if isinstance(e, MetricsReported)]
    assert summaries[0] - event.step <= 200
    view = RunView()
    for envelope in run.mail:
        view.apply(envelope)
    curve = list(view.behaviors["Walker"].returns.steps)
    assert curve == sorted(curve)
    assert view.behaviors["Walker"].step == reports[-1].step


def test_hyperparameters_are_those_of_the_checkpoint(tmp_path: Path) -> None:
    with live(endless(tmp_path)) as run:
        run.send(SetHyperparameter("Walker", "beta", 0.25))
        first = saved(run)
        run.send(SetHyperparameter("Walker", "beta", 0.5))
        run.send(SetHyperparameter("Walker", "lambd", 0.9))
        before = len(run.mail)
        assert run.send(RollBack("Walker", str(first))).ok
        reported = [event for event in run.events[before:] if isinstance(event, HyperparameterChanged)]
        assert {(e.name, e.old, e.new) for e in reported} == {("beta", 0.5, 0.25), ("lambd", 0.9, 0.95)}
        assert {e.step for e in reported} == {step_of(first)}
        values = run.of(HyperparametersReported)[-1].values
        assert (values["beta"], values["lambd"]) == (0.25, 0.95)
        lines = [event.message for event in run.of(LogEmitted)]
        assert "beta 0.25, set during training; the file has 0.005" in lines


def test_same_step_can_be_saved_and_given_up_again(tmp_path: Path) -> None:
    """What was set aside under a name is not replaced by what comes later under the same."""
    with live(endless(tmp_path)) as run:
        run.wait_for(MetricsReported)
        paused(run)
        first = Path(run.send(SaveCheckpoint()).message)
        for value in (0.1, 0.2):
            run.send(SetHyperparameter("Walker", "beta", value))
            assert Path(run.send(SaveCheckpoint()).message).name == f"{first.name}.2"
            assert run.send(RollBack("Walker", str(first))).ok
    aside = first.parent.with_name("checkpoints.abandoned")
    assert names(aside) == {f"{first.name}.2", f"{first.name}.2.2"}
    kept = [read(path)[0].values["hyperparameters"] for path in sorted(aside.iterdir())]
    assert [entry["beta"]["set"] for entry in kept] == [0.1, 0.2]
    assert (first.parent.parent / f"{first.name}.onnx").exists()


def test_saves_asked_for_before_are_written_first(tmp_path: Path) -> None:
    with live(endless(tmp_path)) as run:
        first = saved(run)
        trained(run)
        run.launch.send(SaveCheckpoint())
        outcome = run.send(RollBack("Walker", str(first)))
        assert outcome.ok
        steps = [event.step for event in run.of(CheckpointSaved)]
        assert len(steps) == 2
        assert [event.step for event in run.of(CheckpointRemoved)] == steps[1:]


def refused(run: LiveRun, path: Path | str, name: str = "Walker") -> str:
    """The reason; training continues where it was, with everything it had."""
    before = len(run.mail)
    outcome = run.send(RollBack(name, str(path)))
    assert not outcome.ok
    assert not run.of(BehaviorRolledBack)
    steps = [e.step for e in run.events if isinstance(e, ProgressReported) and e.behavior == "Walker"]
    assert steps == sorted(steps)
    assert not [e for e in run.events[before:] if isinstance(e, CheckpointRemoved)]
    return outcome.message


def test_anything_but_one_of_its_own_checkpoints_is_refused(tmp_path: Path) -> None:
    settings = {name: behavior(max_steps=ENDLESS) for name in ("Walker", "Other")}
    with live(configuration(tmp_path, settings, {"Walker": "toy:line", "Other": "toy:line"})) as run:
        mine = saved(run)
        other = Path(run.send(SaveCheckpoint("Other")).message)
        copy = tmp_path / mine.name
        shutil.copytree(mine, copy)
        for path in (other, copy, mine.with_name("Walker-999999"), mine / "..", "", "/"):
            assert "not a checkpoint of Walker" in refused(run, path)
        assert refused(run, mine, "Stranger") == "there is no behavior Stranger"
        trained(run)


def test_damaged_checkpoint_is_refused_and_nothing_is_set_aside(tmp_path: Path) -> None:
    with live(endless(tmp_path)) as run:
        first, second = saved(run), saved(run)
        (first / "tensors.safetensors").write_bytes(b"short")
        assert "got 5" in refused(run, first)
        assert second.is_dir()
        trained(run)


def test_disk_that_refuses_leaves_training_and_what_is_resumed_as_they_were(tmp_path: Path) -> None:
    with live(endless(tmp_path)) as run:
        first, second = saved(run), saved(run)
        first.parent.with_name("checkpoints.abandoned").write_text("in the way")
        assert "cannot be set aside" in refused(run, first)
        trained(run)
        run.send(Stop("now"))
        run.wait()
    with live(endless(tmp_path, resume=True)) as run:
        assert run.wait_for(BehaviorStarted).step == step_of(second)


def test_link_in_the_place_of_what_is_set_aside_is_not_followed(tmp_path: Path) -> None:
    with live(endless(tmp_path)) as run:
        first, second = saved(run), saved(run)
        (tmp_path / "elsewhere").mkdir()
        first.parent.with_name("checkpoints.abandoned").symlink_to(tmp_path / "elsewhere")
        assert "must be a folder, got a link" in refused(run, first)
        assert second.is_dir()
        assert not names(tmp_path / "elsewhere")


def test_behavior_that_has_ended_stays_where_it_is(tmp_path: Path) -> None:
    behaviors = {
        "Walker": behavior(max_steps=300, checkpoint_interval=100),
        "Other": behavior(max_steps=ENDLESS),
    }
    with live(configuration(tmp_path, behaviors, {"Walker": "toy:line", "Other": "toy:line"})) as run:
        run.wait_for(BehaviorStateChanged, lambda e: (e.behavior, e.state) == ("Walker", "finished"))
        saved_one = run.wait_for(CheckpointSaved, lambda e: e.behavior == "Walker")
        assert refused(run, saved_one.path) == "Walker has ended; --resume continues from a checkpoint"


def test_roll_back_asked_for_with_a_stop_has_an_outcome_and_the_run_can_be_resumed(tmp_path: Path) -> None:
    with live(endless(tmp_path)) as run:
        first = saved(run)
        trained(run)
        run.launch.send(RollBack("Walker", str(first)))
        run.launch.send(Stop())
        run.launch.send(RollBack("Walker", str(first)))
        assert run.wait() == 0
    last = run.of(CheckpointSaved)[-1]
    with live(endless(tmp_path, resume=True), Pause()) as run:
        assert run.wait_for(BehaviorStarted).step == last.step
