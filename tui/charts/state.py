"""What the user has chosen to see of the curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rl_tui.tui.charts.curve import Range, XAxis
from rl_tui.tui.charts.window import PAN_SHARE, Viewport, panned, zoomed
from rl_tui.tui.charts.y_range import AUTOMATIC, YRange, range_words

SMOOTHINGS = (0.0, 0.3, 0.6, 0.9)
LARGEST_SMOOTHING = 0.999
X_AXES: tuple[XAxis, ...] = ("steps", "wall", "relative")


@dataclass(slots=True)
class ChartState:
    """Owned by the screen's state, changed by keys and the mouse. x values are in the unit of `x_axis`.

    metrics: tags of the curves drawn together; none until the user chooses, and what shows progress is then drawn.
    window: the visible part of the x axis, None for all of it. is_live: the window's right end follows the newest
    point. crosshair: its place, None while it is off. pinned: the metrics in the grid of charts, by algorithm; those
    not named have the usual ones. page: of the grid, counted on past its last page.
    """

    metrics: list[str] = field(default_factory=list)
    has_all_behaviors: bool = False
    x_axis: XAxis = "steps"
    window: Range | None = None
    is_live: bool = True
    smoothing: float = 0.6
    is_log: bool = False
    crosshair: float | None = None
    pinned: dict[str, list[str]] = field(default_factory=dict)
    page: int = 0
    clips_outliers: bool = False
    y_ranges: dict[str, YRange] = field(default_factory=dict)  # chosen by hand, by metric

    @property
    def choices(self) -> object:
        """Everything chosen, to be compared."""
        return (tuple(self.metrics), self.has_all_behaviors, self.x_axis, self.window, self.is_live, self.smoothing,
                self.is_log, self.crosshair, self.clips_outliers, tuple(sorted(self.y_ranges.items())))  # fmt: skip

    def y_words(self, metrics: Sequence[str] = ()) -> str:
        """How the y axis of these metrics, or of those drawn, differs from what the values ask; "" if it does not."""
        ranges = {self.y_ranges.get(metric, AUTOMATIC) for metric in metrics or self.metrics}
        by_hand = range_words(next(iter(ranges))) if len(ranges) == 1 else "y by hand"
        clipped = "clipped" if by_hand else "outliers clipped"
        has_effect = self.clips_outliers and any(None in each for each in ranges)
        parts = [by_hand, clipped if has_effect else "", "log y" if self.is_log else ""]
        return ", ".join(part for part in parts if part)

    def ranges_of(self, metrics: Sequence[str]) -> dict[str, YRange]:
        """Those chosen by hand, of these metrics."""
        return {metric: self.y_ranges[metric] for metric in metrics if metric in self.y_ranges}

    def choose_range(self, metrics: Sequence[str], y_range: YRange) -> None:
        """These metrics have that range of the y axis."""
        for metric in metrics:
            self.y_ranges.pop(metric, None)
            if y_range != AUTOMATIC:
                self.y_ranges[metric] = y_range

    def zoom(self, factor: float, viewport: Viewport, center: float | None = None) -> None:
        """`factor` times the detail, around `center`, else the crosshair, else the newest point or the middle."""
        start, end = viewport.shown
        if center is None and self.crosshair is not None and start <= self.crosshair <= end:
            center = self.crosshair
        follows = center is None and self.is_live
        if center is None:
            center = end if follows else (start + end) / 2
        self.window = zoomed(viewport, factor, center)
        self.is_live = follows or self.window is None

    def pan(self, by: int, viewport: Viewport) -> None:
        """Move by quarters of the window; beyond the newest point it follows again."""
        self.pan_by(by * PAN_SHARE * (viewport.shown[1] - viewport.shown[0]), viewport)

    def pan_by(self, distance: float, viewport: Viewport) -> None:
        """Move by so much of x. The whole axis stays where it is."""
        if self.window is None or distance == 0:
            return
        self.window = panned(viewport, distance)
        self.is_live = distance > 0 and self.window[1] >= viewport.full[1]

    def follow(self) -> None:
        """The newest point is visible, and stays so."""
        self.is_live = True

    def show_all(self) -> None:
        """The whole axis."""
        self.window, self.is_live = None, True

    def toggle_crosshair(self, viewport: Viewport) -> None:
        """Off, or on at the newest visible point."""
        start, end = viewport.shown
        self.crosshair = max(start, min(end, viewport.newest)) if self.crosshair is None else None

    def slide(self, by: int, viewport: Viewport, num_cells: int) -> None:
        """Move the crosshair by cells; it stays visible."""
        if self.crosshair is not None:
            start, end = viewport.shown
            self.crosshair = max(start, min(end, self.crosshair + by * (end - start) / max(num_cells, 1)))

    def next_metric(self, order: Sequence[str], by: int = 1, drawn: str = "") -> None:
        """The metric after the one that is drawn first, alone. drawn: that one, where it is not the one chosen."""
        if order:
            first = drawn or next(iter(self.metrics), "")
            at = order.index(first) if first in order else -by
            self.metrics = [order[(at + by) % len(order)]]

    def pin(self, algorithm: str, metrics: Sequence[str]) -> None:
        """The grid of behaviors with that algorithm has these metrics; with none of them, the usual ones."""
        self.pinned.pop(algorithm, None)
        if metrics:
            self.pinned[algorithm] = list(metrics)

    def next_smoothing(self) -> None:
        """The next stronger one of the usual ones; none after the strongest."""
        self.smoothing = next((value for value in SMOOTHINGS if value > self.smoothing), SMOOTHINGS[0])

    def next_x_axis(self, convert: Callable[[float, XAxis], float]) -> None:
        """Another unit of x. convert(x, x_axis): the same place on that axis."""
        x_axis = X_AXES[(X_AXES.index(self.x_axis) + 1) % len(X_AXES)]
        if self.crosshair is not None:
            self.crosshair = convert(self.crosshair, x_axis)
        if self.window is not None:
            start, end = convert(self.window[0], x_axis), convert(self.window[1], x_axis)
            self.window, self.is_live = ((start, end), self.is_live) if end > start else (None, True)
        self.x_axis = x_axis
