"""One environment of a run as a screen shows it: its worker processes, and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class EnvironmentView:
    """restarting: since when, in Unix seconds, by worker. awaited: what the user has to do; "" for nothing."""

    name: str
    behaviors: tuple[str, ...] = ()  # known once a worker has failed
    restarting: dict[int, float] = field(default_factory=dict)
    num_restarts: int = 0
    awaited: str = ""
