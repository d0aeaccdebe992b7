"""One environment of a run as a screen shows it: its worker processes, and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass, field

from rl_tui.engine.session.messages import EnvironmentRestarting


@dataclass(slots=True)
class EnvironmentView:
    """restarting: since when, in Unix seconds, and why, by worker. awaited: what the user has to do; "" for nothing."""

    name: str
    behaviors: tuple[str, ...] = ()  # known once a worker has failed
    restarting: dict[int, tuple[float, EnvironmentRestarting]] = field(default_factory=dict)
    num_restarts: int = 0
    awaited: str = ""
