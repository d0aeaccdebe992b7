"""Several ranks are one run: each change comes at the same update on all of them, and one folder has its files."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.running.evaluation.evaluator import Evaluator
from rl_tui.engine.running.ranks.leader import BEAT_SECONDS
from rl_tui.engine.running.ranks.messages import ControlWord
from rl_tui.engine.session.messages import (
    BehaviorRolledBack,
    BehaviorStarted,
    BehaviorStateChanged,
    CheckpointSaved,
    EvaluationReported,
    ExportPolicy,
    MetricsReported,
    Pause,
    PolicyExported,
    Resume,
    RollBack,
    RunStateChanged,
    SaveCheckpoint,
    SetHyperparameter,
    SetLesson,
    Stop,
)
from rl_tui.engine.storage.checkpoints import CheckpointStore
from tests.deadline import DEADLINE_SECONDS
from tests.learning.sync.ranks import Dead, Ranks, start_ranks
from tests.running.ranks.rank_runs import Part, Script, train
from tests.running.runs import ENDLESS, behavior, configuration

HOST = socket.gethostname()
FAULTY = "tests.running.ranks.worlds:Faulty"
GROWING = "tests.running.growing:Growing"
GRADED = "tests.running.lessons.worlds:Graded"


def configs(
    folder: Path,
    *kwargs: Mapping[str, object],
    behaviors: Mapping[str, Any] | None = None,
    env: str = FAULTY,
    **changes: Any,
) -> list[RunConfig]:
    """One run in that folder. kwargs: of the environments of each rank."""
    behaviors = behaviors or {"Walker": behavior()}
    own = changes.pop("env_settings", {})
    return [
        configuration(
            folder, behaviors, env, env_settings={"num_envs": len(kwargs), "env_kwargs": dict(each)} | own, **changes
        )
        for each in kwargs
    ]


def parts_of(
    ranks: Ranks,
    run: Sequence[RunConfig],
    script: Callable[[Script], None] | None = None,
    dropped: str = "",
    deadline: float = DEADLINE_SECONDS / 2,
    is_attended: bool = False,
    delays: float = 0.0,
) -> list[Any]:
    """What each rank did, or Dead."""
    folder = Path(run[0].checkpoint_settings.results_dir).parent
    found = ranks.run(train, run, script, folder / "clock", deadline, dropped, is_attended, delays)
    for one in found:
        if isinstance(one, Exception) and not isinstance(one, Dead):
            raise AssertionError("a rank raised") from one
    return found


def as_one(parts: Sequence[Part], needs_updates: bool = True, may_lack_summaries: bool = False) -> Part:
    """Rank 0's part; the others did the same at the same updates. needs_updates: of a trainer with a critic.
    may_lack_summaries: on rank 0, those that were due after an evaluation in which it was rolled back."""
    first, reasons = parts[0], "\n".join(f"{part.exit_code}: {part.reason}" for part in parts)
    assert first.updates or not needs_updates, reasons
    assert first.weights, reasons
    for part in parts[1:]:
        assert part.exit_code == first.exit_code, reasons
        assert part.changes == first.changes, reasons
        if may_lack_summaries:
            others = iter(part.updates)
            assert all(update in others for update in first.updates), reasons
        else:
            assert part.updates == first.updates, reasons
        assert part.weights == first.weights, reasons
        assert part.lessons == first.lessons, reasons
    return first


def trained(script: Script) -> None:
    """Updates have been made since this was called."""
    for _ in range(2):
        script.run.wait_for(MetricsReported, after=len(script.run.mail))


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("trainer", ["ppo", "sac"])
def test_ranks_count_together_and_end_with_equal_weights(
    size: int, trainer: str, threaded: bool, tmp_path: Path, two: Ranks, three: Ranks
) -> None:
    own = {} if trainer == "ppo" else {"buffer_init_steps": 60, "steps_per_update": 8, "num_epoch": None}
    settings = behavior(trainer_type=trainer, checkpoint_interval=200, threaded=threaded)
    if own:
        settings["hyperparameters"] = {"batch_size": 32, "buffer_init_steps": 60, "steps_per_update": 8}
    run = as_one(parts_of({2: two, 3: three}[size], configs(tmp_path, *[{}] * size, behaviors={"Walker": settings})))
    assert run.exit_code == 0, run.reason
    summaries = run.of(MetricsReported)
    assert [event.step for event in summaries] == [100, 200, 300, 400, 500]
    episodes = sum(event.counts.get("Environment/Cumulative Reward", 0) for event in summaries)
    assert episodes > 0
    saved = [event.step for event in run.of(CheckpointSaved)]
    assert len(saved) == 3
    assert 512 <= saved[-1] < 512 + 32, "all ranks together made as many steps as one would have"
    folder = tmp_path / "results" / "run"
    assert [path.name for path in folder.parent.iterdir()] == ["run"]
    assert len(list((folder / "Walker" / "checkpoints").iterdir())) == 3


@pytest.mark.parametrize("trainer", ["ppo", "sac"])
def test_rank_with_more_environments_collects_more_and_none_waits_for_the_other(
    trainer: str, tmp_path: Path, two: Ranks
) -> None:
    """Three environments: each makes as many steps as the others."""
    settings = behavior(trainer_type=trainer, checkpoint_interval=200)
    if trainer == "sac":
        settings["hyperparameters"] = {"batch_size": 32, "buffer_init_steps": 60, "steps_per_update": 12}
    num_envs = {"num_envs": 3}
    parts = parts_of(two, configs(tmp_path, {}, {}, behaviors={"Walker": settings}, env_settings=num_envs))
    run = as_one(parts)
    assert run.exit_code == 0, run.reason
    assert [event.step for event in run.of(MetricsReported)] == [100, 200, 300, 400, 500]
    assert 512 <= run.of(CheckpointSaved)[-1].step < 512 + 32
    collected = [part.num_collected["Walker"] for part in parts]
    assert collected[0] == pytest.approx(2 * collected[1], rel=0.1)


def commands(script: Script) -> None:
    """Every command that changes training, then the end."""
    run = script.run
    trained(script)
    saved = run.send(SaveCheckpoint("Walker"))
    assert saved.ok, saved.message
    trained(script)
    assert run.send(SetHyperparameter("Walker", "learning_rate", 0.01)).ok
    trained(script)
    assert run.send(ExportPolicy("Walker")).ok
    assert run.send(RollBack("Walker", saved.message)).ok
    trained(script)
    assert run.send(Pause()).ok
    assert run.send(SetHyperparameter("Walker", "beta", 0.02)).ok
    assert run.send(Resume()).ok
    trained(script)
    assert run.send(Stop()).ok


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("size", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_each_command_is_carried_out_at_the_same_update_on_all(
    size: int, threaded: bool, tmp_path: Path, two: Ranks, three: Ranks
) -> None:
    settings = behavior(max_steps=ENDLESS, keep_checkpoints=0, threaded=threaded)
    run = configs(tmp_path, *[{}] * size, behaviors={"Walker": settings})
    parts = parts_of({2: two, 3: three}[size], run, commands)
    first = as_one(parts)
    assert (first.exit_code, first.of(RunStateChanged)[-1].state) == (0, "stopped")
    assert [change[2] for change in first.changes if len(change) == 4] == ["learning_rate", "learning_rate", "beta"]
    assert sum(len(change) == 2 for change in first.changes) == 1
    assert first.of(PolicyExported)
    assert not [event for part in parts[1:] for event in (*part.of(PolicyExported), *part.of(CheckpointSaved))]


def long_pause(script: Script) -> None:
    """For longer than a rank may be silent."""
    trained(script)
    assert script.run.send(Pause()).ok
    script.skip(90.0)
    assert script.run.send(Resume()).ok
    trained(script)
    assert script.run.send(Stop()).ok


def test_ranks_wait_for_one_that_is_paused_however_long(tmp_path: Path, three: Ranks) -> None:
    run = configs(tmp_path, {}, {}, {}, behaviors={"Walker": behavior(max_steps=ENDLESS)})
    parts = parts_of(three, run, long_pause, deadline=75.0)
    assert as_one(parts).exit_code == 0
    assert [part.num_pauses for part in parts] == [1, 1, 1]


def slow_disk(script: Script) -> None:
    """Rank 0 is rolled back while its disk does not answer for longer than a rank may be silent."""
    run, may_write, save = script.run, threading.Event(), CheckpointStore.save
    trained(script)
    saved = run.send(SaveCheckpoint("Walker"))

    def slow(store: CheckpointStore, *arguments: Any) -> Path:
        assert may_write.wait(DEADLINE_SECONDS)
        return save(store, *arguments)

    with patch.object(CheckpointStore, "save", slow):
        run.launch.send(SaveCheckpoint("Walker"))
        run.launch.send(RollBack("Walker", saved.message))
        script.skip(90.0)
        may_write.set()
        run.wait_for(BehaviorRolledBack)
    trained(script)
    assert run.send(Stop()).ok


def test_ranks_wait_for_one_whose_disk_is_slow(tmp_path: Path, two: Ranks) -> None:
    run = configs(tmp_path, {}, {}, behaviors={"Walker": behavior(max_steps=ENDLESS, keep_checkpoints=0)})
    first = as_one(parts_of(two, run, slow_disk, deadline=75.0))
    assert first.exit_code == 0, first.reason
    assert [change[0] for change in first.changes] == ["Walker"]


def test_rank_0_evaluates_for_all(tmp_path: Path, two: Ranks) -> None:
    settings = behavior(evaluation={"interval": 128, "episodes": 4}, max_steps=400)
    parts = parts_of(two, configs(tmp_path, {}, {}, behaviors={"Walker": settings}))
    assert as_one(parts).exit_code == 0
    assert len(parts[0].of(EvaluationReported)) >= 3
    assert not parts[1].of(EvaluationReported)


def roll_back_in_evaluation(script: Script) -> None:
    """An evaluation that goes on until then."""
    run, evaluates, evaluate = script.run, threading.Event(), Evaluator.evaluate

    def lasting(evaluator: Evaluator, *arguments: Any) -> Any:
        evaluates.set()
        while arguments[-1]():
            time.sleep(0.001)
        return evaluate(evaluator, *arguments)

    trained(script)
    saved = run.send(SaveCheckpoint("Walker"))
    trained(script)
    with patch.object(Evaluator, "evaluate", lasting):
        assert evaluates.wait(DEADLINE_SECONDS)
        assert run.send(RollBack("Walker", saved.message)).ok
    trained(script)
    assert run.send(Stop()).ok


def test_ranks_are_rolled_back_together_in_the_middle_of_an_evaluation(tmp_path: Path, two: Ranks) -> None:
    settings = behavior(evaluation={"interval": 128, "episodes": 4}, max_steps=ENDLESS)
    parts = parts_of(two, configs(tmp_path, {}, {}, behaviors={"Walker": settings}), roll_back_in_evaluation)
    first = as_one(parts, may_lack_summaries=True)
    assert first.exit_code == 0, first.reason
    assert [change[0] for change in first.changes] == ["Walker"]


@pytest.mark.parametrize("at", [(30, 200), (200, 30), (30, 10_000)])
def test_behavior_that_appears_on_one_rank_is_made_on_all(at: tuple[int, int], tmp_path: Path, two: Ranks) -> None:
    """On a rank where it never appears, no part of it is collected, and it waits while others train."""
    behaviors = {name: behavior(max_steps=400) for name in ("Left", "Right")}
    is_complete = max(at) < 1000
    run = configs(tmp_path, *({"at": each} for each in at), behaviors=behaviors, env=GROWING)
    parts = parts_of(two, run, None if is_complete else until_left_has_finished)
    first = as_one(parts)
    assert first.exit_code == 0, first.reason
    for part in parts:
        assert [event.behavior for event in part.of(BehaviorStarted)] == ["Left", "Right"]
    finished = [event.behavior for event in first.of(BehaviorStateChanged) if event.state == "finished"]
    assert sorted(finished) == (["Left", "Right"] if is_complete else ["Left"])


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("size", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_two_behaviors_learn_in_one_order_however_late_each_rank_is(
    size: int, threaded: bool, tmp_path: Path, two: Ranks, three: Ranks
) -> None:
    """With a thread for each, their exchanges overlap, differently on every rank."""
    behaviors = {name: behavior(max_steps=3000, threaded=threaded) for name in ("Left", "Right")}
    run = configs(tmp_path, *[{"at": 1}] * size, behaviors=behaviors, env=GROWING)
    first = as_one(parts_of({2: two, 3: three}[size], run, delays=0.02))
    assert first.exit_code == 0, first.reason
    finished = [event.behavior for event in first.of(BehaviorStateChanged) if event.state == "finished"]
    assert sorted(finished) == ["Left", "Right"]


def until_left_has_finished(script: Script) -> None:
    """Then the run is stopped."""
    script.run.wait_for(BehaviorStateChanged, lambda event: event.behavior == "Left" and event.state == "finished")
    assert script.run.send(Stop()).ok


@pytest.mark.parametrize("of_rank", [0, 1])
def test_reward_that_is_no_number_on_one_rank_ends_all(of_rank: int, tmp_path: Path, two: Ranks) -> None:
    kwargs = [{"fault": "pays no number"} if rank == of_rank else {} for rank in range(2)]
    parts = parts_of(two, configs(tmp_path, *kwargs))
    assert as_one(parts).exit_code == 5
    assert "the reward of agent 0 is not finite: nan" in parts[of_rank].reason
    assert parts[1 - of_rank].reason == f"rank {of_rank} of 2 on {HOST}: {parts[of_rank].reason}"
    assert [event.reason for event in parts[0].of(CheckpointSaved)] == ["error"]


def roll_back_once_diverged(script: Script) -> None:
    """The user watches, and lets training go on from before."""
    run = script.run
    trained(script)
    saved = run.send(SaveCheckpoint("Walker"))
    run.wait_for(BehaviorStateChanged, lambda event: event.state == "failed" and event.can_roll_back)
    assert run.send(RollBack("Walker", saved.message)).ok
    trained(script)
    assert run.send(Stop()).ok


def test_ranks_that_diverged_are_rolled_back_together(tmp_path: Path, two: Ranks) -> None:
    settings = behavior(max_steps=ENDLESS, summary_freq=32)
    run = configs(tmp_path, {}, {"fault": "pays no number", "at": 3000}, behaviors={"Walker": settings})
    first = as_one(parts_of(two, run, roll_back_once_diverged, is_attended=True))
    assert first.exit_code == 0, first.reason
    assert [change[0] for change in first.changes if len(change) == 2] == ["Walker"]


@pytest.mark.parametrize("of_rank", [0, 1])
def test_environment_that_is_lost_on_one_rank_ends_all_with_what_was_learned(
    of_rank: int, tmp_path: Path, two: Ranks
) -> None:
    kwargs = [{"fault": "raises", "at": 60} if rank == of_rank else {} for rank in range(2)]
    parts = parts_of(two, configs(tmp_path, *kwargs, behaviors={"Walker": behavior(max_steps=ENDLESS)}))
    assert "the floor has opened" in parts[0].reason
    assert parts[0].exit_code == parts[1].exit_code == 3
    if of_rank:
        assert f"rank 1 of 2 on {HOST} has failed" in parts[0].reason
    assert parts[0].weights == parts[1].weights
    assert [event.reason for event in parts[0].of(CheckpointSaved)] == ["error"]


@pytest.mark.parametrize("of_rank", [0, 1])
def test_rank_that_is_killed_is_named_and_the_others_save(of_rank: int, tmp_path: Path) -> None:
    kwargs = [{"fault": "is killed", "at": 60} if rank == of_rank else {} for rank in range(3)]
    run = configs(tmp_path, *kwargs, behaviors={"Walker": behavior(max_steps=ENDLESS)})
    with start_ranks(3, tmp_path) as ranks:
        parts = parts_of(ranks, run)
    assert isinstance(parts.pop(of_rank), Dead)
    for part in parts:
        assert part.exit_code == 9
        assert f"rank {of_rank} of 3 on {HOST} was lost: its process has ended" in part.reason
    if of_rank:
        assert [event.reason for event in parts[0].of(CheckpointSaved)] == ["error"]


def test_run_goes_on_from_its_checkpoint_on_all_ranks(tmp_path: Path, two: Ranks) -> None:
    settings = {"Walker": behavior(max_steps=300)}
    as_one(parts_of(two, configs(tmp_path, {}, {}, behaviors=settings)))
    settings["Walker"]["max_steps"] = 600
    again = configs(tmp_path, {}, {}, behaviors=settings, checkpoint_settings={"resume": True})
    parts = parts_of(two, again)
    assert as_one(parts).exit_code == 0
    for part in parts:
        assert [event.step >= 300 for event in part.of(BehaviorStarted)] == [True]
        assert [event.step for event in part.of(MetricsReported)] == [400, 500, 600]


LESSONS = {
    "grade": {
        "curriculum": [
            {
                "name": "first",
                "completion_criteria": {
                    "measure": "reward", "behavior": "Walker", "threshold": 1e9, "min_lesson_length": 5,
                },
                "value": 1.0,
            },
            {"name": "second", "value": 3.0},
        ]
    }
}  # fmt: skip


def everything(script: Script) -> None:
    """What needs each part of a control word."""
    run = script.run
    trained(script)
    assert run.send(SetLesson("grade", 2)).ok
    assert run.send(SetHyperparameter("Walker", "learning_rate", 0.01)).ok
    trained(script)
    assert run.send(Pause()).ok
    script.skip(2 * BEAT_SECONDS)
    assert run.send(Resume()).ok
    trained(script)
    assert run.send(Stop()).ok


def run_everything(folder: Path, ranks: Ranks, dropped: str, deadline: float = DEADLINE_SECONDS / 2) -> None:
    """Fails unless the ranks did the same."""
    settings = {"Walker": behavior(max_steps=ENDLESS)}
    run = configs(folder, {}, {}, behaviors=settings, env=GRADED, environment_parameters=LESSONS)
    parts = parts_of(ranks, run, everything, dropped, deadline)
    assert as_one(parts).exit_code == 0
    for part in parts:
        assert part.num_pauses == 1
        paid = [event.metrics["Environment/Cumulative Reward"] for event in part.of(MetricsReported)]
        assert paid[-1] == 12.0, "an episode of four steps in the second lesson"


def test_ranks_are_in_the_same_lesson(tmp_path: Path, two: Ranks) -> None:
    run_everything(tmp_path, two, "")


def run_diverging(folder: Path, ranks: Ranks, dropped: str, deadline: float) -> None:
    """Fails unless all ranks end as diverged."""
    parts = parts_of(ranks, configs(folder, {}, {"fault": "pays no number"}, {}), None, dropped, deadline)
    assert as_one(parts).exit_code == 5


def run_killed(folder: Path, ranks: Ranks, dropped: str, deadline: float) -> None:
    """Fails unless the survivors know who was lost."""
    settings = {"Walker": behavior(max_steps=ENDLESS)}
    run = configs(folder, {}, {"fault": "is killed"}, {}, behaviors=settings)
    parts = parts_of(ranks, run, None, dropped, deadline)
    assert all(f"rank 1 of 3 on {HOST} was lost" in part.reason for part in (parts[0], parts[2]))


SCENARIOS = dict.fromkeys(("is_paused", "stop", "lessons", "change", "turn"), (2, run_everything))
SCENARIOS |= {"diverged": (3, run_diverging), "lost": (3, run_killed)}


@pytest.mark.parametrize("field", [each.name for each in fields(ControlWord)])
def test_ranks_differ_without_any_field_of_the_control_word(field: str, tmp_path: Path) -> None:
    size, scenario = SCENARIOS[field]
    with start_ranks(size, tmp_path) as ranks, pytest.raises(AssertionError):
        scenario(tmp_path, ranks, field, 5.0)
