"""Environments of ranks, named by tests as `tests.running.ranks.worlds:Faulty`."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

import numpy as np

from rl_tui.engine.running.ranks.follower import Follower
from rl_tui.engine.sampling.environments.toys.line import Line
from rl_tui.engine.sampling.parameters import Parameters
from rl_tui.engine.specs import Actions, Steps
from tests.running.growing import Growing


class Faulty(Line):
    """A Line of four agents that, at its k-th step, raises, pays a reward that is not a number, or is killed; or whose
    rank is killed when it is to send its replay buffer."""

    def __init__(self, fault: str = "", at: int = 40) -> None:
        super().__init__("Walker", 4)
        self._fault, self._at, self._count = fault, at, 0
        if fault == "is killed as it sends its replay buffer":
            Follower._send_replay = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._count += 1
        is_due = self._count == self._at
        if is_due and self._fault == "raises":
            raise RuntimeError("the floor has opened")
        if is_due and self._fault == "is killed":
            os.kill(os.getpid(), signal.SIGKILL)
        steps = super().step(actions)
        if is_due and self._fault == "pays no number":
            steps["Walker"].decisions.rewards[:] = np.nan
        return steps


class Graded(Growing):
    """Left and Right, which have lessons."""

    def __init__(self, at: int = 1) -> None:
        super().__init__(at)

    def set_parameters(self, parameters: Parameters) -> None:
        """Nothing depends on them."""
