"""Ctrl-C, and what only looks like it."""

from __future__ import annotations

import signal
import threading


def is_ctrl_c(error: BaseException) -> bool:
    """Whether it is the user who interrupts the program: Python raises that in the main thread only, and not while
    SIGINT is ignored. Any other KeyboardInterrupt was raised by the code that was called, and is a failure of it."""
    return (
        isinstance(error, KeyboardInterrupt)
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    )
