"""What a failure ends, what it leaves alone, and with which exit code."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import psutil
import pytest

from rl_tui.engine.learning.ppo.settings import PPOSettings
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.learning.sac.trainer import SACTrainer
from rl_tui.engine.learning.trainer import Metrics
from rl_tui.engine.running.call_timeout import CallTimer
from rl_tui.engine.session.messages import (
    BehaviorStateChanged,
    CheckpointSaved,
    EnvironmentFailed,
    LogEmitted,
    MetricsReported,
    Pause,
    PolicyExported,
    ProgressReported,
    Resume,
    RunStateChanged,
    SaveCheckpoint,
    StepsAwaited,
    Stop,
    StopMode,
    WorkerFailed,
)
from rl_tui.engine.storage.checkpoint_format import read
from tests.running import environments
from tests.running.runs import (
    DEADLINE_SECONDS,
    ENDLESS,
    THREADED,
    LiveRun,
    behavior,
    configuration,
    ending,
    live,
    run_to_end,
    tensors_of,
)
from tests.sampling.worlds import Recording

MISBEHAVING = "tests.sampling.worlds:Misbehaving"


@pytest.fixture(autouse=True)
def release() -> Iterator[None]:
    """Threads of environments that hang end with the test."""
    environments.RELEASE.clear()
    yield
    environments.RELEASE.set()


def states(run: LiveRun, name: str) -> list[str]:
    return [event.state for event in run.of(BehaviorStateChanged) if event.behavior == name]


def saved(run: LiveRun, name: str = "Walker") -> list[CheckpointSaved]:
    return [event for event in run.of(CheckpointSaved) if event.behavior == name]


def all_finite(checkpoint: CheckpointSaved) -> bool:
    return all(
        np.isfinite(array).all() for array in tensors_of(Path(checkpoint.path)).values() if array.dtype.kind == "f"
    )


def test_two_behaviors_train_on_two_environments_of_their_own(tmp_path: Path) -> None:
    behaviors = {"Walker": behavior(max_steps=300), "Pole": behavior(max_steps=900)}
    run = run_to_end(configuration(tmp_path, behaviors, {"Walker": "toy:line", "Pole": "gymnasium:CartPole-v1"}))
    assert run.launch.exit_code == 0
    for name, steps in (("Walker", 300), ("Pole", 900)):
        assert states(run, name) == ["training", "finished"]
        assert steps <= saved(run, name)[-1].step < steps + 128
        assert [e.step for e in run.of(MetricsReported) if e.behavior == name] == list(range(100, steps + 1, 100))
        assert (run.folder / f"{name}.onnx").exists()
    status = json.loads((run.folder / "run_logs/training_status.json").read_text())
    assert {"Walker", "Pole"} < set(status)


@pytest.mark.parametrize(
    ("fault", "workers", "reason"),
    [
        ("raises", 0, "step raised ValueError: the wheels came off"),
        ("shows_another_shape", 0, "must be float32 (2, 1)"),
        ("exits", 0, "SystemExit"),
        ("interrupts", 0, "step raised KeyboardInterrupt, at "),
        ("raises", 2, "step raised ValueError: the wheels came off"),
        ("dies", 2, "exited with code 7"),
        ("hangs", 2, "has not returned for 1 s"),
    ],
)
def test_failed_environment_ends_its_behavior_saved_while_the_other_trains_on(
    tmp_path: Path, fault: str, workers: int, reason: str
) -> None:
    others = set(psutil.Process().children(recursive=True))  # of earlier tests
    behaviors = {"Walker": behavior(max_steps=ENDLESS), "Pole": behavior(max_steps=600)}
    config = configuration(
        tmp_path,
        behaviors,
        {"Walker": MISBEHAVING, "Pole": "toy:line"},
        env_settings={
            "env_kwargs": {"Walker": {"fault": fault, "at": 40}},
            "num_envs": 2,
            "num_workers": workers,
            "timeout_wait": 1 if fault == "hangs" else 60,
        },
    )
    run = run_to_end(config)
    assert run.launch.exit_code == 3
    assert ending(run).state == "failed"
    (failure,) = run.of(EnvironmentFailed)
    assert (failure.environment, failure.behaviors) == (MISBEHAVING, ("Walker",))
    assert failure.reason.startswith(f"{MISBEHAVING}, instance ")
    assert ("worker" in failure.reason) == bool(workers)
    assert reason in failure.reason
    assert "\n" not in failure.reason
    assert states(run, "Walker") == ["training", "failed"]
    (last,) = saved(run)
    assert last.reason == "error"
    assert last.step > 0
    assert (run.folder / "Walker.onnx").exists()
    assert states(run, "Pole") == ["training", "finished"]
    assert saved(run, "Pole")[-1].reason == "final"
    assert saved(run, "Pole")[-1].step >= 600
    assert set(psutil.Process().children(recursive=True)) <= others


def test_environment_that_is_made_forever_ends_the_run_and_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rl_tui.engine.sampling.pools.worker_process.START_SECONDS", 0.2)
    env_settings = {"timeout_wait": 1, "num_envs": 1}
    run = LiveRun(
        configuration(
            tmp_path, {"Walker": behavior()}, "tests.running.environments:made_forever", env_settings=env_settings
        )
    )
    assert run.wait() == 3
    assert re.match(
        r"tests.running.environments:made_forever: start has not returned for 1 s, at"
        r" tests/running/environments.py:\d+ in"
        r" made_forever. Raise env_settings.timeout_wait if it needs longer$",
        ending(run).reason,
    ), ending(run).reason
    assert "in made_forever\n" in (run.folder / "run_logs/output.log").read_text()


@pytest.mark.parametrize("workers", [0, 2])
def test_constructor_that_raises_leaves_its_traceback_in_a_folder_that_a_corrected_run_takes(
    tmp_path: Path, workers: int
) -> None:
    env_settings = {"num_workers": workers, "num_envs": 2}
    env = "tests.running.environments:Unbuilt"
    run = run_to_end(configuration(tmp_path, {"Walker": behavior()}, env, env_settings=env_settings))
    assert run.launch.exit_code == 3
    (failure,) = run.of(EnvironmentFailed)
    assert failure.behaviors == ("Walker",)
    assert 'raise KeyError("entrance")' in failure.detail
    assert states(run, "Walker") == ["failed"]
    assert ending(run).reason == failure.reason, "the traceback is above"
    log = (run.folder / "run_logs/output.log").read_text()
    assert 'in __init__\n    raise KeyError("entrance")' in log
    assert (run.folder / "events.jsonl").exists()
    corrected = run_to_end(configuration(tmp_path, {"Walker": behavior(max_steps=300)}))
    assert corrected.launch.exit_code == 0
    assert corrected.folder == run.folder
    assert not (run.folder / "run_logs/output.log").exists(), "of the earlier run"


ENDLESS_UPDATES: list[dict[str, Any]] = [
    {"hyperparameters__num_epoch": 10**9},
    {"hyperparameters__num_epoch": 10**9, "threaded": True},
    {"trainer_type": "sac", "hyperparameters": {"batch_size": 32, "steps_per_update": 1e-9}},
]


@pytest.mark.parametrize("mode", ["checkpoint", "now"])
@pytest.mark.parametrize("changes", ENDLESS_UPDATES, ids=str)
def test_a_stop_ends_an_update_after_its_mini_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], mode: StopMode
) -> None:
    is_updating = threading.Event()
    trainer = SACTrainer if "trainer_type" in changes else PPOTrainer
    update = trainer.update

    def announced(self: Any, *arguments: Any) -> Metrics:
        is_updating.set()
        return update(self, *arguments)

    monkeypatch.setattr(trainer, "update", announced)
    with live(configuration(tmp_path, {"Walker": behavior(**changes)})) as run:
        assert is_updating.wait(DEADLINE_SECONDS)
        run.launch.send(Stop(mode, exit_code=130))
        assert run.wait() == 130
    checkpoints = saved(run)
    assert [checkpoint.reason for checkpoint in checkpoints] == (["interrupted"] if mode == "checkpoint" else [])
    for checkpoint in checkpoints:
        state, _ = read(Path(checkpoint.path))
        assert state.part("trainer").part("trainer").values["num_updates"] == 1
        assert checkpoint.step == run.of(ProgressReported)[-1].step > 0


def test_the_place_of_a_traceback_is_logged_before_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However late the log files are written."""
    monkeypatch.setattr("rl_tui.engine.running.logs.DRAIN_SECONDS", 60)
    settings = {"env_kwargs": {"fault": "raises", "at": 40}, "num_envs": 1}
    run = run_to_end(
        configuration(tmp_path, {"Walker": behavior(max_steps=ENDLESS)}, MISBEHAVING, env_settings=settings)
    )
    assert ending(run).state == "failed"
    output = run.folder / "run_logs/output.log"
    assert [e.message for e in run.of(LogEmitted) if "traceback" in e.message] == [
        f"the whole traceback of {MISBEHAVING} is in {output}"
    ]
    assert "the wheels came off" in output.read_text()


@pytest.mark.parametrize("threaded", THREADED)
def test_step_that_hangs_in_this_process_is_named_saved_and_left(tmp_path: Path, threaded: bool) -> None:
    config = configuration(
        tmp_path,
        {"Walker": behavior(max_steps=ENDLESS, threaded=threaded)},
        "tests.running.environments:Hanging",
        env_settings={"timeout_wait": 3, "num_envs": 1},
    )
    with live(config) as run:
        assert run.wait() == 3
        (failure,) = run.of(EnvironmentFailed)
        assert "tests.running.environments:Hanging, instance 0: step" in failure.reason
        assert re.search(r"has not returned for \d+ s, at tests/running/environments.py:\d+ in step$", failure.reason)
        assert "RELEASE.wait()" in failure.detail
        awaited = run.of(StepsAwaited)[-1]
        assert (awaited.behavior, awaited.waits_for) == ("Walker", "environment")
        assert awaited.seconds >= 1
        (last,) = saved(run)
        assert last.reason == "error"
        assert last.step > 0
        assert states(run, "Walker") == ["training", "failed"]
        (run.folder / "run_logs/training_status.json").unlink()
        environments.RELEASE.set()  # the step returns after all: nothing may happen any more
    assert not (run.folder / "run_logs/training_status.json").exists()
    assert saved(run) == [last]


def test_signal_does_not_wait_for_a_step_that_hangs_and_what_was_learned_is_saved(tmp_path: Path) -> None:
    config = configuration(
        tmp_path,
        {"Walker": behavior(max_steps=ENDLESS)},
        "tests.running.environments:Hanging",
        env_settings={"timeout_wait": 100_000, "num_envs": 1},
    )
    with live(config) as run:
        run.wait_for(StepsAwaited)
        run.launch.send(Stop(exit_code=143))
        assert run.wait() == 143
        (last,) = saved(run)
        assert last.step > 0
        environments.RELEASE.set()


def test_behavior_whose_step_hangs_can_still_be_saved_while_another_trains(tmp_path: Path) -> None:
    config = configuration(
        tmp_path,
        {"Walker": behavior(max_steps=ENDLESS), "Pole": behavior(max_steps=ENDLESS)},
        {"Walker": "tests.running.environments:Hanging", "Pole": "toy:line"},
        env_settings={"timeout_wait": 1, "num_envs": 1},
    )
    with live(config) as run:
        run.wait_for(EnvironmentFailed)
        assert run.send(SaveCheckpoint("Walker")).ok
        assert run.send(Pause()).message == "Pole paused"
        run.wait_for(RunStateChanged, lambda event: event.state == "paused")
        assert run.send(Resume()).ok
        environments.RELEASE.set()
        seen = len(run.mail)
        run.wait_for(ProgressReported, lambda event: event.behavior == "Pole", after=seen)
        assert not [e for e in run.of(ProgressReported)[seen:] if e.behavior == "Walker"]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(("fault", "field"), [("shows_nan", "position"), ("rewards_infinity", "reward")])
def test_value_that_is_not_finite_ends_its_behavior_with_code_5(
    tmp_path: Path, fault: str, field: str, workers: int
) -> None:
    config = configuration(
        tmp_path,
        {"Walker": behavior(max_steps=ENDLESS, network_settings__normalize=True)},
        MISBEHAVING,
        env_settings={"env_kwargs": {"fault": fault, "at": 50}, "num_envs": 1, "num_workers": workers},
    )
    run = run_to_end(config)
    assert run.launch.exit_code == 5
    (failure,) = run.of(EnvironmentFailed)
    assert "agent 1" in failure.reason
    assert field in failure.reason
    (last,) = saved(run)
    assert last.reason == "error"
    assert all_finite(last)
    assert [event.step for event in run.of(PolicyExported)] == [last.step]


class Enormous(Recording):
    """Sees numbers whose squares are too large for float32."""

    def __init__(self) -> None:
        super().__init__(gymnasium.spaces.Box(np.float32(9e18), np.float32(1e19), (3,)))


@pytest.mark.parametrize(
    "hyperparameters", [{"buffer_size": 64}, {"buffer_init_steps": 64, "batch_size": 32}], ids=["ppo", "sac"]
)
def test_loss_that_is_not_finite_names_the_observation_that_is_too_large(
    tmp_path: Path, hyperparameters: dict[str, int]
) -> None:
    trainer = "sac" if "buffer_init_steps" in hyperparameters else "ppo"
    settings = behavior(trainer_type=trainer, hyperparameters=hyperparameters, max_steps=ENDLESS)
    run = run_to_end(configuration(tmp_path, {"Walker": settings}, f"{__name__}:Enormous"))
    assert run.launch.exit_code == 5
    reasons = [event.reason for event in run.of(BehaviorStateChanged) if event.state == "failed"]
    assert re.search(r"not finite at step \d+; observation 'observation' reaches (1e\+19|9.\d+e\+18); the", reasons[0])


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("threaded", THREADED)
def test_loss_that_is_not_finite_ends_its_behavior_at_its_last_finite_state(tmp_path: Path, threaded: bool) -> None:
    config = configuration(
        tmp_path,
        {"Walker": behavior(max_steps=ENDLESS, threaded=threaded), "Pole": behavior(max_steps=600)},
        {"Walker": "tests.running.environments:Overwhelming", "Pole": "toy:line"},
        env_settings={"num_envs": 1},
    )
    run = run_to_end(config)
    assert run.launch.exit_code == 5, run.recent_events()
    assert states(run, "Walker") == ["training", "failed"]
    (last,) = saved(run)
    assert last.reason == "error"
    assert all_finite(last)
    assert states(run, "Pole") == ["training", "finished"]


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("threaded", THREADED)
def test_behavior_that_fails_is_saved_at_once_while_others_of_its_environment_train(
    tmp_path: Path, threaded: bool
) -> None:
    behaviors = {
        "Left": behavior(max_steps=ENDLESS, threaded=threaded),
        "Right": behavior(max_steps=700, threaded=threaded),
    }
    config = configuration(
        tmp_path,
        behaviors,
        "tests.running.environments:Pair",
        env_settings={"env_kwargs": {"bad": "Left"}, "num_envs": 1},
    )
    run = run_to_end(config)
    assert run.launch.exit_code == 5
    kinds = [(e.behavior, e.reason) for e in run.of(CheckpointSaved)]
    assert kinds == [("Left", "error"), ("Right", "final")]
    assert states(run, "Left") == ["training", "failed"]
    assert states(run, "Right") == ["training", "finished"]


def test_behavior_that_finishes_first_is_saved_at_once_and_goes_on_acting(tmp_path: Path) -> None:
    behaviors = {"Left": behavior(max_steps=128), "Right": behavior(max_steps=1024)}
    run = run_to_end(
        configuration(tmp_path, behaviors, "tests.running.environments:Pair", env_settings={"num_envs": 1})
    )
    assert run.launch.exit_code == 0
    events = run.events
    left = events.index(saved(run, "Left")[0])
    steps = [e.step for e in events[left:] if isinstance(e, MetricsReported) and e.behavior == "Right"]
    assert steps, "Right trains on after Left was saved"
    assert len(saved(run, "Left")) == len(saved(run, "Right")) == 1


@pytest.mark.parametrize("threaded", THREADED)
def test_mistake_of_ours_stops_the_run_with_everything_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threaded: bool
) -> None:
    monkeypatch.setattr(PPOSettings, "implementation", "tests.running.environments:BuggyTrainer")
    behaviors = {
        "Walker": behavior(max_steps=ENDLESS, threaded=threaded),
        "Other": behavior(max_steps=ENDLESS, hyperparameters__buffer_size=ENDLESS),
    }
    run = run_to_end(configuration(tmp_path, behaviors, {"Walker": "toy:line", "Other": "toy:line"}))
    assert run.launch.exit_code == 1
    (failure,) = run.of(WorkerFailed)
    assert failure.worker == ("learner:Walker" if threaded else "collector:Walker")
    assert failure.error == "ZeroDivisionError: an internal error"
    assert "in update" in failure.traceback
    assert states(run, "Walker") == ["training", "failed"]
    assert states(run, "Other") == ["training", "stopped"]
    assert {event.behavior: event.reason for event in run.of(CheckpointSaved)} == {
        "Walker": "error",
        "Other": "interrupted",
    }
    assert "ZeroDivisionError" in ending(run).reason


def test_time_in_which_the_whole_process_stood_still_counts_for_no_call() -> None:
    now = [100.0]
    watch, pool = CallTimer(lambda: now[0]), SimpleNamespace(busy_since=100.0)

    def look_on(seconds: int) -> float:
        for _ in range(seconds):
            now[0] += 1
            busy = watch.busy_seconds(pool)  # type: ignore[arg-type]  # nothing else of a pool is asked
        return busy

    assert look_on(5) == 5
    now[0] += 3600
    assert watch.busy_seconds(pool) == 0  # type: ignore[arg-type]  # likewise
    assert look_on(7) == 7
