"""Where the reader of a recorded run stands, so that another can go on from there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class LogPosition:
    """Behind the last event that was read; its reader keeps it up to date.

    num_bytes, num_lines: read so far. offset, highest, last: how the numbers of events go on where a run was resumed.
    """

    num_bytes: int = 0
    num_lines: int = 0
    offset: int = 0
    highest: int = 0
    last: int = 0
