"""One environment of a run as a screen shows it: its worker processes, and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass, field

from rl_tui.engine.session.messages import EnvironmentRestarting
from rl_tui.engine.session.text import one_line, safe_text


@dataclass(slots=True)
class EnvironmentView:
    """restarting: since when, in Unix seconds, and why, by worker. awaited: what the user has to do; "" for nothing."""

    name: str
    behaviors: tuple[str, ...] = ()  # known once a worker has failed
    restarting: dict[int, tuple[float, EnvironmentRestarting]] = field(default_factory=dict)
    num_restarts: int = 0
    awaited: str = ""


def worker_word(environment: str) -> str:
    """What a worker of this environment is to the user."""
    return "player" if environment.startswith("unity:") else "worker"


def bare_reason(event: EnvironmentRestarting) -> str:
    """Why a worker is restarting, without the name of the environment and the number of the worker."""
    reason, name = one_line(safe_text(event.reason, multiline=True)), safe_text(event.environment)
    _, colon, rest = reason.removeprefix(name).partition(": ")
    return rest if reason.startswith(name) and colon else reason
