"""Hyperparameters changed during training: published, used, saved in checkpoints, and overridden by the file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.running.hyperparameters import ranges
from rl_tui.engine.session.messages import (
    BehaviorStarted,
    BehaviorStateChanged,
    CheckpointSaved,
    HyperparameterChanged,
    HyperparametersReported,
    LogEmitted,
    MetricsReported,
    Pause,
    Range,
    Resume,
    RollBack,
    RunStateChanged,
    SaveCheckpoint,
    SetHyperparameter,
    Stop,
)
from rl_tui.engine.storage.checkpoint_format import read
from tests.running.runs import ENDLESS, THREADED, LiveRun, behavior, configuration, live, run_to_end

STEADY: dict[str, Any] = {
    "batch_size": 32,
    "buffer_size": 64,
    "num_epoch": 1,
    "learning_rate": 3e-4,
    "learning_rate_schedule": "constant",
}


def walker(folder: Path, hyperparameters: dict[str, Any] | None = None, **flags: Any) -> RunConfig:
    """An endless run with constant schedules."""
    settings = behavior(max_steps=ENDLESS, hyperparameters=STEADY | (hyperparameters or {}))
    threaded = flags.pop("threaded", False)
    return configuration(folder, {"Walker": settings | {"threaded": threaded}}, checkpoint_settings=flags)


def learned(run: LiveRun) -> MetricsReported:
    """A summary that only holds updates from now on."""
    for _ in range(3):
        summary = run.wait_for(MetricsReported, after=len(run.mail))
    return summary


def paused(run: LiveRun) -> None:
    assert run.send(Pause()).ok


def reported(run: LiveRun) -> dict[str, float]:
    return dict(run.of(HyperparametersReported)[-1].values)


def said(run: LiveRun) -> str:
    return "\n".join(event.message for event in run.of(LogEmitted))


def stop(run: LiveRun) -> CheckpointSaved:
    """The checkpoint that a stopped run left last."""
    run.send(Stop())
    assert run.wait() == 0
    return run.of(CheckpointSaved)[-1]


def test_what_is_reported_of_a_hyperparameter_is_what_a_file_may_say_of_it() -> None:
    ppo, sac = (BehaviorConfig.model_validate({"trainer_type": name}) for name in ("ppo", "sac"))
    assert ranges(ppo, ["learning_rate", "lambd", "num_epoch", "target_kl"]) == {
        "learning_rate": Range(0.0, above_minimum=True),
        "lambd": Range(0.0, 1.0),
        "num_epoch": Range(1.0, is_whole=True),
        "target_kl": Range(0.0, above_minimum=True),
    }
    assert ranges(sac, ["target_entropy"]) == {"target_entropy": Range()}


def test_what_may_be_changed_is_published_when_a_behavior_starts(tmp_path: Path) -> None:
    with live(walker(tmp_path, {"target_kl": 0.5})) as run:
        event = run.wait_for(HyperparametersReported)
        assert event.values == {
            "learning_rate": 3e-4,
            "beta": 5e-3,
            "epsilon": 0.2,
            "lambd": 0.95,
            "num_epoch": 1.0,
            "value_coefficient": 0.5,
            "target_kl": 0.5,
        }
        kinds = [type(event) for event in run.events]
        assert kinds.index(BehaviorStarted) < kinds.index(HyperparametersReported)


@pytest.mark.parametrize("threaded", THREADED)
@pytest.mark.parametrize("is_paused", [False, True])
def test_change_is_published_with_its_step_and_used_from_the_next_update_on(
    tmp_path: Path, threaded: bool, is_paused: bool
) -> None:
    with live(walker(tmp_path, threaded=threaded)) as run:
        assert learned(run).metrics["Policy/Learning Rate"] == pytest.approx(3e-4)
        if is_paused:
            paused(run)
        outcome = run.send(SetHyperparameter("Walker", "learning_rate", 1e-4))
        (change,) = run.of(HyperparameterChanged)
        assert (change.name, change.old, change.new) == ("learning_rate", 3e-4, 1e-4)
        assert (outcome.ok, outcome.message) == (True, f"learning_rate 0.0003 -> 0.0001 from step {change.step}")
        assert run.send(SetHyperparameter("Walker", "num_epoch", 3.0)).ok
        assert (reported(run)["learning_rate"], reported(run)["num_epoch"]) == (1e-4, 3.0)
        run.send(Resume())
        assert learned(run).metrics["Policy/Learning Rate"] == pytest.approx(1e-4)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("learning_rate", -1.0, "learning_rate: must be greater than 0, got -1.0"),
        ("learning_rate", float("nan"), "learning_rate: must be a finite number, got nan"),
        ("beta", float("inf"), "beta: must be a finite number, got inf"),
        ("num_epoch", 2.5, "num_epoch: must be a whole number, got 2.5"),
        ("lambd", 1.5, "lambd: must be at most 1, got 1.5"),
        ("learningrate", 1.0, "learningrate: cannot be changed while it trains. Did you mean learning_rate?"),
        ("buffer_size", 1.0, "buffer_size: cannot be changed while it trains."),
        ("target_kl", 0.1, "target_kl: cannot be changed while it trains."),
    ],
)
def test_value_that_a_file_could_not_hold_is_refused_and_nothing_changes(
    tmp_path: Path, name: str, value: float, reason: str
) -> None:
    with live(walker(tmp_path)) as run:
        run.wait_for(MetricsReported)
        outcome = run.send(SetHyperparameter("Walker", name, value))
        assert not outcome.ok
        assert outcome.message.startswith(reason)
        assert not run.of(HyperparameterChanged)
        assert len(run.of(HyperparametersReported)) == 1


def test_change_of_a_behavior_that_is_not_there_or_has_ended_is_refused(tmp_path: Path) -> None:
    behaviors = {"Walker": behavior(max_steps=100), "Other": behavior(max_steps=ENDLESS)}
    with live(configuration(tmp_path, behaviors, {"Walker": "toy:line", "Other": "toy:line"})) as run:
        run.wait_for(BehaviorStateChanged, lambda e: (e.behavior, e.state) == ("Walker", "finished"))
        ended = run.send(SetHyperparameter("Walker", "beta", 0.1))
        assert (ended.ok, ended.message) == (False, "Walker has ended; --resume continues from a checkpoint")
        refused_one = run.send(SetHyperparameter("Stranger", "beta", 0.1))
        assert (refused_one.ok, refused_one.message) == (False, "there is no behavior Stranger")


def test_change_asked_for_with_a_stop_has_an_outcome(tmp_path: Path) -> None:
    with live(walker(tmp_path)) as run:
        run.wait_for(MetricsReported)
        run.launch.send(Stop())
        for _ in range(5):
            run.launch.send(SetHyperparameter("Walker", "beta", 0.1))
        run.wait()


def test_policy_that_only_plays_has_nothing_to_change(tmp_path: Path) -> None:
    run_to_end(configuration(tmp_path, {"Walker": behavior()}))
    with live(walker(tmp_path, resume=True, inference=True)) as run:
        run.wait_for(MetricsReported)
        assert run.send(SetHyperparameter("Walker", "beta", 0.1)).message == "Walker only plays"
        assert not run.of(HyperparametersReported)


def changed_run(folder: Path) -> CheckpointSaved:
    """What a run leaves whose learning rate was set to 1e-4 and whose beta was set and set back."""
    with live(walker(folder)) as run:
        run.wait_for(MetricsReported)
        run.send(SetHyperparameter("Walker", "learning_rate", 1e-4))
        run.send(SetHyperparameter("Walker", "beta", 0.1))
        run.send(SetHyperparameter("Walker", "beta", 5e-3))
        return stop(run)


def test_resumed_run_goes_on_with_what_was_set_and_says_so(tmp_path: Path) -> None:
    last = changed_run(tmp_path)
    before = read(Path(last.path))[0].values
    with live(walker(tmp_path, resume=True), Pause()) as run:
        run.wait_for(RunStateChanged, lambda event: event.state == "paused")
        assert reported(run)["learning_rate"] == 1e-4
        assert "learning_rate 0.0001, set during training; the file has 0.0003" in said(run)
        assert "beta" not in said(run)
        shutil.rmtree(last.path)
        assert run.send(SaveCheckpoint()).ok
        assert read(Path(run.of(CheckpointSaved)[0].path))[0].values == before
        run.send(Resume())
        assert learned(run).metrics["Policy/Learning Rate"] == pytest.approx(1e-4)


def test_only_what_was_set_while_training_is_given_to_the_trainer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, set_hyperparameter = list[tuple[str, float]](), PPOTrainer.set_hyperparameter

    def noted(trainer: PPOTrainer, name: str, value: float) -> None:
        given.append((name, value))
        set_hyperparameter(trainer, name, value)

    monkeypatch.setattr(PPOTrainer, "set_hyperparameter", noted)
    last = changed_run(tmp_path)
    assert given == [("learning_rate", 1e-4), ("beta", 0.1), ("beta", 5e-3)], "nothing at the start"
    given.clear()
    with live(walker(tmp_path, resume=True)) as run:
        run.wait_for(MetricsReported)
        assert given == [("learning_rate", 1e-4)]
        run.send(SetHyperparameter("Walker", "beta", 0.1))
        given.clear()
        assert run.send(RollBack("Walker", last.path)).ok
        assert given == [("learning_rate", 3e-4), ("beta", 5e-3), ("learning_rate", 1e-4)]


def test_value_changed_in_the_file_since_wins(tmp_path: Path) -> None:
    changed_run(tmp_path)
    with live(walker(tmp_path, {"learning_rate": 1e-3}, resume=True)) as run:
        run.wait_for(MetricsReported)
        assert reported(run)["learning_rate"] == 1e-3
        edited = "learning_rate 0.001 from the file, which was edited (0.0003 before)"
        assert f"{edited}; the value 0.0001 set during training is dropped" in said(run)
        saved = stop(run)
    with live(walker(tmp_path, {"learning_rate": 1e-3}, resume=True)) as run:
        run.wait_for(MetricsReported)
        assert "learning_rate" not in said(run), "an abandoned value is not restored"
    assert "hyperparameters" not in read(Path(saved.path))[0].values


def test_run_initialized_from_another_ignores_what_was_set(tmp_path: Path) -> None:
    changed_run(tmp_path)
    with live(walker(tmp_path, run_id="b", initialize_from="run")) as run:
        run.wait_for(MetricsReported)
        assert reported(run)["learning_rate"] == 3e-4
        assert "learning_rate" not in said(run)


def test_change_made_at_the_step_of_a_checkpoint_is_saved_beside_it(tmp_path: Path) -> None:
    with live(walker(tmp_path)) as run:
        run.wait_for(MetricsReported)
        paused(run)
        first = Path(run.send(SaveCheckpoint()).message)
        run.send(SetHyperparameter("Walker", "learning_rate", 1e-4))
        second = Path(run.send(SaveCheckpoint()).message)
        assert second.name == f"{first.name}.2"
        assert first.is_dir()
        last = stop(run)
        assert Path(last.path) == second, "nothing has changed since"
    with live(walker(tmp_path, resume=True)) as run:
        run.wait_for(MetricsReported)
        assert reported(run)["learning_rate"] == 1e-4
