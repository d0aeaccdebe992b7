"""Calls into environments of this process that do not return."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from rl_tui.engine.process.tracebacks import place_in_thread
from rl_tui.engine.running.threads import has_returned
from rl_tui.engine.sampling.failures import InstanceFailure, StartStopped
from rl_tui.engine.sampling.pools.base import EnvironmentPool, never

T = TypeVar("T")

STOPPED_SECONDS = 3.0  # between two checks, which come several times as often, unless the process was stopped


class CallTimer:
    """Used by a thread that often checks how long calls take. Time while the process was stopped does not count."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._checked_at = self._awake_since = clock()

    def busy_seconds(self, pool: EnvironmentPool) -> float:
        """How long the call in progress has taken since the process was last stopped; 0 when there is none."""
        now = self._clock()
        if now - self._checked_at > STOPPED_SECONDS:
            self._awake_since = now
        self._checked_at = now
        since = pool.busy_since
        return 0.0 if since is None else now - max(since, self._awake_since)


def call_with_timeout(
    seconds: float,
    pool: EnvironmentPool,
    call: Callable[[], T],
    advice: str = "",
    is_stopped: Callable[[], bool] = never,
) -> T:
    """Return what the call, which uses the pool, returns. Raises what it raises.

    Raises InstanceFailure when an environment is busy for longer than that, and StartStopped once `is_stopped`: its
    thread is then left behind.
    """
    returned: list[T] = []
    timer = CallTimer()

    def is_late() -> bool:
        return is_stopped() or timer.busy_seconds(pool) > seconds

    if has_returned("environment", lambda: returned.append(call()), is_late):
        return returned[0]
    if is_stopped():
        raise StartStopped
    at, stack = locate_call(pool)
    text = f"{pool.busy_with} has not returned for {seconds:g} s{at}{'. ' if advice else ''}{advice}"
    raise InstanceFailure(text, None, detail=stack)


def close_unless_busy(pool: EnvironmentPool, seconds: float) -> None:
    """Close it within that time; one with a call that hangs is left as it is, like the thread of that call."""
    if busy_seconds(pool) == 0:
        call_with_timeout(seconds, pool, pool.close)


def busy_seconds(pool: EnvironmentPool) -> float:
    """How long the call in progress has taken; 0 when there is none."""
    since = pool.busy_since
    return 0.0 if since is None else time.monotonic() - since


def locate_call(pool: EnvironmentPool) -> tuple[str, str]:
    """Where the call in progress is, as the end of a sentence, and its stack."""
    place, stack = ("", "") if pool.busy_in is None else place_in_thread(pool.busy_in)
    return (f", at {place}" if place else ""), stack
