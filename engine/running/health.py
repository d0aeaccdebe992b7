"""Warnings about a live run, told among its events."""

from __future__ import annotations

from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.health.watch import HealthWatch

MAIL_WAITING = 2000  # about two minutes of a busy run; a coordinator that is further behind has other troubles


class HealthReporter:
    """Tells what the run's events give reason to warn of. Used by the coordinator. Owns its subscription.

    Its mailbox is bounded, and closed at the end: when nobody ticks, old news is lost and nothing grows.
    """

    def __init__(self, bus: EventBus):
        self._bus = bus
        self._subscription = bus.subscribe(MAIL_WAITING)
        self._watch = HealthWatch()

    def tick(self) -> None:
        """Tell the warnings that began or ended with what was told since the last call."""
        for envelope in self._subscription.drain():
            for warning in self._watch.apply(envelope):
                self._bus.publish(warning)

    def close(self) -> None:
        """Leave the bus. Harmless when called twice."""
        self._subscription.close()
