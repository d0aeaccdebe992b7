"""How a process is named where several, on several machines, may write to runs in one folder."""

from __future__ import annotations

import os
import socket


def this_process() -> str:
    """This one, as "pid 123 on host"."""
    return f"pid {os.getpid()} on {socket.gethostname()}"
