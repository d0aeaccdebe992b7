"""What it takes to send a view: `python -m tests.benchmarks.snapshots`.

A run of 100,000 events with 60 metrics. It is encoded in lines, none of which may take longer than 20 ms of the
processor, since a key waits meanwhile; what comes out at the other end is equal.
"""

from __future__ import annotations

import sys
import time
from statistics import median

from rl_tui.engine.session.messages import BehaviorStarted, Envelope, Event, MetricsReported, ProgressReported
from rl_tui.engine.session.snapshot import Snapshot, SnapshotReader
from rl_tui.engine.session.view import RunView
from tests.benchmarks.tables import table, verdict

NUM_EVENTS, NUM_METRICS, MARK = 100_000, 60, 0.020


def event_of(number: int) -> Event:
    """Every other event is a summary."""
    if number == 1:
        return BehaviorStarted("Walker", "ppo", "toy:line", 0, 10**9, 8, 1000, False, 0, 0, 0)
    if number % 2:
        return ProgressReported("Walker", 10 * number, 10 * number, 3000.0, number)
    metrics = {f"Losses/Metric {each}": (number * (each + 1) % 997) / 997 for each in range(NUM_METRICS)}
    return MetricsReported("Walker", 10 * number, float(number), metrics, None, None, None, True)


def main() -> int:
    """Print the table; 1 if a line takes too long."""
    view = RunView()
    for number in range(1, NUM_EVENTS + 1):
        view.apply(Envelope(number, 1e9 + number, event_of(number)))
    begin = time.thread_time()
    snapshot = Snapshot(view)
    taken = time.thread_time() - begin
    seconds, lines = [], []
    for curve in snapshot.curves:
        begin = time.thread_time()
        lines.append(snapshot.line(curve))
        seconds.append(time.thread_time() - begin)
    reader, begin = SnapshotReader(snapshot.first), time.thread_time()
    for line in lines:
        reader.add(line)
    read = time.thread_time() - begin
    assert repr(reader.view) == repr(view), "the view is not equal at the other end"
    longest = max(taken, *seconds)
    size = len(snapshot.first) + sum(map(len, lines))
    rows = [
        ("copying the view, first line", f"{1e3 * taken:.1f} ms", f"{len(snapshot.first) / 1e3:.0f} kB"),
        (f"each of {len(lines)} curves", f"{1e3 * median(seconds):.2f} ms", f"{len(lines[0]) / 1e3:.0f} kB"),
        ("the longest curve", f"{1e3 * max(seconds):.2f} ms", f"{max(map(len, lines)) / 1e3:.0f} kB"),
        ("all", f"{1e3 * (taken + sum(seconds)):.0f} ms", f"{size / 1e6:.1f} MB"),
        ("reading all", f"{1e3 * read:.0f} ms", ""),
    ]
    print(table((f"{NUM_EVENTS:,} events, {NUM_METRICS} metrics", "time", "size"), rows))
    print(f"longest in one go: {1e3 * longest:.1f} ms, mark {1e3 * MARK:.0f}: {verdict(longest <= MARK)}")
    return 0 if longest <= MARK else 1


if __name__ == "__main__":
    sys.exit(main())
