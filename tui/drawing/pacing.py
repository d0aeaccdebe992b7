"""How often the screen is drawn: seldom enough that neither training nor the line to the terminal feels it."""

from __future__ import annotations

SHARE = 0.015  # of one core, and so of the interpreter's lock, that drawing may take: what is beside it makes it 2 %
LOCAL_SECONDS, REMOTE_SECONDS = 0.25, 0.5  # from one drawing to the next at least
LONGEST_SECONDS = 1.0  # slower than that a screen seems to hang; it is also the pace of a slow line
SLOW_SECONDS = 10.0  # how long a line counts as slow after the last picture that it had not taken in time
MEMORY = 0.7  # weight of what was known before a drawing, so that one slow one changes little


class Pace:
    """Lives in the app's thread. Owns the smoothed cost of a drawing and how the line was. All times are seconds."""

    def __init__(self, usual: float) -> None:
        self.usual = usual
        self._cost = 0.0
        self._drawn_at = -LONGEST_SECONDS
        self._cpu: float | None = None
        self._skipped_at = self._slow_until = float("-inf")

    def interval(self, now: float) -> float:
        """The time from one drawing to the next."""
        if self.is_slow(now):
            return LONGEST_SECONDS
        return min(LONGEST_SECONDS, max(self.usual, self._cost / SHARE))

    def is_due(self, now: float) -> bool:
        """Whether it is time to draw, asked every `usual` seconds or a little less."""
        return now - self._drawn_at >= self.interval(now) - self.usual / 5

    def drew(self, now: float, cpu: float) -> None:
        """A drawing ends at `now`. cpu: all that the thread has used so far, also for what Textual does."""
        if self._cpu is not None:
            used = min(cpu - self._cpu, LONGEST_SECONDS * SHARE)
            self._cost = MEMORY * self._cost + (1 - MEMORY) * used
        self._cpu, self._drawn_at = cpu, now

    def skipped(self, now: float) -> None:
        """It was time to draw, but the terminal had not taken the last picture; twice running, the line is slow."""
        since = now - self._skipped_at
        if since < self.usual / 2:  # the same picture, looked for more often than usual
            return
        if since < 2 * LONGEST_SECONDS:
            self._slow_until = now + SLOW_SECONDS
        self._skipped_at = now

    def is_slow(self, now: float) -> bool:
        """Whether the line takes less than would be drawn."""
        return now < self._slow_until

    def notes(self, now: float) -> tuple[str, ...]:
        """What the state line says of it."""
        return (f"link slow, {1 / LONGEST_SECONDS:.0f} Hz",) if self.is_slow(now) else ()


FRAME_SECONDS = 0.05  # from one picture of a watched play to the next at least
FRAME_SHARE, FREE_FRAME_SHARE = 0.01, 0.3  # of one core that pictures may take while something trains, and else
LEAST_BUSY = 0.05  # a process that computes less than that waits for something else than the interpreter
FRAME_BYTES, REMOTE_FRAME_BYTES = 2_000_000, 60_000  # of a second
STEADY = 0.8  # weight of what was known before a picture


class FramePace:
    """Lives in the app's thread. How often a watched play is drawn: as training and the line can bear it."""

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

    def drew(self, cpu: float, num_bytes: int, *, busy: float, spares: bool) -> None:
        """A picture took so much of the thread's time and so many bytes. spares: something trains that may feel it.

        busy: the share of one processor that the whole process has had since the last one. On a machine that others
        use, a share of the time would be more of what is left for training.
        """
        self._busy = STEADY * self._busy + (1 - STEADY) * min(1.0, max(LEAST_BUSY, busy))
        self._cost = STEADY * self._cost + (1 - STEADY) * cpu
        self._bytes = STEADY * self._bytes + (1 - STEADY) * num_bytes
        self._share = FRAME_SHARE * self._busy if spares else FREE_FRAME_SHARE
