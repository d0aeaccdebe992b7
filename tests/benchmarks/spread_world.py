"""simple_spread_v3 of MPE2, timed, for every trainer that is measured in it. It needs nothing of rl-tui."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from mpe2 import simple_spread_v3
from pettingzoo.utils.wrappers import BaseParallelWrapper

COPIES, AGENTS, EPISODE = 8, 3, 25
ROLLOUT = 128  # steps of each copy between two updates
HIDDEN_UNITS, BATCH_SIZE, EPOCHS, LEARNING_RATE = 64, 512, 10, 1e-3
GAMMA, LAMBDA, CLIP_RANGE, ENTROPY, VALUE, MAX_NORM, ADAM_EPSILON = 0.95, 0.95, 0.2, 0.01, 0.5, 0.5, 1e-5


@dataclass
class Record:
    """What all copies of this process have done. seconds: within the environment. returns: of whole episodes, the mean
    over agents."""

    began: float = 0.0
    seconds: float = 0.0
    returns: list[float] = field(default_factory=list)


RECORD = Record()


def forget() -> None:
    """Measure from here."""
    RECORD.began, RECORD.seconds = 0.0, 0.0
    RECORD.returns.clear()


def result(num_steps: int) -> dict[str, float]:
    """Of a training that has just ended: all it took from the first reset, and what was earned in its last tenth."""
    seconds = time.perf_counter() - RECORD.began
    last = RECORD.returns[-max(1, len(RECORD.returns) // 10) :]
    return {
        "steps_per_second": num_steps / seconds,
        "outside": num_steps / (seconds - RECORD.seconds),
        "mean_return": sum(last) / len(last),
    }


def run(train: Callable[[int, int], object]) -> None:
    """Train with the steps and the seed that are the last arguments of this process, and print the result as JSON."""
    num_steps, seed = map(int, sys.argv[-2:])
    train(2 * COPIES * AGENTS * ROLLOUT, seed)  # what is loaded at first use
    train(num_steps, seed)
    print(json.dumps(result(num_steps)))


class Timed(BaseParallelWrapper):
    """Adds what it takes and what is earned to the record."""

    def __init__(self, env):
        super().__init__(env)
        self._earned = 0.0

    def reset(self, seed=None, options=None):
        """As PettingZoo has it."""
        began = time.perf_counter()
        RECORD.began = RECORD.began or began
        returned = self.env.reset(seed=seed, options=options)
        self._earned = 0.0
        RECORD.seconds += time.perf_counter() - began
        return returned

    def step(self, actions):
        """As PettingZoo has it."""
        began = time.perf_counter()
        returned = self.env.step(actions)
        RECORD.seconds += time.perf_counter() - began
        self._earned += sum(returned[1].values()) / AGENTS
        if not self.env.agents:
            RECORD.returns.append(self._earned)
        return returned


def make():
    """One copy."""
    return Timed(simple_spread_v3.parallel_env(N=AGENTS, max_cycles=EPISODE))
