"""The worker processes that one behavior of the demo pretends to have."""

from __future__ import annotations

from random import Random

from rl_tui.engine.session.messages import Worker, WorkersSampled
from rl_tui.tui.demo.actor import Actor
from rl_tui.tui.demo.machine import OURS
from rl_tui.tui.demo.policy import approach

WORKED = "Walker"  # whose environments are in worker processes
NUM_WORKERS = 4
WAITING = (0.37, 0.35, 0.12, 0.36)  # the environments of one are slower than the others, which wait for it
MEMORY = 221 << 20  # bytes


class Workers:
    """Owns how busy each worker is. actor: that of WORKED."""

    def __init__(self, actor: Actor, chance: Random) -> None:
        self.actor = actor
        self._chance = chance
        self._waiting = list(WAITING)
        self._speed = actor.role.steps_per_second

    def sample(self, seconds: float) -> WorkersSampled:
        """The workers, `seconds` after the last sample."""
        chance, role = self._chance, self.actor.role
        self._speed = approach(self._speed, role.steps_per_second * chance.uniform(0.85, 1.15), seconds / 60)
        workers = tuple(self._worker(number, seconds) for number in range(NUM_WORKERS))
        return WorkersSampled(role.environment, (role.name,), workers)

    def _worker(self, number: int, seconds: float) -> Worker:
        chance = self._chance
        self._waiting[number] = approach(
            self._waiting[number], WAITING[number] + chance.uniform(-0.05, 0.05), seconds / 60
        )
        return Worker(
            number=number,
            pid=OURS + 1 + number,
            steps_per_second=self._speed / NUM_WORKERS * chance.uniform(0.99, 1.01),
            waiting=self._waiting[number],
            lag=1,  # it is threaded
            restarts=0,
            memory_bytes=MEMORY + (number << 21),
        )
