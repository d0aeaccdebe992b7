"""The same as simple_spread_run.py, by MA-POCA."""

from __future__ import annotations

from tests.benchmarks.simple_spread_run import main

if __name__ == "__main__":
    main("poca")
