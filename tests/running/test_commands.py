"""Commands given to a run: what they do, and that each has exactly one outcome (`live` looks at all of them)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, get_args

import pytest

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.running import command_router, threads
from rl_tui.engine.session.messages import (
    AddNote,
    BehaviorStateChanged,
    CheckpointSaved,
    Command,
    CommandFinished,
    ExportPolicy,
    MetricsReported,
    Pause,
    PolicyExported,
    ProgressReported,
    Resume,
    RollBack,
    RunStateChanged,
    SaveCheckpoint,
    SetHyperparameter,
    SetLesson,
    Stop,
)
from tests.running.runs import ENDLESS, THREADED, LiveRun, behavior, configuration, ending, live, run_to_end

PAUSE_SECONDS = 1.0


def commands() -> list[Command]:
    """One of each kind, Stop last."""
    asked: list[Command] = [Pause(), Resume(), SaveCheckpoint(), ExportPolicy()]
    asked += [SetHyperparameter("Walker", "beta", 0.1), RollBack("Walker", "nowhere"), SetLesson("length", 1)]
    asked += [AddNote("so many"), Stop()]
    assert {type(command) for command in asked} == set(get_args(Command))
    return asked


def endless(folder: Path, **changes: Any) -> RunConfig:
    return configuration(folder, {"Walker": behavior(max_steps=ENDLESS, **changes)})


def pair(folder: Path) -> RunConfig:
    behaviors = {"Walker": behavior(max_steps=ENDLESS), "Other": behavior(max_steps=ENDLESS)}
    return configuration(folder, behaviors, {"Walker": "toy:line", "Other": "toy:line"})


def training(run: LiveRun, name: str = "Walker") -> None:
    """Wait until the behavior has published two more summaries."""
    for _ in range(2):
        run.wait_for(MetricsReported, lambda event: event.behavior == name, after=len(run.mail))


def states(run: LiveRun, name: str = "Walker") -> list[str]:
    return [event.state for event in run.of(BehaviorStateChanged) if event.behavior == name]


@pytest.mark.parametrize("threaded", THREADED)
def test_pause_parks_everything_and_still_saves_and_exports(tmp_path: Path, threaded: bool) -> None:
    with live(endless(tmp_path, threaded=threaded)) as run:
        training(run)
        outcome = run.send(Pause())
        assert (outcome.ok, outcome.message) == (True, "Walker paused")
        run.wait_for(RunStateChanged, lambda event: event.state == "paused")
        parked = len(run.mail)
        saved, exported = run.send(SaveCheckpoint()), run.send(ExportPolicy("Walker"))
        assert saved.ok, saved
        assert Path(saved.message).is_dir()
        assert exported.ok, exported
        assert Path(exported.message).exists()
        again = run.send(SaveCheckpoint("Walker"))
        steps = [event.step for event in run.of(CheckpointSaved)]
        assert steps[0] == steps[1], "no step between two checkpoints"
        assert again.message == saved.message
        moved = [e for e in run.events[parked:] if isinstance(e, MetricsReported | ProgressReported)]
        assert not moved, "nothing trains while paused"
        assert run.send(Resume()).ok
        training(run)
        assert states(run) == ["training", "paused", "training"]
        assert [e.state for e in run.of(RunStateChanged)] == ["training", "paused", "training"]
        assert run.send(Stop()).ok


def test_speed_is_not_measured_across_a_pause(tmp_path: Path) -> None:
    with live(endless(tmp_path)) as run:
        training(run)
        run.send(Pause())
        run.wait_for(RunStateChanged, lambda event: event.state == "paused")
        before = run.of(ProgressReported)[-1]
        time.sleep(PAUSE_SECONDS)
        parked, resumed_at = len(run.mail), time.monotonic()
        run.send(Resume())
        after = run.wait_for(ProgressReported, lambda event: event.sampled > before.sampled, after=parked)
        measured = [report.sampled / report.steps_per_second for report in (before, after)]  # all of a run this short
        assert measured[1] - measured[0] <= time.monotonic() - resumed_at
        run.send(Stop("now"))
        assert run.wait() == 0


def test_paused_behavior_leaves_the_other_training(tmp_path: Path) -> None:
    with live(pair(tmp_path)) as run:
        training(run)
        assert run.send(Pause("Walker")).message == "Walker paused"
        parked = len(run.mail)
        training(run, "Other")
        training(run, "Other")
        assert not [e for e in run.events[parked:] if isinstance(e, MetricsReported) and e.behavior == "Walker"]
        assert (states(run), states(run, "Other")) == (["training", "paused"], ["training"])
        assert [e.state for e in run.of(RunStateChanged)] == ["training"], "the run continues"
        run.send(Pause())
        run.wait_for(RunStateChanged, lambda event: event.state == "paused")
        assert run.send(Resume("Walker")).message == "Walker training"
        assert run.send(Resume("Walker")).ok is False
        training(run)
        run.send(Stop("now"))
        assert run.wait() == 0


def test_pause_before_anything_has_started_holds_the_first_step(tmp_path: Path) -> None:
    with live(endless(tmp_path), Pause()) as run:
        run.wait_for(RunStateChanged, lambda event: event.state == "paused")
        assert states(run) == ["training", "paused"]
        assert run.send(SaveCheckpoint()).ok
        assert run.of(CheckpointSaved)[0].step == 0
        assert run.send(Resume()).ok
        training(run)


def test_pause_that_is_taken_back_at_once_has_an_outcome_too(tmp_path: Path) -> None:
    with live(endless(tmp_path)) as run:
        training(run)
        for _ in range(10):
            run.launch.send(Pause())
            run.launch.send(Resume())
        training(run)
        run.launch.send(Pause())
        run.launch.send(Stop())
        assert run.wait() == 0
        assert states(run)[-1] == "stopped"


@pytest.mark.parametrize("kind", [Pause, Resume, SaveCheckpoint, ExportPolicy])
def test_command_for_a_behavior_that_is_not_there_fails(tmp_path: Path, kind: type[Pause]) -> None:
    with live(endless(tmp_path)) as run:
        outcome = run.send(kind("Stranger"))
        assert not outcome.ok
        assert "no behavior Stranger" in outcome.message


def test_behavior_that_has_finished_can_be_saved_but_not_paused(tmp_path: Path) -> None:
    behaviors = {"Walker": behavior(max_steps=100), "Other": behavior(max_steps=ENDLESS)}
    with live(configuration(tmp_path, behaviors, {"Walker": "toy:line", "Other": "toy:line"})) as run:
        run.wait_for(BehaviorStateChanged, lambda e: (e.behavior, e.state) == ("Walker", "finished"))
        run.wait_for(CheckpointSaved, lambda e: e.behavior == "Walker")
        assert run.send(SaveCheckpoint("Walker")).ok
        assert run.send(ExportPolicy()).ok
        training(run, "Other")
        assert not run.send(Pause("Walker")).ok
        assert run.send(Pause()).message == "Other paused"
        run.wait_for(RunStateChanged, lambda event: event.state == "paused")
        assert states(run) == ["training", "finished"]


def test_behavior_that_only_continues_to_act_is_not_published_as_paused(tmp_path: Path) -> None:
    behaviors = {"Left": behavior(max_steps=128), "Right": behavior(max_steps=ENDLESS)}
    config = configuration(tmp_path, behaviors, "tests.running.environments:Pair", env_settings={"num_envs": 1})
    with live(config) as run:
        run.wait_for(BehaviorStateChanged, lambda event: event.state == "finished")
        assert run.send(Pause("Left")).message == "Right paused"
        assert run.send(Resume()).message == "Right training"
        assert not run.send(Resume()).ok
        assert (states(run, "Left"), states(run, "Right")) == (
            ["training", "finished"],
            ["training", "paused", "training"],
        )


def test_many_commands_at_once_each_have_an_outcome(tmp_path: Path) -> None:
    with live(pair(tmp_path)) as run:
        training(run)
        for _ in range(26):
            for command in commands()[:4]:
                run.launch.send(command)
        run.launch.send(Stop())
        for command in commands():
            run.launch.send(command)
        run.wait()
        for command in commands():
            assert not run.send(command).ok, "the run is over"


@pytest.mark.parametrize("threaded", THREADED)
@pytest.mark.parametrize(("mode", "exit_code"), [("checkpoint", 130), ("now", 143)])
@pytest.mark.parametrize("paused", [False, True])
def test_stop_saves_or_does_not_and_brings_its_exit_code(
    tmp_path: Path, mode: str, exit_code: int, paused: bool, threaded: bool
) -> None:
    with live(endless(tmp_path, threaded=threaded)) as run:
        training(run)
        if paused:
            run.send(Pause())
        stop = Stop(mode, exit_code)  # type: ignore[arg-type]  # one of the two modes
        run.launch.send(stop)
        assert run.wait() == exit_code
        assert run.wait_for(CommandFinished, lambda event: event.id == stop.id).ok
        reasons = [event.reason for event in run.of(CheckpointSaved)]
        assert reasons == (["interrupted"] if mode == "checkpoint" else [])
        assert len(run.of(PolicyExported)) == len(reasons)
        assert (ending(run).state, ending(run).exit_code) == ("stopped", exit_code)
        assert states(run)[-1] == "stopped"


def test_stop_while_starting_is_obeyed(tmp_path: Path) -> None:
    run = run_to_end(endless(tmp_path), Stop(exit_code=143))
    assert run.launch.exit_code == 143
    assert run.of(CheckpointSaved) == [], "nothing was learned"
    assert ending(run).state == "stopped"


def test_second_stop_makes_haste_but_keeps_the_first_exit_code(tmp_path: Path) -> None:
    with live(endless(tmp_path)) as run:
        training(run)
        run.launch.send(Stop("checkpoint", 130))
        run.launch.send(Stop("now", 143))
        run.launch.send(Stop("checkpoint", 129))
        assert run.wait() == 130


def test_stop_without_saving_after_one_with_is_not_taken_for_done(tmp_path: Path) -> None:
    with live(endless(tmp_path)) as run:
        training(run)
        run.launch.send(Stop("checkpoint"))
        run.launch.send(Stop("now", 130))
        assert run.wait() == 130


@pytest.mark.parametrize("threaded", THREADED)
def test_nothing_waits_for_the_next_look_at_the_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threaded: bool
) -> None:
    monkeypatch.setattr(command_router, "TICK_SECONDS", 1000.0)
    monkeypatch.setattr(threads, "PARKED_SECONDS", 1000.0)
    with live(endless(tmp_path, threaded=threaded)) as run:
        training(run)
        for command in (SaveCheckpoint(), Pause(), SaveCheckpoint(), SetHyperparameter("Walker", "beta", 0.1)):
            assert run.send(command).ok
        run.wait_for(RunStateChanged, lambda event: event.state == "paused")
        assert run.send(RollBack("Walker", run.of(CheckpointSaved)[-1].path)).ok
        assert run.send(Resume()).ok
        assert run.send(Stop()).ok
        assert run.wait() == 0
