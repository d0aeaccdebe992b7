"""The process group of a worker: how it ends, and its priority."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import sys
from pathlib import Path


def die_with(lifeline: int) -> None:
    """From now on this process group is killed when the other end of this pipe closes, also in the middle of a step.

    On Linux the kernel itself sends SIGKILL, so neither a lock nor a loop in C can be in the way. Elsewhere it sends
    SIGIO, and the handler runs as soon as the interpreter does.
    """
    if sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    else:
        signal.signal(signal.SIGIO, lambda *_: os.killpg(0, signal.SIGKILL))
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    poll = select.poll()
    poll.register(lifeline, select.POLLHUP)
    if poll.poll(0):  # it closed before the kernel was asked
        os.killpg(0, signal.SIGKILL)


def lower_priority(niceness: int) -> None:
    """Other processes come before this one and all it starts, as far as the system allows.

    A session is a group of its own to Linux's scheduler (autogroup), which divides time between groups first and
    compares niceness only within one: the group must be nice, too.
    """
    os.nice(niceness)
    with contextlib.suppress(OSError):  # another system, or a Linux without such groups
        Path("/proc/self/autogroup").write_text(str(niceness), encoding="ascii")
