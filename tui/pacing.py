"""How often the screen is drawn: seldom enough that training does not feel it."""

from __future__ import annotations

SHARE = 0.015  # of one core, and so of the interpreter's lock, that drawing may take: what is beside it makes it 2 %
LONGEST_SECONDS = 1.0  # slower than that a screen seems to hang
MEMORY = 0.7  # weight of what was known before a drawing, so that one slow one changes little


class Pace:
    """Lives in the app's thread. Owns the smoothed cost of a drawing. All times are seconds."""

    def __init__(self, shortest: float) -> None:
        self._shortest = shortest
        self._cost = 0.0
        self._drawn_at = -LONGEST_SECONDS
        self._cpu: float | None = None

    @property
    def interval(self) -> float:
        """The time from one drawing to the next."""
        return min(LONGEST_SECONDS, max(self._shortest, self._cost / SHARE))

    def is_due(self, now: float) -> bool:
        """Whether it is time to draw, asked every `shortest` seconds or a little less."""
        return now - self._drawn_at >= self.interval - self._shortest / 5

    def drew(self, now: float, cpu: float) -> None:
        """A drawing ends at `now`. cpu: all that the thread has used so far, also for what Textual does."""
        if self._cpu is not None:
            used = min(cpu - self._cpu, LONGEST_SECONDS * SHARE)
            self._cost = MEMORY * self._cost + (1 - MEMORY) * used
        self._cpu, self._drawn_at = cpu, now
