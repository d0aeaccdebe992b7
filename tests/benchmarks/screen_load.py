"""What the screen costs the machine: ticks with 12 behaviors and a day of history, memory of the view, one chart."""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import psutil

from rl_tui.engine.session.messages import (
    BehaviorStarted,
    BehaviorStateChanged,
    Envelope,
    EpisodesFinished,
    Event,
    MetricsReported,
    ProgressReported,
    RunStarted,
    RunStateChanged,
)
from rl_tui.engine.session.view import RunView
from rl_tui.tui.app import TrainerApp
from rl_tui.tui.charts.curve import plain_curve
from rl_tui.tui.charts.drawing import ChartStyle, draw
from rl_tui.tui.charts.figure import Figure
from rl_tui.tui.charts.window import Viewport
from rl_tui.tui.drawing.glyphs import UNICODE
from tests.benchmarks.processes import PYTHON, ROOT, run_python
from tests.benchmarks.tables import row, table
from tests.fakes import FakeSession
from tests.pseudo_terminal import PseudoTerminal

BEHAVIORS, HOURS = 12, 24.0
REPORT_SECONDS, HISTORY_SECONDS = 0.2, 60.0  # from one report of each behavior to the next, now and in the past
STEPS_PER_SECOND, STEPS_PER_SUMMARY = 1000, 20_000
SIZES = ((120, 40), (200, 60))
TAGS = [f"Metric/{index}" for index in range(20)]
TICK_SECONDS, QUICK_TICK_SECONDS = 20.0, 3.0
EVENTS = 50_000  # of each behavior, and a tenth as many summaries: the curves are full at 4096 points
MARK_TICK_MS, MARK_CHART_MS, MARK_GROWTH_MIB = 10.0, 2.0, 1.0
CHART_POINTS, CHART_SIZE, SMOOTHING = 1_000_000, (110, 20), 0.6


@dataclass(frozen=True, slots=True)
class Load:
    """tick_ms: of every tick by the terminal's size; view_mib: resident, after EVENTS and after twice as many;
    chart_ms: to draw a million points."""

    tick_ms: dict[str, list[float]]
    view_mib: tuple[float, float]
    chart_ms: float


def measure_load(*, is_quick: bool) -> Load:
    """Everything, one process after the other."""
    seconds = QUICK_TICK_SECONDS if is_quick else TICK_SECONDS
    events = EVENTS // 20 if is_quick else EVENTS
    once, twice = (float(run_python("-m", __name__, "--fold", str(n), folder=ROOT)) for n in (events, 2 * events))
    ticks = {f"{columns}x{rows}": ticks_at((columns, rows), seconds) for columns, rows in SIZES}
    return Load(ticks, (once, twice), chart_ms(repeats=5 if is_quick else 41))


def ticks_at(size: tuple[int, int], seconds: float) -> list[float]:
    """Milliseconds of each tick on a terminal of that size, the first ones left out."""
    with TemporaryDirectory(prefix="rl-tui-bench-") as folder:
        path = Path(folder) / "ticks.json"
        words = [*PYTHON, "-m", __name__, "--ticks", str(path), "--seconds", str(seconds)]
        variables = {"PYTHONPATH": str(ROOT / "src"), "XDG_STATE_HOME": folder, "LANG": "C.UTF-8"}
        with PseudoTerminal(words, size, variables=variables) as terminal:
            if terminal.wait(seconds + 120) != 0:
                raise RuntimeError(f"the screen failed:\n{terminal.text()}")
        measured: list[float] = json.loads(path.read_text())
        return measured[len(measured) // 10 :]


def run_app(report: Path, seconds: float) -> None:
    """The screen of a busy run in this terminal for that long; what each tick took is left in `report`."""
    view = RunView()
    began = time.time() - HOURS * 3600
    for event in beginning():
        view.apply(Envelope(1, began, event))
    for number in range(1, round(HOURS * 3600 / HISTORY_SECONDS)):
        for event in reports(number * HISTORY_SECONDS, HISTORY_SECONDS):
            view.apply(Envelope(1, began + number * HISTORY_SECONDS, event))
    session = FakeSession(view)
    app = TrainerApp(session)
    gc.freeze()  # as a run does once it is built
    took: list[float] = []
    follow = app._follow

    def timed_follow(must_draw: bool) -> None:
        start = time.thread_time()
        follow(must_draw)
        took.append(1000 * (time.thread_time() - start))

    app._follow = timed_follow  # type: ignore[method-assign]  # measured where it is called
    threading.Thread(target=lambda: report_for_ever(session, began), daemon=True).start()
    threading.Timer(seconds, lambda: app.call_from_thread(app.exit)).start()
    app.run()
    report.write_text(json.dumps(took))


def beginning() -> Iterator[Event]:
    """The run and its behaviors train."""
    yield RunStarted("busy", "results/busy", 1, "cpu", False, {})
    yield RunStateChanged("training")
    for index in range(BEHAVIORS):
        yield BehaviorStarted(f"Behavior {index}", "ppo", "gymnasium:Busy-v1", 0, 10**9, 8, 9347, True)
        yield BehaviorStateChanged(f"Behavior {index}", "training")


def reports(elapsed: float, since: float) -> Iterator[Event]:
    """What each behavior reports that long after the start, and that long after its last report."""
    step = round(elapsed * STEPS_PER_SECOND)
    for index in range(BEHAVIORS):
        name, value = f"Behavior {index}", random.gauss(100 * (1 - 2 ** (-elapsed / 20_000)), 5)
        yield ProgressReported(name, step, step, STEPS_PER_SECOND, step // 2048)
        yield EpisodesFinished(name, step, 4, value, value - 9, value + 9, 200.0)
        if step // STEPS_PER_SUMMARY > (step - since * STEPS_PER_SECOND) // STEPS_PER_SUMMARY:
            metrics = {tag: value * random.uniform(0.9, 1.1) for tag in TAGS}
            yield MetricsReported(name, step, elapsed, metrics, value, 5.0, None, True)


def report_for_ever(session: FakeSession, began: float) -> None:
    """The run continues."""
    while True:
        time.sleep(REPORT_SECONDS)
        for event in reports(time.time() - began, REPORT_SECONDS):
            session.bus.publish(event)


def fold(num_events: int) -> float:
    """MiB that a view holds after so many events of each behavior."""
    chance, view = random.Random(1), RunView()
    process = psutil.Process()
    before = process.memory_info().rss
    for number in range(num_events):
        for index in range(BEHAVIORS):
            name, value = f"Behavior {index}", chance.random()
            view.apply(Envelope(number, number / 10, EpisodesFinished(name, number, 4, value, value, value, 100.0)))
            if number % 10 == 0:
                metrics = dict.fromkeys(TAGS, value)
                published = MetricsReported(name, number, number / 10, metrics, value, 0.1, None, True)
                view.apply(Envelope(number, number / 10, published))
    return (process.memory_info().rss - before) / 2**20


def chart_ms(repeats: int) -> float:
    """Median milliseconds until one chart is drawn, caches warm, in this thread; making its curve is not counted."""
    ys = np.sin(np.linspace(0, 20, CHART_POINTS)) + np.random.default_rng(1).normal(0, 0.2, CHART_POINTS)
    curve = plain_curve(np.arange(CHART_POINTS, dtype=np.float64), ys)
    whole = (0.0, float(CHART_POINTS))
    figure = Figure((curve,), Viewport(whole, whole, CHART_POINTS - 1.0), smoothing=SMOOTHING)
    took = []
    for _ in range(repeats):
        begun = time.perf_counter()
        lines = draw(figure, *CHART_SIZE, ChartStyle(UNICODE))
        took.append(time.perf_counter() - begun)
        assert len(lines) == CHART_SIZE[1]
    return median(took) * 1000


def report(load: Load) -> str:
    """The figures as text, with their marks."""
    rows = []
    for size, milliseconds in load.tick_ms.items():
        ordered = sorted(milliseconds)
        p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
        rows.append(row(f"tick at {size}, p95 ({median(ordered):.1f} median)", p95, MARK_TICK_MS, "ms", 1))
    once, twice = load.view_mib
    rows.append(
        row(f"view's memory ({once:.0f} MiB), growth when twice as long", twice - once, MARK_GROWTH_MIB, "MiB", 1)
    )
    rows.append(row("a chart of a million points", load.chart_ms, MARK_CHART_MS, "ms", 2))
    head = f"(h) the screen's own work, {BEHAVIORS} behaviors, {HOURS:.0f} hours of history; CPU time of its thread"
    return f"{head}\n\n{table(('', 'measured', 'mark', ''), rows)}"


def main(words: Sequence[str] | None = None) -> None:
    """What `measure_load` starts in processes of their own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ticks", type=Path)
    parser.add_argument("--seconds", type=float, default=TICK_SECONDS)
    parser.add_argument("--fold", type=int)
    arguments = parser.parse_args(words)
    if arguments.ticks is not None:
        os.environ.setdefault("LC_ALL", "C.UTF-8")
        run_app(arguments.ticks, arguments.seconds)
    elif arguments.fold is not None:
        print(fold(arguments.fold))


if __name__ == "__main__":
    main()
