"""An environment that leaks. It needs no torch, which a worker process would take seconds to import."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.specs import Actions, Steps


class Leaking(Line):
    """A Line that opens a file every fifth of a second, and closes none."""

    def __init__(self) -> None:
        super().__init__("Walker", 4)
        self._leaked: list[int] = []
        self._opens_at = 0.0

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        time.sleep(0.005)  # which leaves the machine to others
        if time.monotonic() >= self._opens_at:
            self._opens_at = time.monotonic() + 0.2
            self._leaked.append(os.open(os.devnull, os.O_RDONLY))
        return super().step(actions)
