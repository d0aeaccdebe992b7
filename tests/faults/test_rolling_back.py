"""The process dies or the power goes while checkpoints are set aside: a resumed run is before that, or after it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rl_tui.engine.errors import CheckpointError
from rl_tui.engine.specs import State
from rl_tui.engine.storage.checkpoints import CheckpointStore
from tests.faults.crash_model import Killed, Machine, RecordingDisk, write_tree
from tests.faults.test_disk_full import FullDisk

STORE, ASIDE = Path("results/first/Walker/checkpoints"), Path("results/first/Walker/checkpoints.abandoned")
STEPS = (100, 200, 300, 400, 500)
BACK_TO, NEWEST = 200, 500


def state_at(step: int) -> State:
    return State({"weight": np.full(16, step, np.float32)}, {"step": step})


def store_in(root: Path, disk: RecordingDisk | FullDisk | None = None) -> CheckpointStore:
    return CheckpointStore(root / STORE, "Walker", 0, disk=disk or RecordingDisk())


def saved(root: Path, disk: RecordingDisk | None = None) -> None:
    """Five checkpoints."""
    root.mkdir(exist_ok=True)
    for step in STEPS:
        store_in(root, disk).save(step, state_at(step), float(step), "interval")


def roll_back(store: CheckpointStore) -> None:
    """As the saver does it."""
    for path in store.newer_than(store.folder / f"Walker-{BACK_TO}"):
        store.set_aside(path)


def resumed_step(root: Path) -> int:
    """The step from which a run would resume; every published checkpoint is whole."""
    newest = store_in(root).newest_valid()
    assert newest.path is not None
    assert newest.skipped == ()
    return store_in(root).load(newest.path)[1].step


def test_killed_at_any_call_it_is_before_or_after_and_nothing_is_lost(tmp_path: Path) -> None:
    disk = RecordingDisk()
    saved(tmp_path / "whole")
    roll_back(store_in(tmp_path / "whole", disk))
    found = []
    for kill_at in range(len(disk.calls)):
        root = tmp_path / str(kill_at)
        saved(root)
        killed = RecordingDisk()
        killed.kill_at = kill_at
        with pytest.raises(Killed):
            roll_back(store_in(root, killed))
        names = {
            path.name for folder in (STORE, ASIDE) if (root / folder).exists() for path in (root / folder).iterdir()
        }
        assert names == {f"Walker-{step}" for step in STEPS}
        found.append(resumed_step(root))
    assert found == sorted(found, reverse=True)
    assert set(found) == {NEWEST, BACK_TO}
    assert resumed_step(tmp_path / "whole") == BACK_TO


def crashes(
    tmp_path: Path, leaves_out: Callable[[Path], bool] = lambda path: False, until_wrong: bool = False
) -> tuple[set[int], list[str]]:
    """The steps from which runs would resume after a power failure, and what was wrong.

    A state that was seen before is not looked at again. until_wrong: only until something is.
    """
    root, luck, disk = tmp_path / "disk", random.Random(7), RecordingDisk(leaves_out)
    saved(root, disk)
    begin = len(disk.calls)
    roll_back(store_in(root, disk))
    disk.promise(BACK_TO)
    machine, found, wrong, seen = Machine(root), set[int](), list[str](), set[str]()
    for number, call in enumerate(disk.calls):
        machine.do(call)
        for _ in range(30 if number >= begin else 0):
            tree = machine.after_power_loss(luck)
            if (state := f"{call.step}{tree}") in seen:
                continue
            seen.add(state)
            write_tree(tree, tmp_path / "after")
            step = resumed_step(tmp_path / "after")
            found.add(step)
            if step not in ((BACK_TO,) if call.step == BACK_TO else (NEWEST, BACK_TO)):
                wrong.append(f"call {number}: resumes from {step}")
            if call.step == BACK_TO and not all(
                (tmp_path / "after" / ASIDE / f"Walker-{s}").exists() for s in STEPS[2:]
            ):
                wrong.append("what was set aside is lost")
            shutil.rmtree(tmp_path / "after")
            if until_wrong and wrong:
                return found, wrong
    return found, wrong


def test_power_that_goes_at_any_call_leaves_before_or_after(tmp_path: Path) -> None:
    assert crashes(tmp_path) == ({NEWEST, BACK_TO}, [])


@pytest.mark.parametrize("name", ["checkpoints", "checkpoints.abandoned"])
def test_leaving_out_a_sync_is_noticed(tmp_path: Path, name: str) -> None:
    """The model sees it: without this the test above could pass for any order of calls."""
    has_begun = False

    def leaves_out(path: Path) -> bool:
        nonlocal has_begun
        has_begun |= path.name == "checkpoints.abandoned"
        return has_begun and path.name == name

    assert crashes(tmp_path, leaves_out, until_wrong=True)[1]


@pytest.mark.parametrize("refuse_at", range(11))
def test_disk_that_refuses_at_any_call_leaves_what_is_resumed(tmp_path: Path, refuse_at: int) -> None:
    """Sync of the folder above or the new folder, then rename and two syncs a checkpoint, and again."""
    saved(tmp_path / "disk")
    disk = FullDisk(refuse_at)
    with pytest.raises(CheckpointError, match=r"cannot be set aside in .* \(No space left on device\)"):
        roll_back(store_in(tmp_path / "disk", disk))
    assert resumed_step(tmp_path / "disk") == NEWEST
    disk.has_room = True
    roll_back(store_in(tmp_path / "disk", disk))
    assert resumed_step(tmp_path / "disk") == BACK_TO
