"""Nothing is left behind: no process, no descriptor, no file, however the pool or its process ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import psutil
import pytest

from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.failures import InstanceFailure
from rl_tui.engine.sampling.pools.process import ProcessPool
from tests.deadline import DEADLINE_SECONDS
from tests.sampling.driving import descriptors, history, named_memory, survivors
from tests.warm_start import WarmProcess

ROOT = Path(__file__).parent.parent.parent.parent
MISBEHAVING = "tests.sampling.worlds:Misbehaving"

ENGINE = """
import sys, threading
import numpy
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.failures import InstanceFailure
from rl_tui.engine.sampling.pools.process import ProcessPool
from tests.sampling.driving import descriptors, history, send_all
pool = ProcessPool(EnvironmentSource("tests.sampling.worlds:Misbehaving", "B", {"fault": sys.argv[1]}), 2, 2, 60.0)
pool.start()
send_all(pool, history(pool, 2)[-1], numpy.random.default_rng(0))
print(*pool.worker_pids.values(), flush=True)
threading.Event().wait()
"""


@pytest.fixture
def cold_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """They start as they do for a user."""
    monkeypatch.setattr("rl_tui.engine.sampling.pools.child.subprocess", subprocess)


@pytest.mark.skipif(not Path("/dev/shm").exists(), reason="named memory is in no folder here")
def test_named_memory_is_noticed() -> None:
    memory = SharedMemory(create=True, size=1)
    try:
        assert f"/dev/shm/{memory.name}" in named_memory(os.getpid())
    finally:
        memory.close()
        memory.unlink()


def test_closed_pool_leaves_no_process_descriptor_or_file() -> None:
    before = descriptors()
    for fault in ("behaves", "raises", "dies"):
        pool = ProcessPool(EnvironmentSource(MISBEHAVING, "B", {"fault": fault}), 3, 2, DEADLINE_SECONDS)
        pool.start()
        pids = list(pool.worker_pids.values())
        with contextlib.suppress(InstanceFailure):
            history(pool, 5)
        assert named_memory(os.getpid(), *pids) == set()
        pool.close()
        del pool
        assert descriptors() <= before
        assert not any(psutil.pid_exists(pid) for pid in pids)


@contextlib.contextmanager
def engine_with_workers(fault: str) -> Iterator[tuple[int, list[psutil.Process]]]:
    """A process that waits for ever while its two workers are idle (behaves) or stuck in a step (hangs)."""
    engine = WarmProcess(
        [sys.executable, "-c", ENGINE, fault], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    with engine:
        try:
            assert engine.stdout is not None
            workers = [psutil.Process(int(pid)) for pid in engine.stdout.readline().split()]
            assert len(workers) == 2
            yield engine.pid, workers
        finally:
            engine.kill()


@pytest.mark.parametrize(
    ("fault", "target"),
    [
        ("behaves", "process"),
        ("hangs", "group"),
        ("hangs_with_a_child", "process"),
        pytest.param("behaves", "group", marks=pytest.mark.slow),
        pytest.param("hangs", "process", marks=pytest.mark.slow),
        pytest.param("hangs_with_a_child", "group", marks=pytest.mark.slow),
    ],
)
def test_killed_engine_ends_its_workers(target: str, fault: str) -> None:
    with engine_with_workers(fault) as (engine, workers):
        everything = list(workers)
        if fault == "hangs_with_a_child":
            deadline = time.monotonic() + DEADLINE_SECONDS
            while not all(worker.children() for worker in workers):
                assert time.monotonic() < deadline
            everything += [child for worker in workers for child in worker.children()]
        assert named_memory(engine, *(worker.pid for worker in workers)) == set()
        kill = os.killpg if target == "group" else os.kill
        kill(engine, signal.SIGKILL)
        assert survivors(everything, DEADLINE_SECONDS) == []


@pytest.mark.usefixtures("cold_workers")
def test_worker_leaves_signals_to_the_engine() -> None:
    pool = ProcessPool(EnvironmentSource("toy:line", "B", {}), 1, 1, DEADLINE_SECONDS)
    pool.start()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(pool.worker_pids[0], number)
        history(pool, 3)  # raises if it has ended
    pool.close()


@pytest.mark.usefixtures("cold_workers")
def test_worker_imports_neither_torch_nor_a_screen() -> None:
    pool = ProcessPool(EnvironmentSource("gymnasium:CartPole-v1", "B", {}), 2, 1, DEADLINE_SECONDS)
    pool.start()
    mapped = {Path(library.path).parts for library in psutil.Process(pool.worker_pids[0]).memory_maps()}
    assert not any("torch" in parts for parts in mapped)
    assert any("numpy" in parts for parts in mapped)
    pool.close()
