"""The return that decides on the selected parameter, with its lessons and the threshold of the one that goes on."""

from __future__ import annotations

from dataclasses import replace

from rl_tui.engine.session.behavior_view import RETURN
from rl_tui.engine.session.messages import ParameterStatus
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.charts.arrays import np
from rl_tui.tui.charts.curve import Curve, plain_curve
from rl_tui.tui.charts.figure import Figure
from rl_tui.tui.charts.metrics import metric_title
from rl_tui.tui.charts.run_figure import run_figure
from rl_tui.tui.drawing.lines import Line, centered
from rl_tui.tui.drawing.text import fit
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.chart import ChartPane, charted
from rl_tui.tui.panes.chart_words import empty_words
from rl_tui.tui.panes.lesson_list import LessonList
from rl_tui.tui.panes.lesson_words import deciding_behavior

NAME_WIDTH = 24


class LessonChart(ChartPane):
    """Of the behavior that ends the lessons of the parameter below the cursor; of the selected one where none does."""

    def __init__(self, parameters: LessonList) -> None:
        super().__init__()
        self._list = parameters

    def figure(self, frame: Frame) -> Figure | None:
        """The return, and what it must exceed."""
        frame, status = self._followed(frame)
        figure = run_figure(frame.view, frame.selected, self.chart_state(frame), frame.glyphs, [RETURN])
        if figure is None or status is None or status.measure != "reward":
            return figure
        return replace(figure, curves=(*figure.curves, _threshold(status.threshold, figure)))

    def heading(self, frame: Frame) -> str:
        """Whose return it is, and what the dashed line is."""
        followed, status = self._followed(frame)
        behavior = followed.behavior
        name = fit(safe_text(behavior.name), NAME_WIDTH, frame.glyphs.ellipsis) if behavior is not None else ""
        measures = status is not None and status.measure == "reward"
        line_words = (
            f"lesson {status.lesson} ends above {status.threshold:g}" if status is not None and measures else ""
        )
        return f" {frame.glyphs.dot} ".join(part for part in (metric_title(RETURN), name, line_words) if part)

    def inputs(self, frame: Frame) -> object:
        """Which parameter it is about, too."""
        followed, status = self._followed(frame)
        threshold = status.threshold if status is not None else None
        return super().inputs(frame), followed.selected, threshold

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Words above, the curves below; words alone as long as there is no curve."""
        figure = self.figure(frame)
        followed, _ = self._followed(frame)
        if figure is None:
            return centered(empty_words(followed, [RETURN]), height, width)
        return charted(followed, figure, width, height)

    def _followed(self, frame: Frame) -> tuple[Frame, ParameterStatus | None]:
        """The frame in which the deciding behavior is selected, and the parameter."""
        entry = self._list.current(frame)
        status = frame.view.parameters.get(entry.key) if entry is not None else None
        deciding = (
            deciding_behavior(entry.key, status, frame.view) if entry is not None and status is not None else None
        )
        if deciding is None:
            return frame, status
        state = replace(frame.state, selected=list(frame.view.behaviors).index(deciding.name))
        return replace(frame, state=state), status


def _threshold(value: float, figure: Figure) -> Curve:
    xs, ys = np.array(figure.viewport.full, dtype=np.float64), np.full(2, value)
    return plain_curve(xs, ys, name="threshold", tone="good", metric=RETURN, dash=1)
