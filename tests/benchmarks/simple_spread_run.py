"""One training of rl-tui for simple_spread.py: steps and seed as arguments, the result as JSON on stdout."""

from __future__ import annotations

import json
import sys

from tests.benchmarks import spread_world as world
from tests.benchmarks.simple_spread import train

if __name__ == "__main__":
    steps, seed = map(int, sys.argv[1:])
    train(2 * world.COPIES * world.AGENTS * world.ROLLOUT, seed)  # what is loaded at first use
    train(steps, seed)
    print(json.dumps(world.result(steps)))
