"""Environments for workers that act, named by tests as `tests.sampling.collecting.worlds:NAME`."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.specs import Actions, Steps
from tests.sampling.mortal import begin_life


class Uneven(Line):
    """A Line of one agent; the second one that is made is asleep for 20 ms of each step."""

    def __init__(self, folder: str) -> None:
        super().__init__("Walker", 1)
        self._is_slow = begin_life(folder) == 1

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        if self._is_slow:
            time.sleep(0.02)
        return super().step(actions)


class Lean(Line):
    """A Line that fails where torch was imported."""

    def __init__(self) -> None:
        super().__init__("Walker", 2)

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        assert "torch" not in sys.modules
        return super().step(actions)
