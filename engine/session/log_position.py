"""How far a recorded run has been read, so that another reader can continue from there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class LogPosition:
    """The position after the event that was read last; updated by the reader.

    num_bytes, num_lines: read so far. offset, highest, last: for continuous event numbers where a run was resumed.
    """

    num_bytes: int = 0
    num_lines: int = 0
    offset: int = 0
    highest: int = 0
    last: int = 0
