"""One line for a run whose environments would be faster in worker processes."""

from __future__ import annotations

from rl_tui.engine.config.run import EnvSettings
from rl_tui.engine.running.machine.devices import usable_cpus
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.serial import SerialPool

AFTER_STEPS = 500  # of each copy: the first ones are slower than the others
LEAST_SECONDS = 100e-6  # of a step of one copy: below that, a worker costs more than it brings


class WorkerAdvice:
    """Used by the thread of one environment, which counts its steps here."""

    def __init__(self, environment: str, settings: EnvSettings, is_here: bool, num_cpus: int | None = None) -> None:
        """is_here: only this process has its environments. num_cpus: None for those that may be used."""
        self._environment, self._settings = environment, settings
        self._num_workers = min(settings.num_envs, usable_cpus() if num_cpus is None else num_cpus)
        self._is_of_use = self._num_workers > 1 and not is_here
        self._num_steps = 0

    def count(self, pool: EnvironmentPool, environment_seconds: float) -> str | None:
        """Count a step of every copy; the line, once it is known. environment_seconds: of all steps so far."""
        if not self._is_of_use:
            return None
        self._num_steps += 1
        if self._num_steps < AFTER_STEPS:
            return None
        self._is_of_use = False
        seconds = environment_seconds / (self._num_steps * self._settings.num_envs)
        if not isinstance(pool, SerialPool) or seconds < LEAST_SECONDS:
            return None
        return (
            f"a step of {self._environment} takes {in_words(seconds)}: with env_settings.num_workers:"
            f" {self._num_workers} its copies would be stepped at the same time"
        )


def in_words(seconds: float) -> str:
    """Of a step: "250 us", "2.5 ms"."""
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"
