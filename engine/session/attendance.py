"""Which screens show a run, and which of them controls it."""

from __future__ import annotations

import threading

from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import Attend, ControllerChanged, TakeControl


class Attendance:
    """The first screen controls the run, until another takes over or it leaves; then the one that came next does. Any
    thread.

    Screens that came before the run had a log are announced when one of them is heard of again.
    """

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._lock = threading.Lock()
        self._screens: list[str] = []  # in the order in which they came
        self._controller = ""

    def take(self, hint: Attend | TakeControl) -> bool:
        """Whether any screen shows the run after this."""
        with self._lock:
            is_known = hint.screen in self._screens
            match hint:
                case Attend(is_attended=True) if not is_known:
                    self._screens.append(hint.screen)
                case Attend(is_attended=False) if is_known:
                    self._screens.remove(hint.screen)
            wanted = hint.screen if isinstance(hint, TakeControl) else self._controller
            if wanted not in self._screens:
                wanted = next(iter(self._screens), "")
            if wanted != self._controller and self._bus.epoch:  # before, the run has no log
                self._controller = wanted
                self._bus.publish(ControllerChanged(wanted))
            return bool(self._screens)
