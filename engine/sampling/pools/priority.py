"""A worker that others should hardly feel. Imported before anything else is, so that its start is not felt either."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def stand_back(niceness: int) -> None:
    """This process and all it starts give way to others, as far as the system allows.

    A session of its own is a group of its own to Linux's scheduler (autogroup), which shares time out between groups
    first and looks at how nice a process is only within one: the group must be nice, too.
    """
    os.nice(niceness)
    with contextlib.suppress(OSError):  # another system, or a Linux without such groups
        Path("/proc/self/autogroup").write_text(str(niceness), encoding="ascii")
