"""How many worker processes a run gets whose `num_workers` is auto."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from rl_tui.engine.config.environment_name import is_of_unity
from rl_tui.engine.config.loading import load_config
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.types import AUTO
from rl_tui.engine.errors import ConfigError, RlTuiError
from rl_tui.engine.running.call_timeout import call_with_timeout, close_unless_busy
from rl_tui.engine.running.worker_advice import in_words
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.failures import StartStopped
from rl_tui.engine.sampling.pools.base import EnvironmentPool, never
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.sampling.pools.worker_process import start_seconds
from rl_tui.engine.sampling.random_policy import RandomPolicies
from rl_tui.engine.session.text import counted
from rl_tui.engine.storage.run_folder import RunFolder

PAYS_FROM_SECONDS = 50e-6  # of a step of one copy: docs/benchmarks.md, "Workers that act"
PAYS_FROM_SECONDS_IN_MAIN = 500e-6  # where each step is sent to the workers
NUM_PARTS, PART_STEPS, PART_SECONDS = 5, 1000, 0.1
SEED = 0  # of the copy that is timed, which no other one is compared with


class WorkerChoice(NamedTuple):
    """reason: for the log; "" where there is nothing to say."""

    num_workers: int
    reason: str = ""


def choose_workers(
    config: RunConfig,
    sources: Sequence[EnvironmentSource],
    folder: RunFolder,
    num_cpus: int,
    is_stopped: Callable[[], bool] = never,
) -> WorkerChoice:
    """The number for each of the environments where it is auto; that of an earlier process where the run is resumed.

    num_cpus: that all may use together. Raises StartStopped once `is_stopped`.
    """
    sources = [source for source in sources if not is_of_unity(source.env)]  # each player has a worker anyway
    if not sources:
        return WorkerChoice(0)
    if (kept := _kept(folder)) is not None:
        number, reason = min(kept, config.env_settings.num_envs), "as this run has had"
    else:
        number, reason = _choose(config, sources, num_cpus, is_stopped)
    return WorkerChoice(number, f"num_workers: auto takes {number}, {reason}")


def _choose(
    config: RunConfig, sources: Sequence[EnvironmentSource], num_cpus: int, is_stopped: Callable[[], bool]
) -> tuple[int, str]:
    """The number, and why."""
    settings = config.env_settings
    is_threaded = any(behavior.threaded for behavior in config.all_behaviors)  # a learner then needs a CPU meanwhile
    if any(source.is_here for source in sources):
        return 0, "since worker processes cannot import the environment"
    share = (num_cpus - is_threaded) // len(sources)
    most, cpus = min(settings.num_envs, share), _cpus_in_words(num_cpus, len(sources), is_threaded)
    if most + is_threaded < 2:
        return 0, "since num_envs is 1" if share > most else f"since {cpus}"
    try:
        seconds = max(_step_seconds(source, settings.timeout_wait, is_stopped) for source in sources)
    except StartStopped:
        raise
    except RlTuiError as error:  # the start, which makes it again, fails in the same way
        return 0, f"since its steps could not be timed: {error}"
    least = PAYS_FROM_SECONDS if settings.act_in != "main" else PAYS_FROM_SECONDS_IN_MAIN
    if seconds < least:
        return 0, f"since a step takes {in_words(seconds)}: workers pay off from {in_words(least)} on"
    return most, f"since a step takes {in_words(seconds)} and {f'num_envs is {most}' if share > most else cpus}"


def _cpus_in_words(num_cpus: int, num_environments: int, is_threaded: bool) -> str:
    users = [f"{num_environments} environments"] if num_environments > 1 else []
    users += ["a learner that needs one"] if is_threaded else []
    there = f"there {'is' if num_cpus == 1 else 'are'} {counted(num_cpus, 'CPU')}"
    return f"{there} for {' and '.join(users)}" if users else there


def _kept(folder: RunFolder) -> int | None:
    """The number that an earlier process of the run had; None without one."""
    if not folder.is_resumed:
        return None
    with suppress(ConfigError):
        number = load_config(folder.configuration, {"writers": {}}).env_settings.num_workers
        return None if number == AUTO else int(number)
    return None


def _step_seconds(source: EnvironmentSource, timeout: float, is_stopped: Callable[[], bool]) -> float:
    """Of a step of one copy, with what its resets take. Raises RlTuiError."""
    pool = SerialPool(source.env, source.make, 1)
    try:
        call_with_timeout(start_seconds(timeout), pool, pool.start, is_stopped=is_stopped)
        return call_with_timeout(timeout, pool, lambda: measure_steps(pool), is_stopped=is_stopped)
    finally:
        close_unless_busy(pool, timeout)


def measure_steps(pool: EnvironmentPool, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds that a step of all instances takes, in which agents act at random. Raises EnvironmentFailure.

    It is that of the fastest of several parts: other programs may have disturbed the others.
    """
    policies, best = RandomPolicies(SEED), math.inf
    pool.reset(SEED)
    arrived = pool.receive(0.0)
    for part in range(1 + NUM_PARTS):
        num_steps, seconds = 0, 0.0
        while num_steps < PART_STEPS and seconds < PART_SECONDS:
            acting = [(instance, policies.act(steps, pool.specs)) for instance, steps in arrived]
            start = clock()
            for instance, actions in acting:
                pool.send(instance, actions)
            arrived = pool.receive(0.0)
            num_steps += 1
            seconds += clock() - start
        if part > 0:  # the first steps are slower
            best = min(best, seconds / num_steps)
    return best
