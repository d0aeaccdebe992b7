"""A worker process never outlives the process that started it, however that one ends."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import sys


def die_with(lifeline: int) -> None:
    """From now on this process group is killed when the other end of this pipe closes, also in the middle of a step.

    The kernel does it on Linux: it sends SIGKILL itself, so neither a lock nor a loop in C can be in the way. Elsewhere
    it sends SIGIO, and the handler runs as soon as the interpreter does.
    """
    if sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    else:
        signal.signal(signal.SIGIO, lambda *_: os.killpg(0, signal.SIGKILL))
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    poll = select.poll()
    poll.register(lifeline, select.POLLHUP)
    if poll.poll(0):  # it closed before the kernel was asked to tell
        os.killpg(0, signal.SIGKILL)
