"""How many worker processes a run gets whose `num_workers` is auto."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from rl_tui.engine.config.environment_name import is_of_unity
from rl_tui.engine.config.loading import load_config
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.types import AUTO
from rl_tui.engine.errors import ConfigError, RlTuiError
from rl_tui.engine.running.call_timeout import busy_seconds, call_with_timeout
from rl_tui.engine.running.worker_advice import in_words
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.environments.named_callable import PROGRAM
from rl_tui.engine.sampling.failures import StartStopped
from rl_tui.engine.sampling.pools.base import EnvironmentPool, never
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.sampling.pools.worker_process import start_seconds
from rl_tui.engine.sampling.random_policy import RandomPolicies
from rl_tui.engine.session.text import counted
from rl_tui.engine.storage.run_folder import RunFolder

PAYS_FROM_SECONDS = 50e-6  # of a step of one copy: docs/benchmarks.md, "Workers that act"
FIRST_STEPS, MOST_STEPS = 20, 5000  # the first ones are slower than the others, and not counted
MEASURED_SECONDS = 0.5
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
    """The number for each of the environments; that of an earlier process where the run is resumed.

    num_cpus: that all may use together. Raises StartStopped once `is_stopped`.
    """
    settings = config.env_settings
    if settings.num_workers != AUTO:
        return WorkerChoice(settings.worker_count)
    sources = [source for source in sources if not is_of_unity(source.env)]  # each player has a worker anyway
    if not sources:
        return WorkerChoice(0)
    if (kept := _kept(folder)) is not None:
        number, reason = min(kept, settings.num_envs), "as this run has had"
    else:
        number, reason = _choose(config, sources, num_cpus, is_stopped)
    return WorkerChoice(number, f"num_workers: auto takes {number}, {reason}")


def _choose(
    config: RunConfig, sources: Sequence[EnvironmentSource], num_cpus: int, is_stopped: Callable[[], bool]
) -> tuple[int, str]:
    """The number, and why."""
    settings, learners = config.env_settings, int(_is_threaded(config))
    if any(source.is_lent or source.env.startswith(f"{PROGRAM}:") for source in sources):
        return 0, "since worker processes cannot import the environment"
    most = min(settings.num_envs, (num_cpus - learners) // len(sources))
    available = (
        f"num_envs is {settings.num_envs}, and there {'is' if num_cpus == 1 else 'are'} {counted(num_cpus, 'CPU')}"
    )
    if most + learners < 2:
        return 0, f"since {available}"
    try:
        times = [_step_seconds(source, settings.timeout_wait, is_stopped) for source in sources]
    except StartStopped:
        raise
    except RlTuiError as error:  # the start, which makes it again, fails in the same way
        return 0, f"since its steps could not be timed: {error}"
    step = f"a step takes {in_words(max(times))}"
    if max(times) < PAYS_FROM_SECONDS:
        return 0, f"since {step}: workers pay off from {in_words(PAYS_FROM_SECONDS)} on"
    return most, f"since {step}, {available}"


def _kept(folder: RunFolder) -> int | None:
    """The number that an earlier process of the run had; None without one."""
    if not folder.is_resumed:
        return None
    with suppress(ConfigError):
        number = load_config(folder.configuration, {"writers": {}}).env_settings.num_workers
        return None if number == AUTO else int(number)
    return None


def _is_threaded(config: RunConfig) -> bool:
    """Whether a learner needs a CPU while the workers collect."""
    default = [] if config.default_settings is None else [config.default_settings]
    return any(behavior.threaded for behavior in (*config.behaviors.values(), *default))


def _step_seconds(source: EnvironmentSource, timeout: float, is_stopped: Callable[[], bool]) -> float:
    """Of a step of one copy, with what its resets take. Raises RlTuiError."""
    pool = SerialPool(source.env, source.make, 1)
    try:
        call_with_timeout(start_seconds(timeout), pool, pool.start, is_stopped=is_stopped)
        return call_with_timeout(timeout, pool, lambda: measure_steps(pool), is_stopped=is_stopped)
    finally:
        if busy_seconds(pool) == 0:  # otherwise it hangs, and its thread was left behind
            call_with_timeout(timeout, pool, pool.close)


def measure_steps(pool: EnvironmentPool, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds that a step of all instances takes, in which agents act at random. Raises EnvironmentFailure."""
    policies = RandomPolicies(SEED)
    pool.reset(SEED)
    arrived = pool.receive(0.0)
    num_steps, seconds = -FIRST_STEPS, 0.0
    while num_steps < MOST_STEPS and (num_steps < 1 or seconds < MEASURED_SECONDS):
        acting = [(instance, policies.act(steps, pool.specs)) for instance, steps in arrived]
        start = clock()
        for instance, actions in acting:
            pool.send(instance, actions)
        arrived = pool.receive(0.0)
        num_steps += 1
        if num_steps > 0:
            seconds += clock() - start
    return seconds / num_steps
