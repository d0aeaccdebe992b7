"""The power goes at every moment of a run that saves, with every kind of luck: what was promised is there."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from rl_tui.engine.errors import CheckpointError
from rl_tui.engine.specs import State
from rl_tui.engine.storage.checkpoint_format import STATE, TENSORS
from rl_tui.engine.storage.checkpoints import CheckpointStore
from rl_tui.engine.storage.disk import UNFINISHED
from rl_tui.engine.storage.file_names import MANIFEST
from tests.faults.crash_model import Call, Killed, Machine, RecordingDisk, Tree, write_tree
from tests.faults.memory import folder_in_memory

STORE = Path("results/first/Walker/checkpoints")
RETURNS = {100: 10.0, 200: 90.0, 300: 30.0, 400: 40.0, 500: 50.0}
BEST = 200


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In memory."""
    with folder_in_memory() as folder:
        yield folder


def state_at(step: int) -> State:
    return State({"weight": np.full(16, step, np.float32)}, {"step": step})


@dataclass
class Verdict:
    """crashes: states looked at. distinct: those that differed. lost, torn: what was wrong, one line each."""

    crashes: int = 0
    distinct: int = 0
    lost: list[str] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)


def record_run(root: Path, disk: RecordingDisk) -> None:
    """A run from nothing that saves five times, keeps two and the best, and promises each step once it is saved."""
    root.mkdir()
    store = CheckpointStore(root / STORE, "Walker", 2, disk=disk)
    for step, mean_return in RETURNS.items():
        store.save(step, state_at(step), mean_return, "interval")
        disk.promise(step)
        store.prune()


def judge(
    root: Path, calls: list[Call], samples: int, scratch: Path, every_prefix: bool = True, until_lost: bool = False
) -> Verdict:
    """Cut the power after each call, `samples` times, and look at what is left as a resumed run would.

    until_lost: only until something is lost.
    """
    luck, machine, verdict, seen = random.Random(7), Machine(root), Verdict(), dict[str, None]()
    promised = 0
    for number, call in enumerate(calls):
        promised = max(promised, call.step)
        machine.do(call)
        if not every_prefix and number < len(calls) - 1:
            continue
        for _ in range(samples):
            tree = machine.after_power_loss(luck)
            verdict.crashes += 1
            key = f"{promised}{tree}"
            if key not in seen:
                seen[key] = None
                examine(tree, promised, scratch, verdict)
            if until_lost and verdict.lost:
                return verdict
    verdict.distinct = len(seen)
    return verdict


def examine(tree: Tree, promised: int, scratch: Path, verdict: Verdict) -> None:
    write_tree(tree, scratch)
    store = CheckpointStore(scratch / STORE, "Walker", 2)
    steps = {0}
    for path in (scratch / STORE).glob("Walker-*"):
        try:
            state, checkpoint = store.load(path)
        except CheckpointError as error:
            verdict.torn.append(str(error))
            continue
        steps.add(checkpoint.step)
        assert np.array_equal(state.tensors["weight"], state_at(checkpoint.step).tensors["weight"])
    if max(steps) < promised:
        verdict.lost.append(f"promised {promised}, found {max(steps)}")
    if promised >= BEST and BEST not in steps:
        verdict.lost.append("the best is gone")
    shutil.rmtree(scratch)


def test_no_promised_checkpoint_is_lost_when_the_power_goes(tmp_path: Path) -> None:
    disk = RecordingDisk()
    record_run(tmp_path / "disk", disk)
    verdict = judge(tmp_path / "disk", disk.calls, 90, tmp_path / "after")
    assert verdict.lost == []
    assert verdict.torn == []
    assert verdict.crashes >= 5000
    assert verdict.distinct >= 300, "a model without luck proves nothing"


def is_named(name: str) -> Callable[[Path], bool]:
    return lambda path: path.name == name


def is_unfinished_folder(path: Path) -> bool:
    return path.name.startswith(UNFINISHED)


@pytest.mark.parametrize(
    "leaves_out",
    [
        pytest.param(is_named(TENSORS), id="the tensors"),
        pytest.param(is_named(STATE), id="the values"),
        pytest.param(is_named(MANIFEST), id="the manifest"),
        pytest.param(is_unfinished_folder, id="the unfinished folder"),
        pytest.param(is_named("checkpoints"), id="the folder it is published in"),
        pytest.param(is_named("Walker"), id="the name of that folder"),
        pytest.param(is_named("first"), id="the name of the behavior's folder"),
        pytest.param(is_named("disk"), id="the name of the results folder"),
    ],
)
def test_leaving_out_any_one_sync_loses_what_was_promised(tmp_path: Path, leaves_out: Callable[[Path], bool]) -> None:
    """The model sees each of them: without this the test above could pass for any protocol."""
    disk = RecordingDisk(leaves_out)
    record_run(tmp_path / "disk", disk)
    assert judge(tmp_path / "disk", disk.calls, 4, tmp_path / "after", until_lost=True).lost


def test_what_a_killed_writer_left_is_durable_once_it_is_promised_again(tmp_path: Path) -> None:
    """Killed at any call, saved again at the same step by the next process, then the power goes."""
    root = tmp_path / "disk"
    whole = RecordingDisk()
    record_run(root, whole)
    crashes = 0
    for kill_at in range(whole.calls.index(Call("promise", Path(), step=100))):
        shutil.rmtree(root)
        disk = RecordingDisk()
        disk.kill_at = kill_at
        with pytest.raises(Killed):
            record_run(root, disk)
        disk.kill_at = None
        CheckpointStore(root / STORE, "Walker", 2, disk=disk).save(100, state_at(100), 10.0, "interval")
        disk.promise(100)
        verdict = judge(root, disk.calls, 20, tmp_path / "after", every_prefix=False)
        assert (verdict.lost, verdict.torn) == ([], []), f"killed at call {kill_at}"
        crashes += verdict.crashes
    assert crashes >= 200
