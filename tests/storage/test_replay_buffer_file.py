"""Replay buffers on disk: what is read is what was written, or nothing; and runs that resume with theirs."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from rl_tui.engine.errors import CheckpointError
from rl_tui.engine.running.machine.memory import available_bytes, size_text
from rl_tui.engine.session.messages import BehaviorStarted, LogEmitted, MetricsReported, RollBack, SaveCheckpoint, Stop
from rl_tui.engine.specs import State
from rl_tui.engine.storage.disk import Disk
from rl_tui.engine.storage.replay_buffer_file import read_replay_buffer, write_replay_buffer
from tests.running.runs import ENDLESS, LiveRun, behavior, configuration, ending, equal, live, run_to_end

REPLAY = State(
    {
        "observation.0": np.arange(24, dtype=np.uint8).reshape(2, 3, 4, 1),
        "rewards": np.array([[0.5], [np.float32(-1e-30)]], np.float32),
        "discrete": np.array([[7], [-7]], np.int64),
        "forbidden": np.array([[True, False], [False, False]]),
        "ending": np.array([1, -1], np.int8),
        "remaining": np.array([1, 0], np.int32),
        "priorities": np.array([0.1, 2.0]),
        "continuous": np.empty((2, 0), np.float32),
    },
    {"num_added": 17, "largest_priority": 2.0, "has_masks": True},
)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "replay_buffer.safetensors"
    write_replay_buffer(path, "Walker", 17, REPLAY)
    found = read_replay_buffer(path, "Walker")
    assert equal(found.tensors, REPLAY.tensors)
    assert all(found.tensors[name].shape == array.shape for name, array in REPLAY.tensors.items())
    assert found.values == REPLAY.values
    for array in found.tensors.values():
        array[...] = 0  # it is the reader's own
    assert equal(safetensors.numpy.load_file(path), REPLAY.tensors), "any reader of this format can open it"
    write_replay_buffer(path, "Walker", 18, State({}, {"num_added": 0}))
    assert read_replay_buffer(path, "Walker") == State({}, {"num_added": 0})
    assert os.listdir(tmp_path) == [path.name]


def test_array_of_any_layout_is_written_in_order(tmp_path: Path) -> None:
    column = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4))[::2]
    write_replay_buffer(tmp_path / "replay", "Walker", 0, State({"column": column}))
    np.testing.assert_array_equal(read_replay_buffer(tmp_path / "replay", "Walker").tensors["column"], column)


def test_damage_anywhere_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "replay"
    write_replay_buffer(path, "Walker", 17, REPLAY)
    content = path.read_bytes()
    for place in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with suppress(CheckpointError):
            found = read_replay_buffer(path, "Walker")  # the damage is in a space of the header
            assert equal(found.tensors, REPLAY.tensors)
            assert found.values == REPLAY.values
    for length in (0, 7, 100, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(CheckpointError, match=f"^{path}: "):
            read_replay_buffer(path, "Walker")


def test_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "replay"
    safetensors.numpy.save_file({"weight": np.zeros(1)}, path)
    with pytest.raises(CheckpointError, match=f"^{path}: "):
        read_replay_buffer(path, "Walker")


class FullDisk(Disk):
    """Has room for so many calls that write."""

    def __init__(self, room: int) -> None:
        self._room = room

    def append(self, path: Path, content: memoryview) -> None:
        if self._room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._room -= 1
        super().append(path, content)


@pytest.mark.parametrize("room", [0, 3])
def test_full_disk_leaves_the_older_buffer_and_nothing_else(tmp_path: Path, room: int) -> None:
    path = tmp_path / "replay"
    write_replay_buffer(path, "Walker", 1, State({}, {"num_added": 1}))
    with pytest.raises(CheckpointError, match=f"^{path}: .*{os.strerror(errno.ENOSPC)}"):
        write_replay_buffer(path, "Walker", 2, REPLAY, FullDisk(room))
    assert read_replay_buffer(path, "Walker").values == {"num_added": 1}
    assert os.listdir(tmp_path) == ["replay"]


class LyingDisk(Disk):
    """Writes something else than it is given."""

    def append(self, path: Path, content: memoryview) -> None:
        super().append(path, memoryview(bytes(len(content))))


def test_what_is_not_read_back_as_it_was_written_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "replay"
    write_replay_buffer(path, "Walker", 1, State({}, {"num_added": 1}))
    with pytest.raises(CheckpointError, match="replay: "):
        write_replay_buffer(path, "Walker", 2, REPLAY, LyingDisk())
    assert read_replay_buffer(path, "Walker").values == {"num_added": 1}
    assert os.listdir(tmp_path) == ["replay"]


SAC: dict[str, Any] = {"batch_size": 16, "buffer_size": 400, "buffer_init_steps": 60, "steps_per_update": 8}


def sac(folder: Path, hyperparameters: dict[str, Any], max_steps: int = 160, **checkpoint_settings: Any) -> LiveRun:
    walker = behavior(trainer_type="sac", hyperparameters=SAC | hyperparameters, max_steps=max_steps)
    return run_to_end(configuration(folder, {"Walker": walker}, checkpoint_settings=checkpoint_settings))


def logged(run: LiveRun, level: str) -> str:
    return "\n".join(event.message for event in run.of(LogEmitted) if event.level == level)


def held(run: LiveRun) -> int:
    """Steps in the saved buffer."""
    saved = read_replay_buffer(run.folder / "Walker/replay_buffer.safetensors", "Walker")
    return int((saved.tensors["remaining"] > 0).sum())


def test_resumed_run_continues_with_its_replay_buffer(tmp_path: Path) -> None:
    run = sac(tmp_path, {"save_replay_buffer": True})
    assert run.launch.exit_code == 0
    (started,) = run.of(BehaviorStarted)
    assert (started.replay_steps, started.first_update_step) == (400, 60)
    assert f"replay buffer: 400 steps, {size_text(started.replay_bytes)}" in logged(run, "info")
    before = held(run)
    assert before > 150
    run = sac(tmp_path, {"save_replay_buffer": True}, max_steps=240, resume=True)
    assert run.launch.exit_code == 0
    assert f"loaded {run.folder / 'Walker/replay_buffer.safetensors'}" in logged(run, "info")
    assert run.of(BehaviorStarted)[0].first_update_step == 0, "it learns at once"
    assert held(run) >= before + 70


@pytest.mark.parametrize("trouble", ["missing", "damaged", "of another run", "not asked for"])
def test_run_begins_with_an_empty_buffer_where_none_can_be_used(tmp_path: Path, trouble: str) -> None:
    is_asked_for = trouble != "not asked for"
    run = sac(tmp_path, {"save_replay_buffer": is_asked_for})
    path = run.folder / "Walker/replay_buffer.safetensors"
    assert path.exists() == is_asked_for
    if trouble == "missing":
        path.unlink()
    elif trouble == "damaged":
        path.write_bytes(path.read_bytes()[:-1])
    elif trouble == "of another run":
        write_replay_buffer(path, "Walker", 3, REPLAY)
    run = sac(tmp_path, {"save_replay_buffer": is_asked_for}, max_steps=240, resume=True)
    assert run.launch.exit_code == 0
    assert ("replay buffer" in logged(run, "warning")) == is_asked_for
    assert run.of(BehaviorStarted)[0].first_update_step > 160


def test_forced_run_does_not_keep_the_buffer_of_the_one_before(tmp_path: Path) -> None:
    run = sac(tmp_path, {"save_replay_buffer": True})
    path = run.folder / "Walker/replay_buffer.safetensors"
    run = sac(tmp_path, {"save_replay_buffer": False}, force=True)
    assert not path.exists()
    assert f"removed {path}" in logged(run, "warning")


def test_buffer_is_saved_on_request_and_a_rolled_back_run_continues(tmp_path: Path) -> None:
    walker = behavior(trainer_type="sac", hyperparameters=SAC | {"save_replay_buffer": True}, max_steps=ENDLESS)
    with live(configuration(tmp_path, {"Walker": walker})) as run:
        first = run.send(SaveCheckpoint())
        assert first.ok
        assert run.send(SaveCheckpoint()).ok
        assert run.send(RollBack("Walker", first.message)).ok
        run.wait_for(MetricsReported, after=len(run.mail))
        assert run.send(Stop()).ok
        assert run.wait() == 0
    assert held(run) > 0


def test_buffers_that_do_not_fit_in_memory_are_refused_by_name(tmp_path: Path) -> None:
    per_step = 34  # bytes of a step of toy:line
    run = sac(tmp_path, {"buffer_size": 2 * available_bytes() // per_step})
    assert run.launch.exit_code == 2
    assert "behaviors.Walker" in ending(run).reason
    assert "buffer_size" in ending(run).reason
    assert not run.folder.exists()
