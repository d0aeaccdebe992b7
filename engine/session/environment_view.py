"""One environment of a run as a screen shows it: its worker processes, and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass, field

from rl_tui.engine.session.messages import EnvironmentFailed, EnvironmentRestarting, Worker, WorkersSampled
from rl_tui.engine.session.text import one_line, safe_text


@dataclass(slots=True)
class WorkersView:
    """The worker processes of one environment, as they were sampled last."""

    environment: str
    behaviors: tuple[str, ...] = ()
    workers: tuple[Worker, ...] = ()

    def apply(self, event: WorkersSampled) -> None:
        """The newest sample."""
        self.behaviors, self.workers = event.behaviors, event.workers

    @property
    def total(self) -> Worker:
        """All of them as one, whose number is how many they are: sums, the mean share of waiting, the largest lag."""
        speeds = [each.steps_per_second for each in self.workers if each.steps_per_second is not None]
        waiting = [each.waiting for each in self.workers if each.waiting is not None]
        memory = [each.memory_bytes for each in self.workers if each.memory_bytes is not None]
        return Worker(
            number=len(self.workers),
            pid=None,
            steps_per_second=sum(speeds) if speeds else None,
            waiting=sum(waiting) / len(waiting) if waiting else None,
            lag=max((each.lag for each in self.workers if each.lag is not None), default=None),
            restarts=sum(each.restarts for each in self.workers),
            memory_bytes=sum(memory) if memory else None,
        )


@dataclass(slots=True)
class EnvironmentView:
    """restarting: since when, in Unix seconds, and why, by worker. awaited: what the user has to do; "" for nothing.
    workers: by the first of their behaviors, since several behaviors may have an environment of that name each."""

    name: str
    behaviors: tuple[str, ...] = ()  # known once a worker has failed
    workers: dict[str, WorkersView] = field(default_factory=dict)
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


def named_reason(event: EnvironmentFailed) -> str:
    """Why an environment has failed, beginning with its name."""
    named = event.reason.startswith(event.environment)
    return event.reason if named else f"{event.environment}: {event.reason}"
