"""Where toasts stand: over a chart, whose past can wait, and never over the line that is selected or newest."""

from __future__ import annotations

from typing import Any

from textual.geometry import Region
from textual.screen import Screen
from textual.widgets._toast import ToastRack

from rl_tui.tui.drawing.painting import spots
from rl_tui.tui.panes.chart import ChartPane
from rl_tui.tui.panes.list import ListPane

WIDEST = 56
LOWEST = 2  # lines of a toast: its title and one more
NEWEST = 3  # lines at the top of a list that are never covered


def toast_place(screen: Screen[Any]) -> Region:
    """The cells that toasts may cover; they stand at its bottom."""
    columns, rows = screen.size
    width = min(WIDEST, columns * 6 // 10)
    where = {widget: region.shrink(widget.styles.gutter) for widget, (region, _) in spots(screen).items()}
    charts = [region for widget, region in where.items() if isinstance(widget, ChartPane) and region.height >= LOWEST]
    if charts:
        chart = max(charts, key=lambda region: region.area)
        return Region(chart.x, chart.y, min(width, chart.width), chart.height)
    right = columns - width - 1
    pane = screen.focused
    if isinstance(pane, ListPane) and pane in where:
        top, bottom = free_rows(pane, where[pane])
        if bottom - top >= LOWEST:
            return Region(right, top, width, bottom - top)
    return Region(right, rows // 2, width, max(1, rows - 2 - rows // 2))


def free_rows(pane: ListPane, content: Region) -> tuple[int, int]:
    """First row, and one past the last, of the larger part of a list that is neither newest nor selected."""
    first, cursor = content.y + NEWEST, pane.cursor_rows()
    if not cursor:
        return first, content.bottom
    above = first, content.y + cursor.start
    below = max(first, content.y + cursor.stop), content.bottom
    return max(below, above, key=lambda part: part[1] - part[0])


def place_toasts(screen: Screen[Any]) -> None:
    """Those on the screen, and those to come, stand there."""
    rack = next(iter(screen.query(ToastRack)), None)
    if rack is None:
        return
    place = toast_place(screen)
    rack.styles.width, rack.styles.max_height = place.width, place.height
    rack.styles.margin = (0, 0, screen.size.height - place.bottom, place.x)
