"""The memory of worker processes."""

from __future__ import annotations

import os
import subprocess
import sys

from rl_tui.engine.running.machine.processes import WorkerMemory
from tests.deadline import DEADLINE_SECONDS

PLAYER = "import sys; block = bytearray(100 << 20); print('ready', flush=True); sys.stdin.read()"
WORKER = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"


def test_memory_of_a_worker_is_that_of_what_it_has_started_too() -> None:
    memory = WorkerMemory()
    assert memory.sample([]) == {}
    arguments = [sys.executable, "-c", WORKER, PLAYER]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        worker.stdout.readline()
        (used,) = memory.sample([worker.pid]).values()
        assert used is not None
        assert 100 << 20 < used < 400 << 20
        worker.communicate(timeout=DEADLINE_SECONDS)
    assert memory.sample([worker.pid]) == {worker.pid: None}, "it has ended"
    assert WorkerMemory().sample([worker.pid]) == {worker.pid: None}


def test_memory_is_known_of_a_process_that_this_one_has_not_started() -> None:
    (used,) = WorkerMemory().sample([os.getppid()]).values()
    assert used is not None
    assert used > 1 << 20
