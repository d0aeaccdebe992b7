"""`python -m tests.benchmarks.soak`: whether memory, descriptors or threads grow while a run trains for long."""

from __future__ import annotations

import argparse
import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TypeAlias

import psutil

from tests.benchmarks.processes import PYTHON, surroundings
from tests.benchmarks.settings import WORKLOADS, configuration
from tests.benchmarks.tables import table, verdict
from tests.pseudo_terminal import PseudoTerminal

TRAINERS = {"ppo": "a", "sac": "i"}  # their workloads
REPLAY_STEPS, CHECKPOINT_STEPS = 2_000, {"ppo": 25_000, "sac": 1_000}  # full, and saved often, within the first minutes
FOREVER = 1_000_000_000  # steps
MINUTE = 60.0
WARM_UP, PART = 5 * MINUTE, 5 * MINUTE  # until every buffer has its size; what one row of the report is of
SAMPLE_SECONDS, KEY_SECONDS = 1.0, 2.0
END_SECONDS = 300.0  # that saving may take on a busy machine
# One key after the other: every screen is opened, drawn for a while and left.
KEYS = ("m", "f", "x", "left", "escape", "escape", "#", "n", "escape", "k", "escape", "u", "escape", "g", "escape",
        "l", "up", "end", "escape", "w", "escape", "Y", "escape", "?", "escape", "+", "0", "s", "t")  # fmt: skip
MARK_MIB = 2.0
MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class Sample:
    """Of the program with all processes that it has started. seconds: since its start."""

    seconds: float
    resident_mib: float
    num_descriptors: int
    num_threads: int


Program: TypeAlias = tuple[subprocess.Popen[bytes], Callable[[float], object]]  # and what waits for so many seconds


def soak(trainer: str, has_screen: bool, seconds: float) -> list[Sample]:
    """Samples of a run that trains for so long, on a screen with a key every other second, until SIGTERM."""
    workload, samples = WORKLOADS[TRAINERS[trainer]], list[Sample]()
    with TemporaryDirectory(prefix="rl-tui-soak-") as folder:
        file = Path(folder) / "bench.yaml"
        file.write_text(configuration(workload, 1, Path("results")))
        key = f"behaviors.{workload.behavior}"
        settings = [f"{key}.max_steps={FOREVER}", f"{key}.checkpoint_interval={CHECKPOINT_STEPS[trainer]}"]
        if trainer == "sac":
            settings.append(f"{key}.hyperparameters.buffer_size={REPLAY_STEPS}")
        words = [*PYTHON, "-m", "rl_tui", str(file), *(word for each in settings for word in ("--set", each))]
        started = on_screen if has_screen else without_screen
        with started(words, file.parent) as (process, wait):
            began = time.monotonic()
            while (elapsed := time.monotonic() - began) < seconds:
                samples.append(sample(psutil.Process(process.pid), elapsed))
                wait(SAMPLE_SECONDS)
                if process.poll() is not None:
                    raise RuntimeError(f"{' '.join(words)} ended with {process.returncode} after {elapsed:.0f} s")
            process.send_signal(signal.SIGTERM)
            process.wait(END_SECONDS)
    return samples


@contextmanager
def on_screen(words: list[str], folder: Path) -> Iterator[Program]:
    """The program on a terminal."""
    keys = cycle(KEYS)
    with PseudoTerminal(words, folder=folder, variables=surroundings()) as terminal:
        press_at = time.monotonic() + MINUTE / 2  # once it trains

        def wait(seconds: float) -> None:
            nonlocal press_at
            terminal.watch(seconds)
            terminal.raw.clear()
            if time.monotonic() >= press_at:
                press_at = time.monotonic() + KEY_SECONDS
                terminal.press(next(keys))

        yield terminal.process, wait


@contextmanager
def without_screen(words: list[str], folder: Path) -> Iterator[Program]:
    """The program with --no-ui, whose lines go nowhere."""
    nowhere = subprocess.DEVNULL
    words = [*words, "--no-ui"]
    with subprocess.Popen(words, cwd=folder, env=surroundings(), stdin=nowhere, stdout=nowhere) as process:
        try:
            yield process, time.sleep
        finally:
            process.kill()


def sample(process: psutil.Process, seconds: float) -> Sample:
    """What the program has now."""
    found = []
    for each in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.Error):  # it has just ended
            found.append((each.memory_info().rss / MEBIBYTE, each.num_fds(), each.num_threads()))
    return Sample(seconds, *(sum(column) for column in zip(*found, strict=True)))


def report(name: str, samples: Sequence[Sample]) -> str:
    """A row for every five minutes, and by how much the lowest value of the last five is above that of the first ones.

    The lowest: files that are written and screens that are drawn take some MiB, and give them back.
    """
    parts: dict[int, list[Sample]] = {}
    for each in samples:
        parts.setdefault(int(each.seconds // PART), []).append(each)
    rows = []
    for number, part in parts.items():
        sizes = [each.resident_mib for each in part]
        figures = (f"{size:,.1f}" for size in (min(sizes), median(sizes), max(sizes)))
        begins = f"from {number * PART / MINUTE:g}"
        rows.append((begins, *figures, f"{part[-1].num_descriptors}", f"{part[-1].num_threads}"))
    end = samples[-1].seconds
    first, last = (
        min(each.resident_mib for each in samples if start <= each.seconds <= start + PART)
        for start in (min(WARM_UP, end - PART), end - PART)
    )
    growth = last - first
    head = ("minutes", "lowest MiB", "median", "highest", "descriptors", "threads")
    mark = f"growth after the first {WARM_UP / MINUTE:g} minutes: {growth:+.1f} MiB; mark: {MARK_MIB:g} at most"
    return f"{name}\n\n{table(head, rows)}\n{mark} {verdict(growth <= MARK_MIB)}"


def main() -> None:
    """One run of each kind that is asked for, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30, help="of each run (30)")
    parser.add_argument("--trainer", choices=sorted(TRAINERS), action="append", help="may be repeated (both)")
    parser.add_argument("--screen", choices=("with", "without"), action="append", help="may be repeated (both)")
    arguments = parser.parse_args()
    for trainer in arguments.trainer or sorted(TRAINERS):
        for screen in arguments.screen or ("with", "without"):
            samples = soak(trainer, screen == "with", arguments.minutes * MINUTE)
            print(report(f"{trainer.upper()} {screen} a screen", samples), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
