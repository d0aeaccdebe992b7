"""The disk refuses a write: what was saved stays, nothing partial remains, and saving works once there is room."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rl_tui.engine.errors import CheckpointError
from rl_tui.engine.specs import State
from rl_tui.engine.storage.checkpoints import CheckpointStore
from rl_tui.engine.storage.disk import Disk, write_atomically

ROOT = Path(__file__).parents[2]


def state_at(step: int) -> State:
    return State({"weight": np.full(2000, step, np.float32)}, {"step": step})


class FullDisk(Disk):
    """A real disk whose calls that need room are refused from the given one on, until `room` is set."""

    def __init__(self, refuse_at: int) -> None:
        self._left = refuse_at
        self.has_room = False

    def _take(self) -> None:
        if self.has_room:
            return
        if self._left == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._left -= 1

    def make_folder(self, path: Path) -> None:
        self._take()
        super().make_folder(path)

    def write(self, path: Path, content: bytes) -> None:
        try:
            self._take()
        except OSError:
            super().write(path, content[: len(content) // 2])
            raise
        super().write(path, content)

    def sync(self, path: Path) -> None:
        self._take()
        super().sync(path)

    def rename(self, source: Path, target: Path) -> None:
        self._take()
        super().rename(source, target)


CALLS_TO_PUBLISH = 10  # sync of the found folder, new folder, three times write and sync, sync, rename


@pytest.mark.parametrize("refuse_at", range(CALLS_TO_PUBLISH))
def test_a_full_disk_at_any_call_leaves_the_earlier_checkpoint_and_nothing_else(tmp_path: Path, refuse_at: int) -> None:
    CheckpointStore(tmp_path / "checkpoints", "Walker", 5).save(1, state_at(1), None, "interval")
    disk = FullDisk(refuse_at)
    store = CheckpointStore(tmp_path / "checkpoints", "Walker", 5, disk=disk)
    with pytest.raises(CheckpointError, match=r"not written \(No space left on device\)") as caught:
        store.save(2, state_at(2), None, "interval")
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.ENOSPC
    assert os.listdir(store.folder) == ["Walker-1"]
    assert store.newest_valid().path == store.folder / "Walker-1"
    disk.has_room = True
    assert store.save(2, state_at(2), None, "interval") == store.newest_valid().path


def test_a_failure_of_the_very_last_sync_is_reported_and_repaired_by_the_next_save(tmp_path: Path) -> None:
    """The checkpoint stands under its name then, but a power cut might still take it: it is not promised."""
    CheckpointStore(tmp_path / "checkpoints", "Walker", 5).save(1, state_at(1), None, "interval")
    disk = FullDisk(CALLS_TO_PUBLISH)
    store = CheckpointStore(tmp_path / "checkpoints", "Walker", 5, disk=disk)
    for _ in range(2):
        with pytest.raises(CheckpointError, match="not written"):
            store.save(2, state_at(2), None, "interval")
    disk.has_room = True
    assert store.save(2, state_at(2), None, "interval") == store.newest_valid().path


def test_an_old_checkpoint_that_cannot_be_removed_stays_whole(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path / "checkpoints", "Walker", 1, disk=FullDisk(0))
    for step in (1, 2):
        CheckpointStore(store.folder, "Walker", 5).save(step, state_at(step), None, "interval")
    with pytest.raises(CheckpointError, match="Walker-1: cannot be removed"):
        store.prune()
    assert [checkpoint.step for checkpoint in store.list()] == [1, 2]


def test_a_full_disk_leaves_a_replaced_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    write_atomically(path, b"old")
    for refuse_at in range(3):
        with pytest.raises(OSError, match="No space left"):
            write_atomically(path, b"new and longer", FullDisk(refuse_at))
        assert os.listdir(tmp_path) == ["status.json"]
        assert path.read_bytes() == b"old"


SAVE_UNDER_A_LIMIT = """
import resource, sys
from pathlib import Path
from rl_tui.engine.errors import CheckpointError
from rl_tui.engine.storage.checkpoints import CheckpointStore
from tests.faults.test_disk_full import state_at

store = CheckpointStore(Path(sys.argv[1]), "Walker", 5)
store.save(1, state_at(1), None, "interval")
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
try:
    store.save(2, state_at(2), None, "interval")
except CheckpointError as error:
    print(error)
assert [path.name for path in store.folder.iterdir()] == ["Walker-1"]
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert store.save(2, state_at(2), None, "interval") == store.newest_valid().path
"""


def test_a_file_size_limit_of_the_system_is_survived(tmp_path: Path) -> None:
    """The kernel itself refuses in the middle of a file: a part is written, then EFBIG."""
    command = [sys.executable, "-c", SAVE_UNDER_A_LIMIT, str(tmp_path / "checkpoints")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "Walker-2: not written (File too large); earlier checkpoints are untouched" in result.stdout
