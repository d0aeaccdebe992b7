"""A run whose environments are slow says which setting would help, once, and only where it would."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rl_tui.engine.config.run import EnvSettings
from rl_tui.engine.running.worker_advice import AFTER_STEPS, WorkerAdvice
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.sampling.pools.serial import SerialPool


def lines_of(advice: WorkerAdvice, pool: SerialPool | ProcessPool, microseconds: float, copies: int) -> Iterator[str]:
    for number in range(1, 2 * AFTER_STEPS):
        line = advice.count(pool, number * copies * microseconds * 1e-6)
        if line is not None:
            yield line


@pytest.mark.parametrize(
    ("microseconds", "said"), [(99.0, []), (250.0, ["250 us", "num_workers: 3 "]), (2500.0, ["2.5 ms"])]
)
def test_slow_steps_are_noticed(microseconds: float, said: list[str]) -> None:
    pool = SerialPool("test", lambda first, count: [Line("B", 1)] * count, 4)
    advice = WorkerAdvice("toy:line", EnvSettings(num_envs=4), is_here=False, num_cpus=3)
    lines = list(lines_of(advice, pool, microseconds, 4))
    assert len(lines) == bool(said)
    assert all(words in lines[0] for words in said)


@pytest.mark.parametrize(("num_envs", "num_cpus", "is_here"), [(1, 4, False), (4, 1, False), (4, 4, True)])
def test_nothing_is_said_where_it_would_not_help(num_envs: int, num_cpus: int, is_here: bool) -> None:
    pool = SerialPool("test", lambda first, count: [Line("B", 1)] * count, num_envs)
    advice = WorkerAdvice("toy:line", EnvSettings(num_envs=num_envs), is_here, num_cpus)
    assert not list(lines_of(advice, pool, 1000.0, num_envs))


def test_nothing_is_said_of_workers() -> None:
    pool = ProcessPool(EnvironmentSource("toy:line", "B", {}), 4, 2)
    advice = WorkerAdvice("toy:line", EnvSettings(num_envs=4, num_workers=2), is_here=False, num_cpus=4)
    assert not list(lines_of(advice, pool, 1000.0, 4))
