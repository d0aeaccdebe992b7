"""How far a recorded run has been read, so that another reader can continue from there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class LogPosition:
    """The position after the event that was read last; updated by the reader.

    num_bytes, num_lines: read so far. epoch: of the newest event. last: the largest number in it that shows where a log
    of an earlier version, which has no epochs, goes on with another process.
    """

    num_bytes: int = 0
    num_lines: int = 0
    epoch: int = 1
    last: int = 0
