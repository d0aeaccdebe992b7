"""What goes wrong with one rank ends all within the deadline, saved, by name; another number of ranks goes on."""

from __future__ import annotations

import random
import resource
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from rl_tui.engine.session.messages import BehaviorStarted, RunStateChanged
from tests.end_to_end.program import finish, read_until, start
from tests.faults.rank_programs import (
    DIVERGED,
    ENVIRONMENT_FAILED,
    KILLED,
    LOST,
    TERMINATED,
    UNSAVED,
    Ended,
    RankedProgram,
    named,
    ranks,
    write,
)

MORE_STEPS = 400  # of a run that goes on
SMALL_FILES = 512  # bytes, less than a checkpoint
MOST_SECONDS = 1.0  # from the first checkpoint until a signal
KINDS = ("killed", "watcher killed", "stopped", "pays no number", "raises", "full disk", "full disk for a while")
IN_ENVIRONMENTS = {"pays no number": DIVERGED, "raises": ENVIRONMENT_FAILED}


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong. moment: from 0 to 1. next_size: the number of ranks that go on."""

    kind: str
    rank: int
    size: int
    moment: float
    next_size: int


def drawn(luck: random.Random, kind: str) -> Fault:
    """A fault of that kind."""
    size = luck.choice((2, 3))
    rank = 0 if kind.startswith("full disk") else luck.randrange(size)
    return Fault(kind, rank, size, luck.random(), luck.choice([each for each in (1, 2, 3) if each != size]))


def endure(fault: Fault, folder: Path, run_id: str) -> None:
    """It happens, the run ends as promised, and another number of ranks continues it to its end."""
    kind, rank, size = fault.kind, fault.rank, fault.size
    own = {"FAULT": kind, "FAULT_AT": str(25 + int(100 * fault.moment))} if kind in IN_ENVIRONMENTS else {}
    with ranks(folder, size=size, run_id=run_id, more={rank: own}) as run:
        if not own:
            run.wait_until_saved()
            time.sleep(MOST_SECONDS * fault.moment)
            happen(fault, run)
        ended = run.finish(stopped=rank if kind == "stopped" else None)
        require_end(fault, run, ended)
        step = run.newest_step()
    go_on(folder, run_id, fault.next_size, step)


def happen(fault: Fault, run: RankedProgram) -> None:
    """The fault, where it does not come from an environment."""
    match fault.kind:
        case "killed":
            run.signal(fault.rank, signal.SIGKILL)
        case "watcher killed":
            run.look()
            run.processes[fault.rank].kill()
        case "stopped":
            run.signal(fault.rank, signal.SIGSTOP)
        case _:
            limit(run.worker(0), SMALL_FILES)
            read_until(run.processes[0], "was not saved|not written")
            if fault.kind == "full disk for a while":
                limit(run.worker(0), resource.RLIM_INFINITY)
            run.signal(fault.size - 1, signal.SIGTERM)


def limit(process: psutil.Process, num_bytes: int) -> None:
    """No file of it may be larger."""
    process.rlimit(psutil.RLIMIT_FSIZE, (num_bytes, resource.RLIM_INFINITY))


def require_end(fault: Fault, run: RankedProgram, ended: list[Ended]) -> None:
    """The exit codes and messages of all ranks are what they should be."""
    rank, size = fault.rank, fault.size
    codes = [each.exit_code for each in ended]
    said = f"{fault}: {ended}"
    others = [each for number, each in enumerate(ended) if number != rank]
    match fault.kind:
        case "killed" | "watcher killed" | "stopped":
            assert [each.exit_code for each in others] == [LOST] * (size - 1), said
            assert codes[rank] in ((LOST, ENVIRONMENT_FAILED) if fault.kind == "stopped" else KILLED), said
            reasons = [each.stderr for number, each in enumerate(ended) if number not in (0, rank)]
            reasons += [run.reason] if rank else []
            for reason in reasons:
                assert f"{named(rank, size)} was lost: " in reason, said
            if rank:
                assert run.saved[-1].reason == "error", said
        case "full disk" | "full disk for a while":
            assert codes[0] == (UNSAVED if fault.kind == "full disk" else TERMINATED), said
            assert codes[1:] == [0] * (size - 2) + [TERMINATED], said
        case _:
            assert codes == [IN_ENVIRONMENTS[fault.kind]] * size, said
            assert rank == 0 or named(rank, size) in run.reason, run.reason
            assert run.saved[-1].reason == "error", said


def go_on(folder: Path, run_id: str, size: int, step: int) -> None:
    """So many ranks continue from that step to the end."""
    last = step + MORE_STEPS
    words = ("--resume", "--set", f"behaviors.Line.max_steps={last}")
    if size == 1:
        process = start("line.yaml", "--no-ui", "--run-id", run_id, *words, folder=folder)
        run, ended = RankedProgram(folder, run_id, [process]), [Ended(*finish(process))]
    else:
        with ranks(folder, *words, size=size, run_id=run_id) as run:
            ended = run.finish()
    assert [each.exit_code for each in ended] == [0] * size, ended
    events = run.events
    assert [event.step for event in events if isinstance(event, BehaviorStarted)][-1] == step
    assert [event for event in events if isinstance(event, RunStateChanged)][-1].state == "finished"
    assert last <= run.newest_step() < last + 64


@pytest.mark.parametrize("kind", KINDS)
def test_fault_of_each_kind_ends_all_ranks_saved_and_the_run_goes_on(kind: str, tmp_path: Path) -> None:
    write(tmp_path)
    endure(drawn(random.Random(kind), kind), tmp_path, "run")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(10))
def test_ten_faults_end_all_ranks_saved_and_the_runs_go_on(seed: int, tmp_path: Path) -> None:
    """A hundred in all, of drawn kinds, ranks, numbers of ranks and moments."""
    write(tmp_path)
    luck = random.Random(seed)
    for number in range(10):
        fault = drawn(luck, luck.choice(KINDS))
        begin = time.monotonic()
        endure(fault, tmp_path, f"run-{number}")
        print(f"{fault}: {time.monotonic() - begin:.0f} s")
