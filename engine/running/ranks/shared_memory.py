"""Messages and gradients between ranks of one machine, in memory that they share.

A mini-batch of a small network takes less time than gloo needs for one message, so ranks of one machine write what they
have to say into memory, and read what the others have written.
"""

from __future__ import annotations

import mmap
import os
import platform
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_tui.engine.learning.sync import ROOM, Array, Float64, Sync, Weigh
from rl_tui.engine.sampling.pools.shared_memory import anonymous_file

LINE = 64  # bytes: of a processor's cache, which two ranks should not both write to
PAYLOAD = 1 << 20  # bytes of gradients that are exchanged at once
MESSAGE = ROOM * 8
NUM_SLOTS = 2  # a rank that writes the next one may be read meanwhile; the others have then read the one before
YIELDING_SECONDS = 1e-3  # of looks without a pause, between which others may run: the shortest one takes 0.1 ms
NAP_SECONDS = 5e-5  # between looks after that
CHECK_SECONDS = 0.05  # between looks whether a rank is lost


class SharedMemory:
    """Implements Transport. Every rank makes the same calls in the same order, of which each has one number more.

    waited: seconds for others.
    """

    def __init__(self, file: int, rank: int, size: int, deadline: float, check: Callable[[], str]) -> None:
        """file: of `num_bytes(size)`. deadline: in seconds, beyond which a rank is not waited for. check: why one is
        lost, "" where none is."""
        self.waited = 0.0
        self._rank, self._deadline, self._check = rank, deadline, check
        self._memory = mmap.mmap(file, num_bytes(size))
        self._numbers = memoryview(self._memory)[: (size + 1) * LINE].cast("q")  # of the newest call of each rank
        self._given_up = size * LINE // 8  # behind them: whether a rank waits no more
        self._others = [other * LINE // 8 for other in range(size) if other != rank]
        self._number = 0
        begin = [(size + 1) * LINE + slot * size * (MESSAGE + PAYLOAD) for slot in range(NUM_SLOTS)]
        self._messages = [np.ndarray((size, ROOM), np.float64, self._memory, start) for start in begin]
        self._payloads = [
            np.ndarray((size, PAYLOAD), np.uint8, self._memory, start + size * MESSAGE) for start in begin
        ]

    def gather(self, values: Float64) -> Float64:
        """See Transport."""
        if len(values) <= ROOM:
            return self._gather_message(values)
        parts = []
        for start in range(0, len(values), PAYLOAD // 8):
            payloads = self._write(values[start : start + PAYLOAD // 8])
            self._meet()
            parts.append(payloads.copy())
        return np.concatenate(parts, axis=1)

    def reduce(self, message: Float64, vector: Array, weigh: Weigh) -> Float64:
        """See Transport."""
        own = vector if isinstance(vector, np.ndarray) else vector.detach().cpu().numpy()
        per_part = PAYLOAD // own.itemsize
        first, *others = (own[start : start + per_part] for start in range(0, max(1, len(own)), per_part))
        payloads = self._write(first)
        messages = self._gather_message(message)
        weights = weigh(messages)
        _add_up(payloads, weights, first)
        for part in others:
            payloads = self._write(part)
            self._meet()
            _add_up(payloads, weights, part)
        if isinstance(vector, Tensor) and vector.device.type != "cpu":
            vector.copy_(torch.from_numpy(own))
        return messages

    def _gather_message(self, values: Float64) -> Float64:
        """Meets once, at the place of a message of `reduce`: a rank that fails gathers one, while others reduce."""
        messages = self._messages[self._next]
        messages[self._rank, : len(values)] = values
        self._meet()
        return messages[:, : len(values)].copy()

    def _write(self, part: NDArray[Any]) -> NDArray[Any]:
        """Write a part of a vector; returns [R, K], those of all ranks once they have met."""
        payloads = self._payloads[self._next][:, : part.nbytes].view(part.dtype)
        payloads[self._rank] = part
        return payloads

    @property
    def _next(self) -> int:
        """The slot that this rank may write."""
        return (self._number + 1) % NUM_SLOTS

    def _meet(self) -> None:
        """Say that the slot is written, and wait until all have. Raises RuntimeError once a rank is lost."""
        self._number += 1
        number, numbers = self._number, self._numbers
        numbers[self._rank * LINE // 8] = number
        for other in self._others:
            if numbers[other] < number:
                self._wait(other)

    def _wait(self, other: int) -> None:
        number, numbers, start = self._number, self._numbers, time.monotonic()
        try:
            while time.monotonic() < start + YIELDING_SECONDS:
                if numbers[other] >= number:
                    return
                os.sched_yield()
            check_at = start + CHECK_SECONDS
            while numbers[other] < number:
                time.sleep(NAP_SECONDS)
                if (now := time.monotonic()) > check_at:
                    check_at = now + CHECK_SECONDS
                    reason = self._check() or ("another one has given up" if numbers[self._given_up] else "")
                    if reason or now - start > self._deadline:
                        numbers[self._given_up] = 1
                        raise RuntimeError(reason or f"nothing came within {self._deadline:g} s")
        finally:
            self.waited += time.monotonic() - start


def _add_up(payloads: NDArray[Any], weights: Float64, into: NDArray[Any]) -> None:
    """The weighted sum of [R, K], in the same order on all ranks."""
    counting = np.flatnonzero(weights)  # what a rank without rows has may not be finite
    into[:] = 0
    for rank in counting:
        into += payloads.dtype.type(weights[rank]) * payloads[rank]


def num_bytes(size: int) -> int:
    """Of the memory of so many ranks."""
    return (size + 1) * LINE + NUM_SLOTS * size * (MESSAGE + PAYLOAD)


def shared_memory(sync: Sync, deadline: float, check: Callable[[], str]) -> SharedMemory | None:
    """Memory that the ranks of this machine share; None where they cannot. All of them call it. sync: by which they
    find it."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None  # on other processors, another rank may see that a message is written before it sees the message
    size, mark, place = num_bytes(sync.size), int.from_bytes(os.urandom(6)), sync.size * LINE + 8
    own = -1
    if sync.rank == 0:
        own = anonymous_file("rl-tui-ranks")
        os.truncate(own, size)
        os.pwrite(own, mark.to_bytes(8, "little"), place)  # behind the word whether a rank waits no more
    pid, descriptor, mark = (int(each) for each in sync.gather(np.array([os.getpid(), own, mark], np.float64))[0])
    file = own
    with suppress(OSError):  # the other ranks are in a container of their own
        if sync.rank:
            file = os.open(f"/proc/{pid}/fd/{descriptor}", os.O_RDWR)
            if os.pread(file, 8, place) != mark.to_bytes(8, "little"):
                os.close(file)
                file = -1
    found = SharedMemory(file, sync.rank, sync.size, deadline, check) if sync.all(file >= 0) else None
    if file >= 0:
        os.close(file)
    return found
