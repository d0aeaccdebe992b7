"""One training of rl-tui for simple_spread.py: trainer, steps and seed as arguments, the result as JSON on stdout."""

from __future__ import annotations

import sys
from functools import partial

from tests.benchmarks import spread_world as world
from tests.benchmarks.simple_spread import train

if __name__ == "__main__":
    world.run(partial(train, trainer=sys.argv[1]))
