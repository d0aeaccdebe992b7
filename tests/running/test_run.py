"""Whole runs: their files, their events in order, and that the same seed gives the same."""

from __future__ import annotations

import gc
import json
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from rl_tui.engine.errors import CheckpointError, SyncError
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.learning.trainer import Metrics
from rl_tui.engine.running import behavior_building, command_router
from rl_tui.engine.running import run as run_module
from rl_tui.engine.running.checkpoint_parts import CheckpointParts
from rl_tui.engine.running.learner import Learner
from rl_tui.engine.running.summaries import LearnerSettings
from rl_tui.engine.session.messages import (
    BehaviorStarted,
    BehaviorStateChanged,
    CheckpointRemoved,
    CheckpointSaved,
    EpisodesFinished,
    MetricsReported,
    PolicyExported,
    ProgressReported,
    RunStarted,
    RunStateChanged,
    TimeSplit,
    WorkerFailed,
)
from rl_tui.engine.storage.checkpoints import CheckpointStore
from rl_tui.engine.storage.event_log import read_events
from tests.running.runs import THREADED, behavior, configuration, ending, equal, live, run_to_end, tensors_of
from tests.sampling.returning import ERRORS

ML_AGENTS_TAGS = {
    "Environment/Cumulative Reward",
    "Environment/Cumulative Reward_hist",
    "Environment/Episode Length",
    "Policy/Entropy",
    "Losses/Policy Loss",
    "Losses/Value Loss",
    "Policy/Learning Rate",
    "Policy/Extrinsic Reward",
    "Policy/Epsilon",
    "Policy/Beta",
    "Policy/Extrinsic Value Estimate",
    "Hyperparameters/text_summary",
}
OUR_TAGS = {"Policy/KL Divergence", "Policy/Clip Fraction"}
LAG_TAG = "Policy/Version Lag"  # with `threaded` only


@pytest.mark.parametrize("threaded", THREADED)
def test_a_rank_that_is_lost_ends_the_run_with_everything_saved(
    threaded: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    update = PPOTrainer.update

    def updated(trainer: PPOTrainer, step: int, should_continue: Callable[[], bool]) -> Metrics:
        if trainer.num_updates == 2:
            raise SyncError("this is rank 0 of 2, and rank 1 has left")
        return update(trainer, step, should_continue)

    monkeypatch.setattr(PPOTrainer, "update", updated)
    run = run_to_end(configuration(tmp_path, {"Walker": behavior(threaded=threaded)}))
    assert (run.launch.exit_code, str(run.launch.failure)) == (9, "this is rank 0 of 2, and rank 1 has left")
    assert isinstance(run.launch.failure, SyncError), "and no internal error"
    assert run.of(WorkerFailed) == []
    assert [event.reason for event in run.of(CheckpointSaved)] == ["error"]
    assert run.of(BehaviorStateChanged)[-1].reason == "this is rank 0 of 2, and rank 1 has left"


def test_run_ends_with_its_files_named_as_ml_agents_names_them(tmp_path: Path) -> None:
    walker = behavior(max_steps=640, checkpoint_interval=128, keep_checkpoints=2)
    with live(configuration(tmp_path, {"Walker": walker})) as run:
        run.wait_for(RunStarted)
        assert (run.folder / "configuration.yaml").stat().st_size > 0  # at the start, not at the end
        assert run.wait() == 0
    saved = run.of(CheckpointSaved)
    assert [event.reason for event in saved] == ["interval"] * (len(saved) - 1) + ["final"]
    steps = [event.step for event in saved]
    removed = [event.step for event in run.of(CheckpointRemoved)]
    kept = sorted(set(steps) - set(removed))
    newest, best = steps[-2:], max(saved, key=lambda event: (event.mean_return or -9.0, event.step)).step
    assert set(kept) == {*newest, best}
    folder = run.folder / "Walker"
    assert {path.name for path in (folder / "checkpoints").iterdir()} == {f"Walker-{step}" for step in kept}
    assert {path.name for path in folder.glob("*.onnx")} == {f"Walker-{step}.onnx" for step in kept}
    assert (run.folder / "Walker.onnx").read_bytes() == (folder / f"Walker-{steps[-1]}.onnx").read_bytes()
    status = json.loads((run.folder / "run_logs/training_status.json").read_text())
    assert [entry["steps"] for entry in status["Walker"]["checkpoints"]] == kept
    assert status["Walker"]["final_checkpoint"]["steps"] == steps[-1]
    timers = json.loads((run.folder / "run_logs/timers.json").read_text())
    nodes = timers["children"]["trainer_threads"]["children"]["Walker"]["children"]
    assert {"env_step", "trainer_advance"} <= set(nodes)
    assert nodes["env_step"]["total"] > nodes["env_step"]["children"]["TorchPolicy.evaluate"]["total"] > 0
    assert "Walker.Environment.CumulativeReward.mean" in timers["gauges"]


def test_summaries_and_checkpoints_come_at_their_intervals(tmp_path: Path) -> None:
    walker = behavior(max_steps=640, summary_freq=100, checkpoint_interval=200)
    run = run_to_end(configuration(tmp_path, {"Walker": walker}))
    assert run.launch.exit_code == 0
    summaries = run.of(MetricsReported)
    assert [event.step for event in summaries] == [100, 200, 300, 400, 500, 600]
    for event in summaries:  # equal in ML-Agents' files, too
        paid, earned = (event.metrics[f"{kind} Reward"] for kind in ("Policy/Extrinsic", "Environment/Cumulative"))
        assert paid == pytest.approx(earned)
    last = None
    for saved in run.of(CheckpointSaved)[:-1]:
        assert saved.step // 200 > (last or 0) // 200, "one for every crossed interval"
        assert saved.step % 200 < 64 + 16 * 4, "at the first update after it"
        last = saved.step
    assert last is not None


@pytest.mark.parametrize("changes", [{}, {"threaded": True}, {"trainer_type": "sac", "hyperparameters": {}}], ids=str)
def test_training_ends_with_the_step_that_max_steps_names(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Neither a horizon and episodes that are longer nor a large buffer let it continue."""
    settings = behavior(time_horizon=1000, max_steps=300, summary_freq=50_000, hyperparameters__buffer_size=2048)
    run = run_to_end(configuration(tmp_path, {"Pendulum": settings | changes}, "gymnasium:Pendulum-v1"))
    assert run.of(CheckpointSaved)[-1].step == 300
    if "threaded" not in changes:  # there environments continue until the learner has counted
        assert run.of(ProgressReported)[-1].sampled == 304  # 4 environments acted once more


def test_training_in_worker_processes_waits_for_no_whole_episode_at_its_end(tmp_path: Path) -> None:
    """A worker that is late brings what it holds, at most its share of the 300; whole episodes would make 800."""
    settings = behavior(time_horizon=1000, max_steps=300, hyperparameters__buffer_size=2048)
    processes = {"num_envs": 4, "num_workers": 2}
    run = run_to_end(configuration(tmp_path, {"Pendulum": settings}, "gymnasium:Pendulum-v1", env_settings=processes))
    assert 300 <= run.of(CheckpointSaved)[-1].step < 600


def test_a_run_ends_when_its_workers_have_left_however_rarely_they_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_router, "TICK_SECONDS", 1000.0)
    run = run_to_end(configuration(tmp_path, {"Walker": behavior(max_steps=2000, threaded=True)}))
    assert run.launch.exit_code == 0


def test_events_describe_the_run_in_order_and_are_in_its_file(tmp_path: Path) -> None:
    run = run_to_end(configuration(tmp_path, {"Walker": behavior()}))
    assert ending(run).state == "finished"
    assert [event.state for event in run.of(RunStateChanged)] == ["training", "finished"]
    assert [event.state for event in run.of(BehaviorStateChanged)] == ["training", "finished"]
    kinds = [type(event) for event in run.events]
    first = {kind: kinds.index(kind) for kind in set(kinds)}
    order = [RunStarted, BehaviorStarted, RunStateChanged, MetricsReported, CheckpointSaved, PolicyExported]
    assert sorted(order, key=lambda kind: first[kind]) == order
    assert {EpisodesFinished, ProgressReported, TimeSplit} <= set(kinds)
    assert [envelope.number for envelope in run.mail] == list(range(1, len(run.mail) + 1))
    reported = [
        e for e in run.events if not isinstance(e, ProgressReported | TimeSplit) and "Devices" not in type(e).__name__
    ]
    kept = [envelope.event for envelope in read_events(run.folder / "events.jsonl")]
    assert [event for event in kept if type(event) in {type(e) for e in reported}] == reported
    assert run.of(ProgressReported)[-1].step == run.of(CheckpointSaved)[-1].step


@pytest.mark.parametrize("threaded", THREADED)
def test_curves_have_the_tags_of_ml_agents(tmp_path: Path, threaded: bool) -> None:
    run = run_to_end(configuration(tmp_path, {"Walker": behavior(threaded=threaded)}))
    (path,) = (run.folder / "Walker").glob("events.out.tfevents.*")
    tags: dict[str, list[int]] = {}
    for event in EventFileLoader(str(path)).Load():
        for value in event.summary.value:
            tags.setdefault(value.tag, []).append(event.step)
    assert set(tags) == ML_AGENTS_TAGS | OUR_TAGS | ({LAG_TAG} if threaded else set())
    assert tags["Environment/Cumulative Reward"] == [100, 200, 300, 400, 500]


def test_behavior_that_only_default_settings_describe_has_its_curves_too(tmp_path: Path) -> None:
    config = configuration(
        tmp_path, {"Left": behavior()}, "tests.running.environments:Pair", env_settings={"num_envs": 1}
    )
    config = config.model_copy(update={"default_settings": config.behaviors["Left"]})
    run = run_to_end(config)
    assert run.launch.exit_code == 0
    for name in ("Left", "Right"):
        assert list((run.folder / name).glob("events.out.tfevents.*"))


@pytest.mark.parametrize("env", ["toy:line", "gymnasium:CartPole-v1"])
def test_same_seed_gives_the_same_checkpoints(tmp_path: Path, env: str) -> None:
    checkpoints = []
    for name in ("a", "b"):
        walker = behavior(network_settings__normalize=True)
        config = configuration(tmp_path, {"Walker": walker}, env, checkpoint_settings={"run_id": name})
        run = run_to_end(config)
        assert run.launch.exit_code == 0
        checkpoints.append(tensors_of(Path(run.of(CheckpointSaved)[-1].path)))
    assert equal(*checkpoints)
    other = configuration(tmp_path, {"Walker": walker}, env, env_settings={"seed": 2})
    run = run_to_end(other)
    assert not equal(checkpoints[0], tensors_of(Path(run.of(CheckpointSaved)[-1].path)))


def test_threaded_learner_keeps_the_collector_near_its_newest_weights(tmp_path: Path) -> None:
    walker = behavior(threaded=True, max_steps=64 * 40, summary_freq=640)
    run = run_to_end(configuration(tmp_path, {"Walker": walker}))
    assert run.launch.exit_code == 0
    assert run.of(BehaviorStarted)[0].threaded
    lags = [event.metrics["Policy/Version Lag"] for event in run.of(MetricsReported)]
    assert len(lags) == 4
    assert all(0 <= lag < 5 for lag in lags), "one block acted for, one in the inbox, one learned from"
    assert run.of(ProgressReported)[-1].num_updates >= 35
    assert run.of(CheckpointSaved)[-1].step >= 64 * 40


def test_run_whose_disk_does_not_answer_ends_with_7(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()

    def save(*_: object) -> Path:
        answers.wait()
        raise CheckpointError("too late")

    monkeypatch.setattr(CheckpointStore, "save", save)
    monkeypatch.setattr(run_module, "ENDING_SECONDS", 0.5)
    try:
        with live(configuration(tmp_path, {"Walker": behavior()})) as run:
            assert run.wait() == 7
            assert ending(run).state == "unsaved"
            assert ending(run).reason == "the last checkpoints were not written: the disk did not answer in time"
            answers.set()
    finally:
        answers.set()


@pytest.mark.parametrize("threaded", THREADED)
def test_nothing_that_learned_outlives_its_run(threaded: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without help of the garbage collector, which no longer looks at what is there when training starts."""
    made: list[weakref.ref[object]] = []

    class Noted(Learner):
        def __init__(self, settings: LearnerSettings, parts: CheckpointParts, *others: Any) -> None:
            made.extend((weakref.ref(self), weakref.ref(parts.trainer)))
            super().__init__(settings, parts, *others)

    monkeypatch.setattr(behavior_building, "Learner", Noted)
    sac = {"batch_size": 8, "buffer_init_steps": 16, "steps_per_update": 16}
    evaluation = {"interval": 100, "episodes": 2}
    walker = behavior(threaded=threaded, trainer_type="sac", hyperparameters=sac, evaluation=evaluation)
    gc.disable()
    try:
        run = run_to_end(configuration(tmp_path, {"Walker": walker}))
        assert run.launch.exit_code == 0, run.recent_events()
        assert [reference() for reference in made] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("value", ["Mute", "SystemExit", "Bare", "a SyntaxError of numbers"])
def test_run_without_workers_ends_with_the_exit_code_of_its_environment(value: str, tmp_path: Path) -> None:
    settings = {"env_kwargs": {"part": "raises", "value": value}, "num_envs": 1}
    env = "tests.sampling.returning:Returning"
    run = run_to_end(configuration(tmp_path, {"Walker": behavior()}, env, env_settings=settings))
    assert run.launch.exit_code == 3
    assert f"step raised {type(ERRORS[value]()).__name__}" in ending(run).reason
