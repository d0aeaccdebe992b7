"""How long tests wait for what must happen: nothing is measured by it, so that it is enough on the busiest machine."""

from __future__ import annotations

import time
from collections.abc import Callable

DEADLINE_SECONDS = 300.0  # for what takes seconds on an idle machine


def wait_until(is_so: Callable[[], bool]) -> None:
    """Return once it is so; fails after the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)
