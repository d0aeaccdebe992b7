"""What a pool reports besides steps: events where agents train, lines for a log where a policy is evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rl_tui.engine.sampling.environments.base import NoteLevel
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.reports import Awaiting, Note, Report, Restarted, Restarting
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import EnvironmentAwaits, EnvironmentRestarted, EnvironmentRestarting


def publish_reports(pool: EnvironmentPool, environment: str, behaviors: Sequence[str], bus: EventBus) -> None:
    """Publish everything that the pool has reported since the last call. behaviors: those of the environment."""
    for report in pool.pop_reports():
        _publish(report, environment, tuple(behaviors), bus)


def lines_of_reports(pool: EnvironmentPool) -> Iterator[tuple[NoteLevel, str]]:
    """The same as lines with their levels. An evaluation waits for no user."""
    for report in pool.pop_reports():
        match report:
            case Restarting(worker, _, reason, _, count):
                yield "warning", f"{reason}; worker {worker} is started again (restart {count})"
            case Restarted(worker, seconds):
                yield "info", f"worker {worker} acts again after {seconds:.1f} s"
            case Note(level, text):
                yield level, text


def _publish(report: Report, environment: str, behaviors: tuple[str, ...], bus: EventBus) -> None:
    match report:
        case Restarting(worker, _, reason, detail, count):
            bus.publish(EnvironmentRestarting(environment, worker, behaviors, reason, detail, count))
        case Restarted(worker, seconds):
            bus.publish(EnvironmentRestarted(environment, worker, seconds))
        case Note(level, text):
            bus.log(level, environment, text)
        case Awaiting(text):
            bus.publish(EnvironmentAwaits(environment, text))
