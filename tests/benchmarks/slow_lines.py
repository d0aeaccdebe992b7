"""How soon a key is answered on a slow connection, and whether the screen calls a fast one slow.

    python -m tests.benchmarks.slow_lines

The simulated run of `rl-tui demo`, which changes all the time, at the far end of a line that delays everything by
200 ms in both directions and keeps whatever it cannot carry. A key is answered when the heading of its screen has
arrived; half of the keys come while the picture of the one before is still on its way.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from tests.benchmarks.processes import PYTHON
from tests.benchmarks.tables import table
from tests.slow_line import SlowLine

SIZES = (80, 24), (120, 40)
SLOW_RATES, FAST_RATES = (2_000.0, 10_000.0), (100_000.0, 1_000_000.0)
DELAY_SECONDS, FAST_DELAYS = 0.2, (0.01, 0.2)
HEADINGS = {
    "chart": ("f", "▸ (Chart|Return)"), "grid": ("#", "Episode Length"), "one behavior": ("enter", "▸ Walker · PPO"),
    "checkpoints": ("k", "Checkpoints of"), "hyperparameters": ("u", "Hyperparameters of"),
    "lessons": ("h", "Environment parameters"), "devices": ("g", "▸ Devices"), "log": ("l", "▸ Log"),
    "warnings": ("w", "▸ Warnings"), "configuration": ("Y", "▸ Configuration"), "help": ("?", "Keys for"),
    "palette": ("ctrl+p", "a command"), "leave": ("q", "Leave"), "overview": ("escape", "▸ Behaviors"),
}  # fmt: skip
SETTLED_SECONDS, SOON_SECONDS = 3.0, 0.3
SLOW = "link slow"


def keys_answered(line: SlowLine, rounds: int) -> dict[str, list[float]]:
    """Seconds from each key to its answer, by screen."""
    seconds: dict[str, list[float]] = {name: [] for name in HEADINGS}
    back = HEADINGS["overview"][1]
    for _ in range(rounds):
        for name, (key, heading) in HEADINGS.items():
            if name == "overview":
                continue
            line.watch(SETTLED_SECONDS)
            line.press(key)
            seconds[name].append(line.wait_for(heading, 60))
            line.watch(SOON_SECONDS)
            line.press("escape")
            took = line.wait_for(heading, 60, absent=True)
            seconds["overview"].append(max(took, line.wait_for(back, 60) if name not in ("help", "leave") else 0.0))
    return seconds


def measure(size: tuple[int, int], rate: float, rounds: int) -> tuple[float, dict[str, list[float]], float]:
    """Seconds to the first picture, from each key to its answer, and the share of the line's time that it is used."""
    with TemporaryDirectory(prefix="rl-tui-bench-") as name, open_demo(name, size, rate, DELAY_SECONDS) as line:
        line.wait_for(r"(?s)TRAINING.*q quit", 120)
        first = time.monotonic() - line.started_at
        line.watch(2 * SETTLED_SECONDS)
        used = line.watch(20.0) / 20.0 / rate
        return first, keys_answered(line, rounds), used


def is_called_slow(size: tuple[int, int], rate: float, delay: float) -> bool:
    """Whether the state line ever says so while all screens are opened."""
    with TemporaryDirectory(prefix="rl-tui-bench-") as name, open_demo(name, size, rate, delay) as line:
        line.wait_for(r"(?s)TRAINING.*q quit", 120)
        for key, heading in HEADINGS.values():
            line.press(key)
            line.wait_for(heading, 60)
            line.watch(0.5)
            if SLOW in line.text():
                return True
            line.press("escape")
            line.watch(0.5)
        return SLOW.encode() in line.raw


def open_demo(home: str, size: tuple[int, int], rate: float, delay: float) -> SlowLine:
    """The demo on such a line."""
    words = [*PYTHON, "-m", "rl_tui", "demo"]
    return SlowLine(words, size, folder=Path(home), variables={"HOME": home}, rate=rate, delay=delay)


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.slow_lines", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each key is pressed")
    arguments = parser.parse_args(words)
    columns, rows = [], {name: [name] for name in ("first picture, s", "line in use, %", *HEADINGS)}
    for width, height in SIZES:
        for rate in SLOW_RATES:
            first, answers, used = measure((width, height), rate, arguments.rounds)
            columns.append(f"{width}x{height}, {rate / 1000:g} kB/s")
            rows["first picture, s"].append(f"{first:.1f}")
            rows["line in use, %"].append(f"{100 * used:.0f}")
            for name, seconds in answers.items():
                p50, p95 = np.percentile(seconds, (50, 95))
                rows[name].append(f"{p50:.2f} / {p95:.2f}")
    print(table(("key to answer, s: p50 / p95", *columns), [tuple(each) for each in rows.values()]))
    print()
    for size in SIZES:
        for rate in FAST_RATES:
            for delay in FAST_DELAYS:
                words_of = f"{size[0]}x{size[1]}, {rate / 1000:,.0f} kB/s, {1000 * delay:.0f} ms"
                print(f"{words_of}: {'called slow' if is_called_slow(size, rate, delay) else 'never called slow'}")


if __name__ == "__main__":
    main()
