"""One training of rl-tui by PPO for simple_spread.py: steps and seed as arguments, the result as JSON on stdout."""

from __future__ import annotations

import json
import sys

from tests.benchmarks import spread_world as world
from tests.benchmarks.simple_spread import train


def main(trainer: str) -> None:
    """Train twice; the first time for what is loaded at first use."""
    steps, seed = map(int, sys.argv[1:])
    train(2 * world.COPIES * world.AGENTS * world.ROLLOUT, seed, trainer)
    train(steps, seed, trainer)
    print(json.dumps(world.result(steps)))


if __name__ == "__main__":
    main("ppo")
