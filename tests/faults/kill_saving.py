"""A program: fork a process that saves without end, kill it, see what is left; again and again.

    python -m tests.faults.kill_saving RESULTS KILLS SEED

One thread only, so that forking is safe, and everything imported before the first fork, so that a child spends its
life saving. Prints one JSON object: kills, inside (that fell inside a write), promised (after a promise), lost, torn.
"""

from __future__ import annotations

import io
import json
import os
import random
import select
import signal
import struct
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from rl_tui.engine.errors import CheckpointError
from rl_tui.engine.specs import State
from rl_tui.engine.storage.checkpoints import CheckpointStore
from rl_tui.engine.storage.disk import UNFINISHED
from rl_tui.engine.storage.run_folder import RunFolder

NUMBER = struct.Struct("<q")
NUM_WEIGHTS = 30_000  # a network of 120 kB: several writes and syncs to fall into
SAVE_SECONDS = 0.01  # about one save


@dataclass
class Tally:
    kills: int = 0
    inside: int = 0
    promised: int = 0
    lost: int = 0
    torn: int = 0


def state_at(step: int) -> State:
    return State({"weight": np.random.default_rng(step).random(NUM_WEIGHTS, np.float32)}, {"step": step})


def save_without_end(results: Path, first_step: int, pipe: int) -> None:
    """The child: the run's lock, then one checkpoint after the other, each promised when `save` has returned."""
    folder = RunFolder(results, "killed")
    folder.open(resume=True)
    store = CheckpointStore(folder.add_behavior("Walker").checkpoints, "Walker", 3)
    store.open()
    os.write(pipe, NUMBER.pack(0))
    step = first_step
    while True:
        step += 1
        store.save(step, state_at(step), float(step % 7), "interval")
        os.write(pipe, NUMBER.pack(step))
        store.prune()


def kill_one(results: Path, first_step: int, luck: random.Random) -> int:
    """Start a child, kill it at a random moment of its first saves; the last step it promised, 0 for none.

    The moment is counted in the child's own saves, so that a busy machine changes neither how much is promised nor how
    often a write is hit: after none to two of them, and then within the time that one has just taken.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            save_without_end(results, first_step, writer)
        finally:
            os._exit(1)  # whatever went wrong: never into the parent's code
    os.close(writer)
    with open(reader, "rb", buffering=0) as promises:
        numbers = [await_number(promises)]
        begun = time.perf_counter()
        numbers += [await_number(promises) for _ in range(luck.choice((0, 1, 1, 2)))]
        save_seconds = (time.perf_counter() - begun) / (len(numbers) - 1) if len(numbers) > 1 else SAVE_SECONDS
        time.sleep(luck.uniform(0, save_seconds))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"the child ended by itself: {status}"
        content = promises.readall()
    return int(max([*numbers, *(number for (number,) in NUMBER.iter_unpack(content))]))


def await_number(promises: io.FileIO) -> int:
    """The next number from the child."""
    ready, _, _ = select.select([promises], [], [], 20)
    assert ready, "the child makes no progress"
    (number,) = NUMBER.unpack(promises.read(NUMBER.size))
    return int(number)


def examine(store: CheckpointStore, promised: int, tally: Tally) -> int:
    """Compare what is left with the newest step ever promised; the newest step that stands."""
    tally.inside += any(entry.name.startswith(UNFINISHED) for entry in store.folder.iterdir())
    newest = 0
    for path in store.folder.glob("Walker-*"):
        try:
            state, checkpoint = store.load(path)
        except CheckpointError:
            tally.torn += 1
            continue
        newest = max(newest, checkpoint.step)
        tally.torn += not np.array_equal(state.tensors["weight"], state_at(checkpoint.step).tensors["weight"])
    tally.lost += newest < promised
    return newest


def main(results: Path, kills: int, seed: int) -> Tally:
    luck, tally = random.Random(seed), Tally()
    with RunFolder(results, "killed") as folder:
        folder.open()
        behavior = folder.add_behavior("Walker")
    store = CheckpointStore(behavior.checkpoints, "Walker", 3)
    store.open()
    store.save(1, state_at(1), None, "interval")
    newest = promised = 1
    for _ in range(kills):
        last = kill_one(results, newest, luck)
        tally.kills += 1
        tally.promised += last > 0
        promised = max(promised, last)
        newest = examine(store, promised, tally)
    return tally


if __name__ == "__main__":
    print(json.dumps(asdict(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))))
