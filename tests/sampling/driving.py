"""Scripted actions for environments and pools, and copies of the answers."""

from __future__ import annotations

import contextlib
import copy
import gc
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import psutil

from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.specs import Actions, BehaviorSpec, Steps
from tests.deadline import DEADLINE_SECONDS

FILES = Path("/proc/self/fd")


def actions_for(spec: BehaviorSpec, count: int, random: np.random.Generator) -> Actions:
    """Uniformly random actions of `count` agents."""
    continuous = random.uniform(-1, 1, (count, spec.actions.continuous)).astype(np.float32)
    columns = [random.integers(0, size, count) for size in spec.actions.branches]
    return Actions(continuous, np.stack(columns, axis=1) if columns else np.zeros((count, 0), np.int64))


def discrete(*choices: Sequence[int] | int) -> Actions:
    """Discrete actions, a row for each agent."""
    rows = np.array(choices, np.int64).reshape(len(choices), -1)
    return Actions(np.zeros((len(choices), 0), np.float32), rows)


def continuous(*values: Sequence[float] | float) -> Actions:
    """Continuous actions, a row for each agent."""
    rows = np.array(values, np.float32).reshape(len(values), -1)
    return Actions(rows, np.zeros((len(values), 0), np.int64))


def receive_all(pool: EnvironmentPool, seconds: float = DEADLINE_SECONDS) -> dict[int, Mapping[str, Steps]]:
    """Copies of the answers of every instance; the pool must answer in time."""
    answers: dict[int, Mapping[str, Steps]] = {}
    deadline = time.monotonic() + seconds
    while len(answers) < pool.num_instances:
        assert time.monotonic() < deadline, "the pool did not answer"
        answers.update(copy.deepcopy(pool.receive(0.5)))
    return answers


def send_all(pool: EnvironmentPool, answers: Mapping[int, Mapping[str, Steps]], random: np.random.Generator) -> None:
    """Let every instance act, with actions drawn in the order of instances and behaviors."""
    for instance, answer in sorted(answers.items()):
        pool.send(
            instance,
            {
                name: actions_for(pool.specs[name], len(answer[name].decisions.agent_ids), random)
                for name in sorted(answer)
            },
        )


def history(pool: EnvironmentPool, num_steps: int, seed: int | None = 1) -> list[dict[int, Mapping[str, Steps]]]:
    """All answers of a started pool to a reset and `num_steps` rounds of scripted actions."""
    random = np.random.default_rng(0)
    pool.reset(seed)
    rounds = [receive_all(pool)]
    for _ in range(num_steps):
        send_all(pool, rounds[-1], random)
        rounds.append(receive_all(pool))
    return rounds


def named_memory(*pids: int) -> set[str]:
    """Files of shared memory that these have open or mapped, and that have a name by which they would stay."""
    paths = set()
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):  # it has died meanwhile
            process = psutil.Process(pid)
            paths |= {each.path for each in (*process.open_files(), *process.memory_maps())}
    return {path for path in paths if path.startswith("/dev/shm/") and not path.endswith(" (deleted)")}


def descriptors() -> set[str]:
    """What this process has open, by number and name."""
    gc.collect()
    if not FILES.exists():
        return {str(number) for number in range(psutil.Process().num_fds())}
    found = set()
    for file in FILES.iterdir():
        with contextlib.suppress(FileNotFoundError):  # the folder itself while it is listed
            found.add(f"{file.name} {file.readlink()}")
    return found


def survivors(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Those that still run after so many seconds; a zombie does not run."""
    deadline = time.monotonic() + seconds
    while alive := [process for process in processes if is_alive(process)]:
        if time.monotonic() > deadline:
            break
    return alive


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
