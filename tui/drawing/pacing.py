"""How often the screen is drawn: rarely enough not to slow down training or the link to the terminal."""

from __future__ import annotations

SHARE = 0.015  # of one core, and of the interpreter's lock, for drawing; with everything else it is 2 %
LOCAL_SECONDS, REMOTE_SECONDS = 0.25, 0.5  # from one drawing to the next at least
LONGEST_SECONDS = 1.0  # a slower screen seems to hang; also the interval on a slow link
LINK_SLOW = "link slow"
LATE_SMOOTHING, LATE_SHARE = 0.8, 0.6
LINE_SHARE = 0.5  # of a slow line's time, so that a key finds it free
LONGEST_SLOW_SECONDS = 4.0
SLOW_SECONDS = 10.0  # how long a link counts as slow after the last picture that was late
SMOOTHING = 0.7  # weight of the costs before, so that one slow drawing changes little


class Pace:
    """Used in the app's thread. Owns the smoothed cost of a drawing and the state of the link. All times in seconds."""

    def __init__(self, usual: float) -> None:
        self.usual = usual
        self._cost = 0.0
        self._drawn_at = -LONGEST_SECONDS
        self._cpu: float | None = None
        self._skipped_at = self._slow_until = float("-inf")
        self._late = 0.0  # share of the last times to draw at which the terminal was not ready
        self._is_slow, self._line_seconds = False, 0.0

    def interval(self, now: float) -> float:
        """The time from one drawing to the next."""
        if self.is_slow(now):
            return max(LONGEST_SECONDS, min(self._line_seconds / LINE_SHARE, LONGEST_SLOW_SECONDS))
        return min(LONGEST_SECONDS, max(self.usual, self._cost / SHARE))

    def is_due(self, now: float) -> bool:
        """Whether it is time to draw; called every `usual` seconds or a little less."""
        return now - self._drawn_at >= self.interval(now) - self.usual / 5

    def drew(self, now: float, cpu: float) -> None:
        """A drawing ends at `now`. cpu: seconds that the thread has used so far, for Textual too."""
        if self._cpu is not None:
            used = min(cpu - self._cpu, LONGEST_SECONDS * SHARE)
            self._cost = SMOOTHING * self._cost + (1 - SMOOTHING) * used
        self._cpu, self._drawn_at = cpu, now
        self._late *= LATE_SMOOTHING

    def measured(self, is_slow: bool, line_seconds: float) -> None:
        """The terminal says what it has taken. line_seconds: how long the last picture was on its way."""
        self._is_slow, self._line_seconds = is_slow, line_seconds

    def skipped(self, now: float) -> None:
        """It was time to draw, but the last picture was not written yet; of a terminal that gives no answers.

        One that often is not ready is slow; a large picture alone, or a start on a busy machine, makes none.
        """
        if now - self._skipped_at < self.usual / 2:  # the same picture, checked more often than usual
            return
        self._skipped_at = now
        self._late = LATE_SMOOTHING * self._late + 1 - LATE_SMOOTHING
        if self._late > LATE_SHARE:
            self._slow_until = now + SLOW_SECONDS

    def is_slow(self, now: float) -> bool:
        """Whether the link is too slow for the usual interval."""
        return self._is_slow or now < self._slow_until

    def notes(self, now: float) -> tuple[str, ...]:
        """Words for the state line."""
        return (LINK_SLOW,) if self.is_slow(now) else ()


FRAME_SECONDS = 0.05  # from one picture of a watched play to the next at least
FRAME_SHARE, FREE_FRAME_SHARE = 0.01, 0.3  # of one core for pictures while something trains, and otherwise
LEAST_BUSY = 0.05  # a process that computes less waits for something other than the interpreter
FRAME_BYTES, REMOTE_FRAME_BYTES = 2_000_000, 60_000  # of a second
FRAME_SMOOTHING = 0.8  # weight of the costs before


class FramePace:
    """Used in the app's thread. How often a watched play is drawn: as training and the link allow."""

    def __init__(self, bytes_per_second: float) -> None:
        self._bytes_per_second = bytes_per_second
        self._cost = self._bytes = 0.0
        self._busy = 1.0
        self._share = FRAME_SHARE

    @property
    def seconds(self) -> float:
        """From one picture to the next, on the average of the last ones."""
        wanted = max(FRAME_SECONDS, self._cost / self._share, self._bytes / self._bytes_per_second)
        return min(LONGEST_SECONDS, wanted)

    def drew(self, cpu: float, num_bytes: int, *, busy: float, is_training: bool) -> None:
        """A picture took so much of the thread's time and so many bytes. is_training: something trains.

        busy: the share of one processor that the whole process had since the last one. On a busy machine a share of the
        time alone would be a larger share of what training gets.
        """
        self._busy = FRAME_SMOOTHING * self._busy + (1 - FRAME_SMOOTHING) * min(1.0, max(LEAST_BUSY, busy))
        self._cost = FRAME_SMOOTHING * self._cost + (1 - FRAME_SMOOTHING) * cpu
        self._bytes = FRAME_SMOOTHING * self._bytes + (1 - FRAME_SMOOTHING) * num_bytes
        self._share = FRAME_SHARE * self._busy if is_training else FREE_FRAME_SHARE
