"""What a worker has counted by now, in its shared file: the training process reads it at any moment."""

from __future__ import annotations

import mmap
import os
import time
from typing import NamedTuple

import numpy as np

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.specs import Int64

SIZE = 1 << 14  # bytes, of which only those in use take memory
_WORDS = 5  # for times, since when it waits, and blocks that were copied; those of behaviors follow


class Counts(NamedTuple):
    """Of one behavior. sampled, learned: actions chosen, in all and by the policy that learns. complete: rows of whole
    segments to learn from, drained or not. departed: agents that left without the end of an episode. held: rows to
    learn from that were not drained yet."""

    sampled: int = 0
    learned: int = 0
    complete: int = 0
    departed: int = 0
    held: int = 0

    def plus(self, other: Counts) -> Counts:
        """The sums."""
        return Counts(*(own + more for own, more in zip(self, other, strict=True)))


class Times(NamedTuple):
    """Seconds in environments, in policies, and waiting for the training process."""

    environment: float = 0.0
    inference: float = 0.0
    waiting: float = 0.0

    def plus(self, other: Times) -> Times:
        """The sums."""
        return Times(*(own + more for own, more in zip(self, other, strict=True)))


class Counters:
    """Both sides map the same words; each writes its own."""

    def __init__(self, file: int, offset: int) -> None:
        if os.fstat(file).st_size < offset + SIZE:
            os.truncate(file, offset + SIZE)
        words: Int64 = np.ndarray((SIZE // 8,), np.int64, mmap.mmap(file, SIZE, offset=offset))
        self._times, self._waits_since, self._copied = words[:3], words[3:4], words[4:_WORDS]
        width = len(Counts._fields)
        rows = (len(words) - _WORDS) // width
        self._behaviors = words[_WORDS : _WORDS + rows * width].reshape(rows, width)

    def count(self, behavior: int, counts: Counts) -> None:
        """Worker: write the counts of a behavior. Raises EnvironmentFailure where there are too many behaviors."""
        if behavior >= len(self._behaviors):
            raise EnvironmentFailure(f"must have at most {len(self._behaviors)} behaviors, got {behavior + 1}")
        self._behaviors[behavior] = counts

    def spend(self, environment: float, inference: float) -> None:
        """Worker: write these times, in seconds."""
        self._times[:2] = round(environment * 1e9), round(inference * 1e9)

    def begin_wait(self) -> None:
        """Worker: it waits for the training process from now on."""
        self._waits_since[0] = time.monotonic_ns()

    def end_wait(self) -> None:
        """Worker: it waits no more."""
        waited = time.monotonic_ns() - int(self._waits_since[0])
        self._waits_since[0] = 0
        self._times[2] += waited

    def counts(self, behavior: int) -> Counts:
        """Training process: the counts of a behavior."""
        return Counts(*self._behaviors[behavior].tolist())

    @property
    def times(self) -> Times:
        """Training process: the times, up to now also of a wait that goes on."""
        environment, inference, waiting = self._times.tolist()
        since = int(self._waits_since[0])
        waiting += time.monotonic_ns() - since if since else 0
        return Times(environment * 1e-9, inference * 1e-9, waiting * 1e-9)

    def note_copied(self, num_blocks: int) -> None:
        """Training process: so many blocks were copied."""
        self._copied[0] = num_blocks

    @property
    def num_copied(self) -> int:
        """Worker: how many blocks the training process has copied."""
        return int(self._copied[0])
