"""When a watched policy takes its next step, and when it is drawn, so that training is not slowed."""

from __future__ import annotations

import time

DEFAULT_HZ, MAX_HZ = 30.0, 60.0  # steps per second where the environment does not say, and at most
SHARE, FREE_SHARE = 0.01, 0.5  # of the interpreter for steps, and for pictures: during training, and after it
RENDER_SHARE, FREE_RENDER_SHARE = 0.1, 1.0  # of the time, for the environment to render
SMOOTHING = 0.9  # weight of the previous average, so that one slow step changes little
LEAST_BUSY = 0.05  # a process that computes less than that waits for something other than the interpreter


class PlayClock:
    """Used in the viewer's thread, whose processor time it reads: training lacks what this thread uses.

    native_hz: the environment's own steps per second, None where it does not say.
    """

    def __init__(self) -> None:
        self.native_hz: float | None = None
        self._share = SHARE
        self._render_share = RENDER_SHARE
        self._step_cost = self._picture_cost = self._render_cost = 0.0  # seconds, smoothed
        self._used: float | None = None  # of the thread's time, when it was read last
        self._began_at = self._drawn_at = self._looked_at = time.monotonic()
        self._process_used = time.process_time()
        self._busy = 1.0  # the share of one processor that the whole process gets, smoothed

    @property
    def hz(self) -> float:
        """Steps per second: the environment's own, unless they would cost too much."""
        return min(self.native_hz or DEFAULT_HZ, MAX_HZ, self._share / max(self._step_cost, 1e-6))

    def stepped(self, *, is_training: bool) -> None:
        """A step has been taken. is_training: whether training must be spared."""
        self._busy = SMOOTHING * self._busy + (1 - SMOOTHING) * self._busy_since()
        self._share = SHARE * min(1.0, max(LEAST_BUSY, self._busy)) if is_training else FREE_SHARE
        self._render_share = RENDER_SHARE if is_training else FREE_RENDER_SHARE
        self._step_cost = self._smoothed(self._step_cost)

    def rendered(self, seconds: float) -> None:
        """The environment has taken that long for a picture. It may share a core or caches with training, and slows it
        at any priority."""
        self._render_cost = max(seconds, SMOOTHING * self._render_cost + (1 - SMOOTHING) * seconds)

    def drew(self) -> None:
        """A picture has been shown."""
        self._picture_cost = self._smoothed(self._picture_cost)
        self._drawn_at = time.monotonic()

    def begin(self) -> None:
        """The next step begins; after a late one, the others do not catch up."""
        self._began_at = max(self._began_at + 1 / self.hz, time.monotonic() - 1 / self.hz)

    @property
    def may_draw(self) -> bool:
        """Whether there may be a picture of the newest step."""
        rest = max(self._picture_cost / self._share, self._render_cost / self._render_share)
        return time.monotonic() - self._drawn_at >= rest

    @property
    def seconds_left(self) -> float:
        """Until the next step is due."""
        return self._began_at + 1 / self.hz - time.monotonic()

    def _busy_since(self) -> float:
        """Since the last call. On a shared machine, a share of wall time would be too large a share of what is left."""
        now, used = time.monotonic(), time.process_time()
        busy = (used - self._process_used) / max(now - self._looked_at, 1e-6)
        self._looked_at, self._process_used = now, used
        return busy

    def _smoothed(self, before: float) -> float:
        """Average in what the thread has used since the last call."""
        used, now = self._used, time.thread_time()
        self._used = now
        return before if used is None else SMOOTHING * before + (1 - SMOOTHING) * (now - used)
