"""The replay buffers of all ranks are in one file, which any number of ranks goes on with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.learning.sac.trainer import SACTrainer
from rl_tui.engine.session.messages import (
    BehaviorStarted,
    CheckpointSaved,
    LogEmitted,
    MetricsReported,
    Pause,
    RollBack,
    SaveCheckpoint,
    Stop,
)
from rl_tui.engine.specs import State
from rl_tui.engine.storage.checkpoint_format import read
from rl_tui.engine.storage.replay_buffer_file import read_replay_buffer
from tests.learning.sync.ranks import Dead, Ranks, start_ranks
from tests.running.ranks.rank_runs import Part, Script
from tests.running.ranks.test_ranks import HOST, as_one, configs, parts_of, trained
from tests.running.runs import ENDLESS, behavior, run_to_end
from tests.running.test_offline import OFFLINE, offline, write
from tests.running.test_taught import taught

SAC = {"batch_size": 32, "buffer_init_steps": 60, "steps_per_update": 8, "save_replay_buffer": True}


def sac(**changes: Any) -> dict[str, Any]:
    """Settings of a behavior that saves its replay buffer."""
    settings = behavior(trainer_type="sac", **changes)
    settings["hyperparameters"] = SAC
    return {"Walker": settings}


def saved(folder: Path) -> State:
    """What the file of a run there has."""
    return read_replay_buffer(folder / "results/run/Walker/replay_buffer.safetensors", "Walker")


def steps(replays: Iterable[State]) -> Counter[tuple[object, ...]]:
    """All that is kept of each, with what came next. Agents of several ranks may have made the same."""
    found: Counter[tuple[object, ...]] = Counter()
    for replay in replays:
        rows = np.flatnonzero(replay.tensors["remaining"])
        columns = [column[rows] for _, column in sorted(replay.tensors.items())]
        columns.append(replay.tensors["observation.0"][rows + 1])
        found.update(tuple(np.ravel(column[row]).tolist().__repr__() for column in columns) for row in range(len(rows)))
    return found


def assert_saved(folder: Path, parts: Iterable[Part]) -> State:
    """The file has what the ranks have in the end."""
    replay = saved(folder)
    held = [part.replays["Walker"] for part in parts]
    assert all(len(each.tensors["remaining"]) for each in held)
    assert steps([replay]) == steps(held)
    assert {each.number("num_added") for each in held} == {replay.number("num_added")}
    return replay


def stop(script: Script) -> None:
    """After some updates."""
    trained(script)
    assert script.run.send(Stop()).ok


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("end", ["max_steps", "stop"])
def test_the_end_of_a_run_saves_what_all_ranks_have(end: str, threaded: bool, tmp_path: Path, two: Ranks) -> None:
    settings = sac(threaded=threaded, max_steps=ENDLESS if end == "stop" else 512, checkpoint_interval=200)
    parts = parts_of(two, configs(tmp_path, {}, {}, behaviors=settings), stop if end == "stop" else None)
    first = as_one(parts)
    assert first.exit_code == 0, first.reason
    replay = assert_saved(tmp_path, parts)
    assert steps([replay]).total() == replay.number("num_added"), "of both ranks together, so nothing is missing"
    assert not warnings(first)


def warnings(part: Part) -> list[str]:
    """About the replay buffer."""
    found = [event.message for event in part.of(LogEmitted) if event.level in ("warning", "error")]
    return [text for text in found if "replay buffer" in text]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_any_number_of_ranks_goes_on_with_it(size: int, tmp_path: Path, two: Ranks, three: Ranks) -> None:
    parts_of(two, configs(tmp_path, {}, {}, behaviors=sac()))
    before = saved(tmp_path)
    again = configs(tmp_path, *[{}] * size, behaviors=sac(), checkpoint_settings={"resume": True})
    if size == 1:
        found, started = loaded_alone(again[0])
    else:
        parts = parts_of({2: two, 3: three}[size], again)
        found = [part.replays["Walker"] for part in parts]
        started = [event for part in parts for event in part.of(BehaviorStarted)]
    assert steps(found) == steps([before])
    counts = [len(each.tensors["remaining"]) for each in found]
    assert max(counts) - min(counts) <= 17, "a segment"
    assert [event.first_update_step for event in started] == [0] * size, "no rank waits for initial steps"

    longer = configs(tmp_path, *[{}] * size, behaviors=sac(max_steps=800), checkpoint_settings={"resume": True})
    if size > 1:
        parts = parts_of({2: two, 3: three}[size], longer)
        assert as_one(parts).exit_code == 0
        after = assert_saved(tmp_path, parts)
        assert not steps([before]) - steps([after])
        assert steps([after]).total() == after.number("num_added") > before.number("num_added")


def loaded_alone(config: RunConfig) -> tuple[list[State], list[BehaviorStarted]]:
    """What a single process loads."""
    found: list[State] = []
    load = SACTrainer.load_replay

    def noted(trainer: SACTrainer, replay: State) -> None:
        load(trainer, replay)
        held = trainer.replay()
        assert held is not None
        found.append(held)

    with patch.object(SACTrainer, "load_replay", noted):
        run = run_to_end(config)
    return found, run.of(BehaviorStarted)


def test_a_file_that_cannot_be_read_leaves_all_ranks_with_nothing(tmp_path: Path, two: Ranks) -> None:
    parts_of(two, configs(tmp_path, {}, {}, behaviors=sac(max_steps=200)))
    path = tmp_path / "results/run/Walker/replay_buffer.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    again = configs(tmp_path, {}, {}, behaviors=sac(max_steps=400), checkpoint_settings={"resume": True})
    parts = parts_of(two, again)
    first = as_one(parts)
    assert [text for text in warnings(first) if "the replay buffer starts empty" in text]
    starts = [event.first_update_step - event.step for part in parts for event in part.of(BehaviorStarted)]
    assert starts == [60, 60]
    assert_saved(tmp_path, parts)


def end_after_an_interval(script: Script) -> None:
    """Without another save."""
    script.run.wait_for(CheckpointSaved)
    trained(script)
    assert script.run.send(Stop("now")).ok


@pytest.mark.parametrize("threaded", [False, True])
def test_checkpoints_by_interval_have_what_all_ranks_had(threaded: bool, tmp_path: Path, two: Ranks) -> None:
    settings = sac(threaded=threaded, max_steps=ENDLESS, checkpoint_interval=200)
    first = as_one(parts_of(two, configs(tmp_path, {}, {}, behaviors=settings), end_after_an_interval))
    assert first.exit_code == 0, first.reason
    replay = saved(tmp_path)
    assert {event.reason for event in first.of(CheckpointSaved)} == {"interval"}
    assert replay.number("num_added") in [event.step for event in first.of(CheckpointSaved)]
    assert steps([replay]).total() == replay.number("num_added")


def roll_back(script: Script) -> None:
    """And end before anything is added again."""
    run = script.run
    trained(script)
    checkpoint = run.send(SaveCheckpoint("Walker"))
    trained(script)
    assert run.send(Pause()).ok
    assert run.send(RollBack("Walker", checkpoint.message)).ok
    assert run.send(Stop("now")).ok


@pytest.mark.parametrize("threaded", [False, True])
def test_every_rank_drops_what_it_added_after_the_checkpoint(threaded: bool, tmp_path: Path, two: Ranks) -> None:
    settings = sac(threaded=threaded, max_steps=ENDLESS, keep_checkpoints=0)
    parts = parts_of(two, configs(tmp_path, {}, {}, behaviors=settings), roll_back)
    first = as_one(parts)
    path = first.of(CheckpointSaved)[0].path
    num_added = read(Path(path))[0].part("trainer").part("trainer").number("num_added")
    assert num_added < max(event.step for event in first.of(MetricsReported))
    assert_saved(tmp_path, parts)
    assert saved(tmp_path).number("num_added") == num_added


def test_rank_that_is_lost_as_it_saves_leaves_what_the_others_have(tmp_path: Path) -> None:
    run = configs(tmp_path, {}, {"fault": "is killed as it sends its replay buffer"}, behaviors=sac())
    with start_ranks(2, tmp_path) as ranks:
        first, lost = parts_of(ranks, run)
    assert isinstance(lost, Dead)
    assert first.exit_code == 9
    assert first.reason.endswith("was lost: its process has ended")
    assert [event.reason for event in first.of(CheckpointSaved)] == ["final"]
    expected = f"the replay buffer is saved without the experience of rank 1 of 2 on {HOST}, which is lost"
    assert warnings(first) == [expected]
    assert_saved(tmp_path, [first])


@pytest.mark.parametrize("threaded", [False, True])
def test_rank_that_was_lost_before_leaves_what_rank_0_has(threaded: bool, tmp_path: Path) -> None:
    settings = sac(max_steps=ENDLESS, threaded=threaded)
    run = configs(tmp_path, {}, {}, {"fault": "is killed", "at": 100}, behaviors=settings)
    with start_ranks(3, tmp_path) as ranks:
        first, _, lost = parts_of(ranks, run)
    assert isinstance(lost, Dead)
    assert first.exit_code == 9
    assert len(warnings(first)) == 1
    assert [event.reason for event in first.of(CheckpointSaved)] == ["error"]
    assert_saved(tmp_path, [first])


def test_labels_of_a_teacher_are_those_of_all_ranks(tmp_path: Path, two: Ranks) -> None:
    write(str(tmp_path / "a.demo"), num_choices=3)
    hyper = OFFLINE["hyperparameters"] | {"demo_path": str(tmp_path / "a.demo")}
    teacher = run_to_end(offline(tmp_path / "first", max_steps=640, hyperparameters=hyper))
    run = taught(tmp_path, teacher.folder, max_steps=1280)
    parts = parts_of(two, [run] * 2)
    as_one(parts, needs_updates=False)
    name = next(iter(parts[0].replays))
    path = tmp_path / f"results/run/{name}/replay_buffer.safetensors"
    assert steps([read_replay_buffer(path, name)]) == steps(part.replays[name] for part in parts)
