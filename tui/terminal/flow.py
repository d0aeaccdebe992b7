"""How much may be on its way to the terminal: what the kernel and SSH keep for a slow line delays the next key."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

QUERY, ANSWER = "\x1b[5n", "\x1b[0n"  # ECMA-48, 8.3.35: a terminal answers once it has read what came before
AHEAD_SECONDS = 0.5  # what is on its way is written out in so many seconds, besides the time that it travels
PART_SECONDS = 0.25  # as much is written at a time
LEAST_BYTES, FIRST_BYTES = 512, 2048  # written at a time; on its way while the line is not measured
QUEUED_SECONDS = 0.1  # a line that carries longer is what delays, not the machine or the terminal
FINEST_SECONDS = 0.02  # shorter times are not measured
NUM_RATES = 4  # of the last measurements, the highest counts: each is at most what the line can
SLOW_RATE = 8000.0  # bytes a second: below, a switch of screens takes longer than half a second
LOST_SECONDS = 10.0  # an answer that takes longer does not come


class Sent(NamedTuple):
    """Bytes with a query behind them, and when they were written."""

    num_bytes: int
    at: float


class Flow:
    """Used in the app's thread. What of the pictures has arrived, by the terminal's answers, and how fast the line is.

    Until the first answer, and with a terminal that gives none, there is no limit. All times in seconds. The shortest
    time to an answer is how long bytes travel. What arrives later was carried from then on, or from the answer before
    it, without a gap: its bytes by that time are the line's rate. As in BBR (Cardwell et al. 2016), the highest of the
    last rates counts, and so much is on its way that the line always has something to carry, and little more.
    answers: whether the terminal does. busy_seconds: how long the last bytes without a gap were on their way.
    """

    def __init__(self) -> None:
        self._sent: deque[Sent] = deque()
        self._rates: deque[float] = deque(maxlen=NUM_RATES)
        self._num_queued = 0  # measurements in a row for which bytes had to wait
        self._shortest = float("inf")
        self._carried, self._carried_from = 0, 0.0  # without a gap
        self._answered_at = 0.0
        self.answers = False
        self._began_at = 0.0
        self.busy_seconds = 0.0

    @property
    def is_slow(self) -> bool:
        """Whether a switch of screens takes long."""
        return self._num_queued >= NUM_RATES and max(self._rates) < SLOW_RATE

    def room(self, now: float) -> int | None:
        """How many bytes may be written; None for any number."""
        self._give_up(now)
        if not self.answers:
            return None
        on_its_way = sum(sent.num_bytes for sent in self._sent)
        rate = max(self._rates, default=0.0)
        most = max(LEAST_BYTES, rate * (self._shortest + AHEAD_SECONDS)) if self._rates else FIRST_BYTES
        left = most - on_its_way
        return int(min(left, max(LEAST_BYTES, rate * PART_SECONDS))) if left >= LEAST_BYTES or not on_its_way else 0

    def sent(self, num_bytes: int, now: float) -> None:
        """So many bytes are written, the query behind them included."""
        if not self._sent:
            self._began_at = now
        self._sent.append(Sent(num_bytes, now))

    def answered(self, now: float) -> None:
        """The terminal has answered the oldest query."""
        if not self._sent:  # of a screen before
            return
        sent = self._sent.popleft()
        self.answers = True
        self._shortest = min(self._shortest, now - sent.at)
        if not self._sent:
            self.busy_seconds = now - self._began_at
        if sent.at + self._shortest >= self._answered_at:
            self._carried, self._carried_from = 0, sent.at + self._shortest
        self._answered_at = now
        self._carried += sent.num_bytes
        self._measure(now - self._carried_from)

    def _measure(self, seconds: float) -> None:
        """The line has carried bytes without a gap for that long."""
        if self._carried < LEAST_BYTES:
            return
        rate = self._carried / max(seconds, FINEST_SECONDS)
        if seconds > QUEUED_SECONDS:
            self._num_queued += 1
            self._rates.append(rate)
        elif rate > max(self._rates, default=0.0):
            self._num_queued = 0
            self._rates.append(rate)

    def _give_up(self, now: float) -> None:
        """Answers that are overdue were lost, or the terminal gives none."""
        if self._sent and now - max(self._sent[0].at, self._answered_at) > LOST_SECONDS:
            self._sent.clear()
            self.answers = False
