"""How soon the command line answers."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.benchmarks.processes import surroundings
from tests.benchmarks.tables import table, verdict

MARK_SECONDS = 0.150


@dataclass(frozen=True, slots=True)
class StartUp:
    """Seconds of each call of one command."""

    command: str
    seconds: list[float]


def measure_start_up(calls: int) -> list[StartUp]:
    """`rl-tui --version`, `rl-tui --help` and an interpreter that does nothing, called in turns; the first turn warms
    the disk's cache and is left out."""
    script = Path(sys.executable).with_name("rl-tui")
    program = [str(script)] if script.exists() else [sys.executable, "-m", "rl_tui"]
    commands = {
        "rl-tui --version": [*program, "--version"],
        "rl-tui --help": [*program, "--help"],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    with TemporaryDirectory(prefix="rl-tui-bench-") as folder:
        for turn in range(calls + 1):
            for name, command in commands.items():
                start = time.perf_counter()
                subprocess.run(command, cwd=folder, env=surroundings(), stdout=subprocess.DEVNULL, check=True)
                if turn:
                    seconds[name].append(time.perf_counter() - start)
    return [StartUp(name, times) for name, times in seconds.items()]


def report(measured: list[StartUp]) -> str:
    """Milliseconds as text, with the mark."""
    rows = [(m.command, f"{1000 * min(m.seconds):.0f}", f"{1000 * median(m.seconds):.0f}") for m in measured]
    slowest = max(median(m.seconds) for m in measured if m.command.startswith("rl-tui"))
    return "\n".join(
        (
            f"(e) start-up, {len(measured[0].seconds)} calls",
            "",
            table(("", "min ms", "median ms"), rows),
            f"mark: less than {1000 * MARK_SECONDS:.0f} ms {verdict(slowest < MARK_SECONDS)}",
        )
    )
