"""What ranks exchange, and how long it takes: gradients by their number and size, flags, and control words.

python -m tests.benchmarks.rank_exchanges [--ranks 2,3,4] [--rounds 200]

Ranks are processes of this machine, over gloo and sockets of the loopback interface. The times of a gradient are fitted
to those of a ring, as gloo reduces: c + 2 (R - 1) a + 2 (R - 1) / R * bytes / b, for R ranks, and the fit gives what
64 ranks would take with it, and with a network of 10 Gbit/s and 50 us: estimates, not measurements.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from multiprocessing import Pipe
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Thread

import numpy as np

from rl_tui.engine.running.ranks.link import Link
from rl_tui.engine.running.ranks.messages import Advance, Block, ControlWord, Report
from rl_tui.engine.session.text import counted
from tests.benchmarks.rank_timings import timed
from tests.benchmarks.tables import table
from tests.learning.sync.ranks import start_ranks

SIZES = 1_000, 10_000, 100_000, 1_000_000  # float32 numbers: a small network has 10,000, one with images a million
BYTES = 4
NETWORK_SECONDS, NETWORK_BYTES = 50e-6, 10e9 / 8  # of a message; a second
WORD = ControlWord(turn=Advance("Walker", 2048, 2048, 100_000, updates=True, has_all_parts=True))
BLOCK = Report(block=Block("Walker", 1024, 1024, 0, tuple(map(float, range(10))), tuple(range(10)), is_ready=True))


def link_seconds(message: object, rounds: int) -> float:
    """From one end of a link to the other and back."""
    here, there = Pipe()
    own = Link(here, "rank 1", 60.0, time.monotonic)
    other = Link(there, "rank 0", 60.0, time.monotonic)

    def answer() -> None:
        for _ in range(rounds):
            other.wait(60.0)
            other.send(other.receive())

    thread = Thread(target=answer)
    thread.start()
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        own.send(message)
        own.wait(60.0)
        own.receive()
        seconds.append(time.perf_counter() - start)
    thread.join()
    return median(seconds)


def fitted(measured: dict[tuple[int, int], float]) -> tuple[float, float, float]:
    """c, a and 1 / b of the formula above, by least squares of relative errors. measured: by ranks and numbers."""
    rows, times = [], []
    for (ranks, size), seconds in measured.items():
        if ranks > 1:
            rows.append(np.array([1, 2 * (ranks - 1), 2 * (ranks - 1) / ranks * BYTES * size]) / seconds)
            times.append(1.0)
    found, *_ = np.linalg.lstsq(np.array(rows), np.array(times), rcond=None)
    return float(found[0]), float(found[1]), float(found[2])


def in_words(seconds: float) -> str:
    """In microseconds or milliseconds."""
    return f"{seconds * 1e6:,.0f} us" if seconds < 1e-2 else f"{seconds * 1e3:,.1f} ms"


def main(words: Sequence[str] | None = None) -> None:
    """Measure, and print two tables and the estimates."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.rank_exchanges", description=__doc__)
    parser.add_argument("--ranks", type=lambda text: [int(each) for each in text.split(",")], default=[2, 3, 4])
    parser.add_argument("--rounds", type=int, default=200)
    chosen = parser.parse_args(words)
    measured = dict[tuple[int, int], float]()
    for in_memory in (True, False):
        columns = {}
        for ranks in chosen.ranks:
            with TemporaryDirectory(prefix="rl-tui-bench-") as folder, start_ranks(ranks, Path(folder)) as processes:
                found = processes.results(timed, SIZES, chosen.rounds, in_memory)
            columns[ranks] = {name: max(one[name] for one in found) for name in found[0]}
            measured |= {(ranks, size): columns[ranks][f"gradient of {size:,}"] for size in SIZES}
        rows = [(name, *(in_words(of[name]) for of in columns.values())) for name in next(iter(columns.values()))]
        where = "in shared memory" if in_memory else "over gloo"
        print(table((where, *(counted(ranks, "rank") for ranks in columns)), rows), end="\n\n", flush=True)

    said = [("control word", WORD), ("heartbeat", ControlWord()), ("report of a block", BLOCK)]
    rows = [
        (name, f"{len(ForkingPickler.dumps(message)):,}", in_words(link_seconds(message, chosen.rounds)))
        for name, message in said
    ]
    print(table(("to a rank and back", "bytes", "time"), rows), flush=True)
    if max(chosen.ranks) > 2:
        constant, latency, per_byte = fitted(measured)
        rate = f"{1e-9 / per_byte:.2f} GB/s"
        print(f"\nfit: {in_words(constant)} + 2 (R - 1) {in_words(latency)} + 2 (R - 1) / R * bytes / {rate}")
        for size in SIZES:
            here = constant + 126 * latency + 126 / 64 * BYTES * size * per_byte
            there = constant + 126 * NETWORK_SECONDS + 126 / 64 * BYTES * size / NETWORK_BYTES
            said_of = f"{in_words(here)} like these, {in_words(there)} over a network"
            print(f"64 ranks, {size:,} numbers, an estimate: {said_of}")


if __name__ == "__main__":
    main()
