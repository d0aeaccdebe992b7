"""Whether a SIGHUP says that the terminal is gone, or asks the process to end."""

from __future__ import annotations

import os
import time

# A shell that loses its terminal sends the signal to its jobs, as the kernel has done: late where the machine is busy.
SAME_SECONDS = 20.0


def has_terminal() -> bool:
    """Whether this process has a controlling terminal: the kernel takes it away before it sends SIGHUP."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


class Hangups:
    """Of the terminal that the process had when this was made; one that never had any has none to lose.

    outlives: whether the process goes on without it.
    """

    def __init__(self, *, outlives: bool) -> None:
        self._outlives = outlives and has_terminal()
        self._lost_at: float | None = None  # on the monotonic clock

    def is_survived(self) -> bool:
        """Called at a SIGHUP, and where the terminal is found to be gone: whether the process goes on. A signal that
        comes later is meant for the process."""
        if not self._outlives or has_terminal():
            return False
        now = time.monotonic()
        if self._lost_at is None:
            self._lost_at = now
        return now - self._lost_at < SAME_SECONDS

    def leave(self) -> None:
        """The process has no terminal any more: every SIGHUP is meant for it."""
        self._outlives = False


ENDING = Hangups(outlives=False)  # every SIGHUP ends the process
