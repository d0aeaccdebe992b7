"""How long one chart takes to draw: `python -m tests.benchmarks.chart_speed`."""

from __future__ import annotations

import statistics
import time

import numpy as np

from rl_tui.tui.charts.curve import plain_curve
from rl_tui.tui.charts.drawing import ChartStyle, draw
from rl_tui.tui.charts.figure import Figure
from rl_tui.tui.charts.window import Viewport
from rl_tui.tui.drawing.glyphs import UNICODE

SIZES = (1_000, 10_000, 100_000, 1_000_000)
COLUMNS, ROWS = 110, 20


def measure(smoothing: float = 0.6, repeats: int = 41) -> dict[int, float]:
    """Median milliseconds by the number of points, caches warm, in this thread; making the curve is not counted."""
    return {num_points: _median(num_points, smoothing, repeats) for num_points in SIZES}


def _median(num_points: int, smoothing: float, repeats: int) -> float:
    chance = np.random.default_rng(1)
    ys = np.sin(np.linspace(0, 20, num_points)) + chance.normal(0, 0.2, num_points)
    curve = plain_curve(np.arange(num_points, dtype=np.float64), ys)
    whole = (0.0, float(num_points))
    figure = Figure((curve,), Viewport(whole, whole, num_points - 1.0), smoothing=smoothing)
    took = []
    for _ in range(repeats):
        begun = time.perf_counter()
        lines = draw(figure, COLUMNS, ROWS, ChartStyle(UNICODE))
        took.append(time.perf_counter() - begun)
        assert len(lines) == ROWS
    return statistics.median(took) * 1000


if __name__ == "__main__":
    for chosen in (0.0, 0.6):
        for number, milliseconds in measure(chosen).items():
            print(f"smoothing {chosen}: {number:9,} points {milliseconds:.2f} ms")
