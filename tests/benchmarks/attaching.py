"""What it takes to attach to a run, and what that costs it: `python -m tests.benchmarks.attaching`.

The run of snapshots.py is served in a process of its own, in which a thread counts, in Python, as training threads
compute. Another process attaches again and again. The longest stall is the longest time in which it has not counted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median, quantiles

from rl_tui.engine.remote.client import attach_to
from rl_tui.engine.remote.sockets import FOLDER_VARIABLE, socket_path
from rl_tui.engine.session.messages import Envelope
from rl_tui.engine.session.view import RunView
from tests.benchmarks.snapshots import NUM_EVENTS, NUM_METRICS, event_of
from tests.benchmarks.tables import table, verdict
from tests.remote.served import served

TIMES, MARK_SECONDS, LONGEST_SECONDS, MARK_STALL = 20, 1.0, 3.0, 0.020


class Counter:
    """Counts in a thread; gaps: seconds between two counts, the longest since they were asked for."""

    def __init__(self) -> None:
        self._longest = 0.0
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        before = time.perf_counter()
        while True:
            now = time.perf_counter()
            self._longest, before = max(self._longest, now - before), now

    def pop_longest(self) -> float:
        """Seconds since this was called last."""
        longest, self._longest = self._longest, 0.0
        return longest


def serve(folder: Path) -> None:
    """Serve the run until stdin closes; for each line there, print the longest stall since the one before."""
    view = RunView()
    for number in range(1, NUM_EVENTS + 1):
        view.apply(Envelope(number, 1e9 + number, event_of(number)))
    view.position = (0, 0)  # events of this process are news
    with served(folder, view) as run:
        while not socket_path(run.path, os.getpid()).exists():
            time.sleep(0.01)
        counter = Counter()
        print(run.path, flush=True)
        for _ in sys.stdin:
            print(counter.pop_longest(), flush=True)


def main() -> int:
    """Print the table; 1 if it takes too long."""
    with tempfile.TemporaryDirectory() as name:
        os.environ[FOLDER_VARIABLE] = f"{name}/sockets"
        words = [sys.executable, "-m", "tests.benchmarks.attaching", "--serve", name]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdin is not None
            assert server.stdout is not None

            def stall() -> float:
                server.stdin.write("\n")
                server.stdin.flush()
                return float(server.stdout.readline())

            path = Path(server.stdout.readline().strip())
            seconds, wholes, stalls, idle = [], [], [], []
            for _ in range(TIMES):
                stall()
                time.sleep(0.5)
                idle.append(stall())
                begin = time.monotonic()
                session = attach_to(path)
                seconds.append(time.monotonic() - begin)
                reading = threading.Thread(target=session.main)
                reading.start()
                session.whole.wait()
                wholes.append(time.monotonic() - begin)
                stalls.append(stall())
                session.close()
                reading.join()
            server.stdin.close()
    p95 = quantiles(seconds, n=20)[-1]
    rows = [
        ("to what the first picture shows, median", f"{median(seconds):.2f} s"),
        ("p95", f"{p95:.2f} s"),
        ("longest", f"{max(seconds):.2f} s"),
        ("to the whole view with every curve, median", f"{median(wholes):.2f} s"),
        ("longest", f"{max(wholes):.2f} s"),
        ("longest stall of a thread in Python meanwhile, median", f"{1e3 * median(stalls):.0f} ms"),
        ("the longest of them", f"{1e3 * max(stalls):.0f} ms"),
        ("the same in half a second without attaching, median", f"{1e3 * median(idle):.0f} ms"),
    ]
    print(table((f"{NUM_EVENTS:,} events, {NUM_METRICS} metrics, {TIMES} times", ""), rows))
    is_quick = p95 <= MARK_SECONDS and max(wholes) <= LONGEST_SECONDS
    print(f"p95 {p95:.2f} s, mark {MARK_SECONDS:g}: {verdict(is_quick)}")
    is_smooth = median(stalls) <= MARK_STALL
    print(f"stall {1e3 * median(stalls):.0f} ms, mark {1e3 * MARK_STALL:.0f}: {verdict(is_smooth)}")
    return 0 if is_quick and is_smooth else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(Path(sys.argv[2]))
    else:
        sys.exit(main())
