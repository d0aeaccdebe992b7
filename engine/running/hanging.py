"""Calls into environments of this process that do not come back."""

from __future__ import annotations

from engine.running.workers import has_returned
from engine.sampling.pools.base import EnvironmentPool
from engine.sampling.pools.failures import InstanceFailure
from engine.sampling.tracebacks import place_in_thread


def start_within(seconds: float, pool: EnvironmentPool, advice: str = "") -> None:
    """The pool has started. Raises InstanceFailure when it takes longer: its thread is then left behind."""
    if has_returned(seconds, "environment", pool.start):
        return
    at, stack = whereabouts(pool)
    text = f"{pool.busy_with} has not returned for {seconds:g} s{at}{'. ' if advice else ''}{advice}"
    raise InstanceFailure(text, None, detail=stack)


def whereabouts(pool: EnvironmentPool) -> tuple[str, str]:
    """Where the call in progress is, as a sentence goes on, and its stack."""
    place, stack = ("", "") if pool.busy_in is None else place_in_thread(pool.busy_in)
    return (f", at {place}" if place else ""), stack
