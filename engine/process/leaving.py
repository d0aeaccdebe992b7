"""The end of this process, which nothing that hangs may delay."""

from __future__ import annotations

import os
import sys
import threading

_has_left_behind = threading.Event()


def leave_behind() -> None:
    """Note that a library's call hangs: what it has registered for the end of the process may hang, too. Any thread."""
    _has_left_behind.set()


def end_process(exit_code: int) -> None:
    """End the process at once if something was left behind; otherwise return. Called last."""
    if _has_left_behind.is_set():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)
