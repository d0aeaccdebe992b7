"""When a watched play takes its next step, and when it is drawn: so that training does not feel it."""

from __future__ import annotations

import time

USUAL_HZ, FASTEST_HZ = 30.0, 60.0  # steps of a second where the environment does not say, and at most
SHARE, FREE_SHARE = 0.01, 0.5  # of the interpreter that steps may take while something trains, and else; so pictures
MAKING_SHARE, FREE_MAKING_SHARE = 0.1, 1.0  # of the time that the environment may spend on its pictures
MEMORY = 0.9  # weight of what was known before, so that one slow step changes little
LEAST_BUSY = 0.05  # a process that computes less than that waits for something else than the interpreter


class PlayClock:
    """Lives in the viewer's thread, whose processor time it reads: what the thread uses, training goes without.

    meant_hz: the steps of a second as the environment means them, None where it does not say.
    """

    def __init__(self) -> None:
        self.meant_hz: float | None = None
        self._share = SHARE
        self._making_share = MAKING_SHARE
        self._step_cost = self._picture_cost = self._making_cost = 0.0  # seconds, smoothed
        self._used: float | None = None  # of the thread's time, when it was read last
        self._began_at = self._drawn_at = self._looked_at = time.monotonic()
        self._process_used = time.process_time()
        self._busy = 1.0  # the share of one processor that the whole process gets, smoothed

    @property
    def hz(self) -> float:
        """The steps of a second: as many as are meant, unless they would cost too much."""
        return min(self.meant_hz or USUAL_HZ, FASTEST_HZ, self._share / max(self._step_cost, 1e-6))

    def stepped(self, *, spares: bool) -> None:
        """A step has been taken. spares: whether something trains."""
        self._busy = MEMORY * self._busy + (1 - MEMORY) * self._busy_since()
        self._share = SHARE * min(1.0, max(LEAST_BUSY, self._busy)) if spares else FREE_SHARE
        self._making_share = MAKING_SHARE if spares else FREE_MAKING_SHARE
        self._step_cost = self._smoothed(self._step_cost)

    def made(self, seconds: float) -> None:
        """The environment has taken that long for a picture: on another thread of the same core, or with the same
        caches, as what trains, which it slows whatever its priority."""
        self._making_cost = max(seconds, MEMORY * self._making_cost + (1 - MEMORY) * seconds)

    def drew(self) -> None:
        """A picture has been shown."""
        self._picture_cost = self._smoothed(self._picture_cost)
        self._drawn_at = time.monotonic()

    def begin(self) -> None:
        """The next step begins; a late one does not hurry those after it."""
        self._began_at = max(self._began_at + 1 / self.hz, time.monotonic() - 1 / self.hz)

    @property
    def may_draw(self) -> bool:
        """Whether there may be a picture of the newest step."""
        rest = max(self._picture_cost / self._share, self._making_cost / self._making_share)
        return time.monotonic() - self._drawn_at >= rest

    @property
    def seconds_left(self) -> float:
        """Until the next step is due."""
        return self._began_at + 1 / self.hz - time.monotonic()

    def _busy_since(self) -> float:
        """Since the last call: on a machine that others use, a share of the time would be more of what is left."""
        now, used = time.monotonic(), time.process_time()
        busy = (used - self._process_used) / max(now - self._looked_at, 1e-6)
        self._looked_at, self._process_used = now, used
        return busy

    def _smoothed(self, before: float) -> float:
        """With what the thread has used since the last call."""
        used, now = self._used, time.thread_time()
        self._used = now
        return before if used is None else MEMORY * before + (1 - MEMORY) * (now - used)
