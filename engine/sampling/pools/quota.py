"""How often a worker may be restarted. The limits are those of ML-Agents' `env_settings`."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

NO_LIMIT = -1


class RestartQuota:
    """The restarts of one worker. At most `max_lifetime` in all, and `rate_n` within any `period_s` seconds."""

    def __init__(
        self, max_lifetime: int, rate_n: int, period_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """max_lifetime, rate_n: -1 for no limit."""
        self._max_lifetime = max_lifetime
        self._rate_n = rate_n
        self._period = period_s
        self._clock = clock
        self._recent: deque[float] = deque(maxlen=max(rate_n, 0))  # when, of the newest `rate_n`
        self.count = 0  # restarts so far

    def take(self) -> bool:
        """Count another restart, if it is allowed."""
        if self._reached():
            return False
        self.count += 1
        self._recent.append(self._clock())
        return True

    @property
    def words(self) -> str:
        """Why there is no restart: how many there were, and which limits are reached."""
        limits = " and ".join(self._reached())
        if not self.count:
            return f"{limits} allows no restart"
        times = "once" if self.count == 1 else f"{self.count} times"
        return f"the worker was restarted {times}, as often as {limits} allows"

    def _reached(self) -> list[str]:
        """The limits that allow no restart now, as they are written in a file."""
        reached = []
        if self._max_lifetime != NO_LIMIT and self.count >= self._max_lifetime:
            reached.append(f"env_settings.max_lifetime_restarts: {self._max_lifetime}")
        if self._rate_n != NO_LIMIT and self._num_recent() >= self._rate_n:
            period = f"restarts_rate_limit_period_s: {self._period:g}"
            reached.append(f"env_settings.restarts_rate_limit_n: {self._rate_n} ({period})")
        return reached

    def _num_recent(self) -> int:
        since = self._clock() - self._period
        while self._recent and self._recent[0] <= since:
            self._recent.popleft()
        return len(self._recent)
