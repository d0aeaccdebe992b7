"""What is read off a chart below its crosshair."""

from __future__ import annotations

from collections.abc import Sequence

from rl_tui.tui.charts.figure import CrosshairPoint, Figure, Mark, crosshair_points, has_one_line
from rl_tui.tui.charts.x_axis import x_label
from rl_tui.tui.drawing.lines import Line, Span, cells, clip, line, pack
from rl_tui.tui.drawing.text import fit, number

WHOLE_NAME = 12  # cells
FORMS = ((WHOLE_NAME, True), (WHOLE_NAME, False), (6, False), (0, False))  # of names; lowest and highest, too
ANY_WIDTH = 10_000


def cross_words(figure: Figure, x: float, width: int, num_cells: int) -> Line:
    """The place of the crosshair, what each curve is there, and what happened there.

    What is least wanted goes first where there is no room: lowest and highest, names, what happened, and last curves.
    """
    start, end = figure.viewport.shown
    points = crosshair_points(figure, x, num_cells)
    place = points[0].x if len(figure.curves) == 1 and points else x
    at = line(Span(f" {x_label(place, figure.x_axis, (end - start) / num_cells / 10)}", "accent"))
    happened = [line(Span(f"{mark.glyph} {mark.text or mark.word}", mark.tone))
                for mark in marks_at(figure, x, num_cells)]  # fmt: skip
    if not points:
        return clip(pack([at, line(Span("no value here", "dim")), *happened], ANY_WIDTH, gap=2), width)
    return _fitting(figure, at, points, happened, width)


def copied(figure: Figure, x: float, num_cells: int) -> str:
    """What lies below the crosshair, to be pasted elsewhere: a number, or with several curves names and numbers."""
    points = crosshair_points(figure, x, num_cells)
    if len(figure.curves) == 1:
        return f"{points[0].mean:.8g}" if points else ""
    is_alone = has_one_line(figure.curves)
    values = [point.mean if is_alone else point.drawn for point in points]
    return ", ".join(f"{each.curve.name} {value:.8g}" for each, value in zip(points, values, strict=True))


def _fitting(figure: Figure, at: Line, points: Sequence[CrosshairPoint], happened: Sequence[Line], width: int) -> Line:
    """As much of each reading as has room. What happened there is cut off before names are, but not for the rest."""
    is_alone = has_one_line(figure.curves)
    is_smoothed = not is_alone and any(each.line is not None for each in points)
    how = line(Span(f"smoothed {figure.smoothing:g}" if is_smoothed else "", "dim"))
    beside = FORMS[:2] if len(figure.curves) > 1 else (*FORMS[:2], FORMS[-1])
    tried = [(form, happened) for form in beside] + [(form, ()) for form in FORMS]
    for (name_width, has_spread), what in tried:
        entries = [_entry(each, figure, is_alone, name_width, has_spread) for each in points]
        words = pack([at, how, *entries, *what], ANY_WIDTH, gap=2)
        if cells(words) <= width:
            return words if what else clip(pack([words, *happened], ANY_WIDTH, gap=2), width)
    for num_shown in range(len(entries), 0, -1):
        rest = line(Span(f"+{len(entries) - num_shown}" if num_shown < len(entries) else "", "dim"))
        words = pack([at, *entries[:num_shown], rest], ANY_WIDTH, gap=2)
        if cells(words) <= width:
            break
    return clip(words, width)


def _entry(point: CrosshairPoint, figure: Figure, is_alone: bool, name_width: int, has_spread: bool) -> Line:
    """Sign, name and value of a curve, as it is drawn; a curve whose every value is drawn has these, too.

    name_width: 0 leaves the value and the sign alone.
    """
    curve = point.curve
    label = "" if len(figure.curves) == 1 else f"{curve.label} {fit(curve.name, name_width)}".strip() + " "
    if not is_alone and point.line is not None:
        return line(Span(label, curve.tone), Span(number(point.line), "strong"))
    low, high = number(point.low), number(point.high)
    spread = f" ({low} to {high})" if has_spread and low != high else ""
    smooth = f"  smoothed {number(point.line)}" if point.line is not None and name_width else ""
    return line(Span(label, curve.tone), Span(number(point.mean), "strong"), Span(spread + smooth, "dim"))


def marks_at(figure: Figure, x: float, num_cells: int) -> Sequence[Mark]:
    """The rarest first."""
    start, end = figure.viewport.shown
    cell = (end - start) / num_cells
    return [mark for mark in reversed(figure.marks) if abs(mark.x - x) < cell]
