"""Figures as a table of numbers, for other programs.  Shapes: N visible points of a curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from rl_tui.tui.charts.arrays import Floats, np
from rl_tui.tui.charts.curve import Curve, Range, XAxis
from rl_tui.tui.charts.figure import Figure
from rl_tui.tui.charts.smoothing import smooth_line

X_NAMES: dict[XAxis, str] = {"steps": "step", "wall": "seconds since 1970", "relative": "seconds since the start"}

Cell: TypeAlias = str | int | float
Place: TypeAlias = tuple[float, int]  # an x, and which one of a curve's points there


def rows_of(figures: Sequence[Figure]) -> Iterator[list[Cell]]:
    """A header, then a row for each x at which a curve has a visible point; nothing where there is no curve.

    The figures share an x axis. Of each curve there are mean, lowest, highest, and where it is drawn smoothed that
    value, too; a cell is "" where the curve has no point, and NaN where none of its values was finite.
    """
    shown: dict[str, tuple[Curve, Figure]] = {}
    for each in figures:
        for curve in each.curves:
            shown.setdefault(curve.source, (curve, each))
    header: list[Cell] = []
    rows: dict[Place, dict[int, list[float]]] = {}
    for curve, figure in shown.values():
        names, xs, points = _points(curve, figure)
        for place, values in zip(_places(xs), points, strict=True):
            rows.setdefault(place, {})[len(header)] = values
        header += [f"{curve.source} {name}" for name in names]
    if header:
        yield [X_NAMES[figures[0].x_axis], *header]
    for place, cells in sorted(rows.items(), key=lambda item: item[0]):
        row: list[Cell] = [""] * len(header)
        for first, values in cells.items():
            row[first : first + len(values)] = values
        yield [_whole(place[0]), *row]


def _points(curve: Curve, figure: Figure) -> tuple[list[str], list[float], list[list[float]]]:
    """The names of the values, and of the visible points each x and its values."""
    start, end = figure.viewport.shown
    first, past = int(np.searchsorted(curve.xs, start)), int(np.searchsorted(curve.xs, end, side="right"))
    names, values = ["mean", "lowest", "highest"], [curve.mean, curve.low, curve.high]
    if figure.smoothing > 0 and curve.is_band:
        names = [f"{name} of smoothed {figure.smoothing:g}" for name in names]
    elif figure.smoothing > 0 and not curve.has_points:
        names.append(f"smoothed {figure.smoothing:g}")
        values.append(_smoothed(curve, figure.viewport.shown, figure.smoothing))
    return names, curve.xs[first:past].tolist(), np.stack(values, axis=1)[first:past].tolist()


def _smoothed(curve: Curve, x_range: Range, smoothing: float) -> Floats:
    """The smoothed curve at its points, as it is drawn; NaN where they are."""
    xs, averages = smooth_line(curve.within(x_range), x_range, smoothing)
    known = np.isfinite(averages)
    if not known.any():
        return np.full(len(curve.xs), np.nan)
    return np.where(np.isfinite(curve.mean), np.interp(curve.xs, xs[known], averages[known]), np.nan)


def _places(xs: Sequence[float]) -> Iterator[Place]:
    """Each x with its number among those that are the same."""
    number = 0
    for at, x in enumerate(xs):
        number = number + 1 if at and x == xs[at - 1] else 0
        yield x, number


def _whole(x: float) -> int | float:
    return int(x) if x.is_integer() else x
