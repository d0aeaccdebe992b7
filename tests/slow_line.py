"""A terminal at the far end of a slow connection, as over SSH: what the program writes is read at once and kept."""

from __future__ import annotations

import heapq
import os
import select
import threading
import time
from typing import Any

from rl_tui.tui.terminal.flow import ANSWER, QUERY
from tests.pseudo_terminal import KEYS, SYNCHRONIZED_QUERY, SYNCHRONIZED_YES, PseudoTerminal

PACKET_BYTES = 64  # that arrive together
POLL_SECONDS = 0.005
REPLIES = {QUERY.encode(): ANSWER.encode(), SYNCHRONIZED_QUERY: SYNCHRONIZED_YES}


class SlowLine(PseudoTerminal):
    """A thread reads all that the program writes; it arrives at `rate` bytes a second, `delay` seconds later.

    Keys and answers take the same delay. Nothing is lost, and the line keeps any number of bytes. num_late: keys and
    answers that came when the program had ended. most_kept: bytes that the line has kept at most. longest_pause:
    seconds for which the line itself did nothing, on a busy machine; what is due then is that much later.
    """

    def __init__(self, *arguments: Any, rate: float, delay: float, **named: Any) -> None:
        self._rate, self._delay = rate, delay
        self._due: list[tuple[float, int, bool, bytes]] = []  # when, in which order, whether to the program, what
        self._num_due, self._free_at = 0, 0.0
        self._lock, self._arrivals = threading.Lock(), threading.Condition()
        self._is_closing = False
        self._unanswered = b""
        self.num_late = 0
        self.most_kept = self.longest_pause = 0.0
        super().__init__(*arguments, **named)
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    @property
    def num_under_way(self) -> int:
        """Bytes that were written and have not arrived."""
        with self._lock:
            return sum(len(packet) for _, _, is_key, packet in self._due if not is_key)

    def press(self, *keys: str) -> None:
        """They reach the program after the delay."""
        for key in keys:
            self._put(time.monotonic() + self._delay, KEYS.get(key, key).encode(), is_key=True)

    def hang_up(self) -> None:
        """The line is cut."""
        self._is_closing = True
        self._thread.join()
        super().hang_up()

    def _put(self, at: float, packet: bytes, *, is_key: bool) -> None:
        with self._lock:
            heapq.heappush(self._due, (at, self._num_due, is_key, packet))
            self._num_due += 1

    def _carry(self) -> None:
        looked_at = time.monotonic()
        while not self._is_closing:
            before, looked_at = looked_at, time.monotonic()
            self.longest_pause = max(self.longest_pause, looked_at - before - POLL_SECONDS)
            if select.select([self._master], [], [], POLL_SECONDS)[0]:
                self._take_in(looked_at)
            for is_key, packet in self._taken():
                if not is_key:
                    self._arrive(packet)
                elif self.process.poll() is None:
                    os.write(self._master, packet)
                else:
                    self.num_late += 1

    def _take_in(self, since: float) -> None:
        """What the program has written is on its way: since then at most, which is long ago on a busy machine."""
        try:
            written = os.read(self._master, 65536)
        except OSError:  # EIO: the program has ended
            written = b""
            time.sleep(POLL_SECONDS)
        self._free_at = max(self._free_at, since)
        for start in range(0, len(written), PACKET_BYTES):
            packet = written[start : start + PACKET_BYTES]
            self._free_at += len(packet) / self._rate
            self._put(self._free_at + self._delay, packet, is_key=False)
        self.most_kept = max(self.most_kept, (self._free_at - time.monotonic()) * self._rate)

    def _arrive(self, packet: bytes) -> None:
        """The terminal shows it, and answers what it is asked."""
        self._unanswered += packet
        for query, reply in REPLIES.items():
            for _ in range(self._unanswered.count(query)):
                self._put(time.monotonic() + self._delay, reply, is_key=True)
            self._unanswered = self._unanswered.replace(query, b"")
        self._unanswered = self._unanswered[-16:]
        with self._arrivals:
            self.raw += packet
            self._read_at = time.monotonic()
            self._arrivals.notify_all()

    def _taken(self) -> list[tuple[bool, bytes]]:
        """What is due."""
        taken, now = [], time.monotonic()
        with self._lock:
            while self._due and self._due[0][0] <= now:
                _, _, is_key, packet = heapq.heappop(self._due)
                taken.append((is_key, packet))
        return taken

    def _read(self, seconds: float) -> bool:
        """Whether anything arrives within so many seconds."""
        with self._arrivals:
            self.has_ended = self.process.poll() is not None and not self.num_under_way
            return self._arrivals.wait(seconds)
