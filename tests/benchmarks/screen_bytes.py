"""How many bytes a switch of screens sends to the terminal, and how many come by themselves each second.

    python -m tests.benchmarks.screen_bytes

The simulated run of `rl-tui demo` at three sizes; its view is frozen while screens are switched.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.processes import PYTHON
from tests.benchmarks.tables import table
from tests.pseudo_terminal import PseudoTerminal

SIZES = (80, 24), (120, 40), (200, 60)
KEYS = {
    "chart": "f", "grid": "#", "one behavior": "enter", "checkpoints": "k", "hyperparameters": "u", "lessons": "h",
    "devices": "g", "log": "l", "warnings": "w", "configuration": "Y", "help": "?", "palette": "ctrl+p", "leave": "q",
}  # fmt: skip
WATCHES = {"overview": "", "log": "l"}
SETTLED_SECONDS, WATCHED_SECONDS = 1.0, 10.0
PICTURE = b"\x1b[5n"  # what follows each


def measure(size: tuple[int, int]) -> tuple[dict[str, str], dict[str, str]]:
    """In words: bytes there and back with the number of pictures, by screen; bytes per second, by screen."""
    switches, watched = {}, {}
    with (
        TemporaryDirectory(prefix="rl-tui-bench-") as name,
        PseudoTerminal(
            [*PYTHON, "-m", "rl_tui", "demo"], size, folder=Path(name), variables={"HOME": name}
        ) as terminal,
    ):
        terminal.wait_for("TRAINING")
        terminal.watch(4)
        for screen, key in WATCHES.items():
            terminal.press(*[key] * bool(key))
            terminal.watch(2)
            watched[screen] = f"{terminal.watch(WATCHED_SECONDS) / WATCHED_SECONDS:,.0f}"
            terminal.press(*["escape"] * bool(key))
            terminal.watch(SETTLED_SECONDS)
        terminal.press(" ")
        terminal.wait_for("FROZEN", 60)
        for screen, key in KEYS.items():
            terminal.watch(SETTLED_SECONDS)
            sent = []
            for pressed in (key, "escape"):
                before = len(terminal.raw)
                terminal.press(pressed)
                terminal.watch(SETTLED_SECONDS)
                raw = bytes(terminal.raw[before:])
                sent.append(f"{len(raw):,} in {raw.count(PICTURE)}")
            switches[screen] = " / ".join(sent)
    return switches, watched


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print."""
    argparse.ArgumentParser(prog="python -m tests.benchmarks.screen_bytes", description=__doc__).parse_args(words)
    measured = {f"{width}x{height}": measure((width, height)) for width, height in SIZES}
    for part, title in enumerate(("bytes there and back, and in how many pictures", "bytes/s while it trains")):
        screens = next(iter(measured.values()))[part]
        print(
            table((title, *measured), [(name, *(each[part][name] for each in measured.values())) for name in screens])
        )
        print()


if __name__ == "__main__":
    main()
