"""What the environment of a watched policy looks like: half blocks, text, or the numbers where there is no picture."""

from __future__ import annotations

import re

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.strip import Strip

from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.watching import Scene, Seen
from rl_tui.tui.drawing.cells import HALF, Cells, cells_of, changes, color, painted, runs, text_of
from rl_tui.tui.drawing.glyphs import Colors
from rl_tui.tui.drawing.lines import Line, Span, Tone, cells, centered, line
from rl_tui.tui.drawing.painting import Patch
from rl_tui.tui.drawing.text import wrapped
from rl_tui.tui.panes.base import Frame, Pane

ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")
FRONTS: dict[int, Tone] = {
    31: "bad", 32: "good", 33: "warning", 34: "series-1", 35: "series-6", 36: "wait",
}  # fmt: skip
NUMBER_WIDTH = 10


class PicturePane(Pane):
    """Runs in the app's thread. Owns the cells on the terminal, of which only those that change are painted.

    title: what one does. scene: what it shows; None before the first. words: why there is nothing to watch.
    """

    def __init__(self, title: str = "Watch") -> None:
        super().__init__()
        self._title = title
        self.scene: Scene | None = None
        self.words = ""
        self._cells: Cells | None = None  # on the terminal, as far as is known
        self._cells_at = Region()  # their place there
        self._colors: Colors = ""

    def heading(self, frame: Frame) -> str:
        """Whom one watches."""
        if self.scene is None:
            return self._title
        return f"{self._title} {frame.glyphs.dot} {safe_text(self.scene.behavior)}"

    @property
    def pixels_wanted(self) -> tuple[int, int]:
        """Width and height of the picture that has room."""
        return max(1, self.size.width), max(1, 2 * self.size.height)

    def redraw(self) -> list[Patch]:
        """Bring the picture up to the scene; returns the patches to paint."""
        frame, spot, content = self._frame, self._spot, self._content
        assert frame is not None
        assert spot is not None
        pixels = None if self.scene is None else self.scene.pixels
        self._colors = frame.colors if frame.glyphs.braille else ""
        if pixels is None or not self._colors:
            if self._cells is not None:
                self._cells = None
                self.forget_lines()
            return super().redraw()
        before = self._cells if content == self._cells_at else None
        self._cells_at, self._lines, self._lines_size = content, [], Size()
        after = self._cells = cells_of(pixels, content.width, content.height, self._colors)
        if not spot[1].contains_region(content):
            self.refresh()
            return []
        changed, ground = changes(before, after), self._ground
        for row, _, _ in changed:
            self.renew_line(row)
        return [
            Patch(content.x + first, content.y + row, painted(after, row, first, last, self._colors, ground))
            for row, first, last in changed
        ]

    def render_line(self, y: int) -> Strip:
        """Line y for Textual, where something lies over the picture."""
        if self._cells is None:
            return super().render_line(y)
        if y >= len(self._cells.upper):
            return Strip.blank(self.size.width, self.rich_style)
        ground = self._ground
        segments = [
            Segment(
                (" " if upper == lower else HALF) * length,
                Style(color=color(upper, self._colors, ground), bgcolor=color(lower, self._colors, ground)),
            )
            for upper, lower, length in runs(self._cells, y, 0, self._cells.upper.shape[1])
        ]
        return Strip(segments).adjust_cell_length(self.size.width, self.rich_style)

    @property
    def _ground(self) -> Color:
        return self.rich_style.bgcolor or Color.default()

    def inputs(self, frame: Frame) -> object:
        """The scene."""
        return self.scene, self.words

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Where there are no cells: words, text, the picture in characters, or the numbers."""
        scene = self.scene
        if scene is None:
            return centered([Span(self.words or f"{frame.glyphs.waiting} nothing to show yet", "wait")], height, width)
        if scene.state == "starting":
            return centered([Span(f"{frame.glyphs.waiting} the environment is starting", "wait")], height, width)
        if scene.state == "failed":
            return failure(scene, frame, height, width)
        if scene.pixels is not None:
            return [line(text) for text in text_of(scene.pixels, width, height)]
        if scene.text:
            return in_the_middle(text_lines(scene.text), width, height)
        return numbers(scene, width)


def failure(scene: Scene, frame: Frame, height: int, width: int) -> list[Line]:
    """Why nothing is played any more, and what can be done."""
    log, again = frame.keymap.of_id("log").shown, frame.keymap.of_id("watch-restart").shown
    advice = f"training continues; the log ({log}) has the traceback; {again} restarts it"
    return centered(
        [Span(f"{frame.glyphs.failed} {safe_text(scene.reason)}", "bad"), Span(advice, "dim")], height, width
    )


def text_lines(text: str) -> list[Line]:
    """What an environment has drawn as text; of its escape sequences only colors mean something."""
    rows = text.strip("\n").split("\n")
    tone: Tone = "text"
    lines: list[Line] = []
    for row in rows:
        spans: list[Span] = []
        for index, part in enumerate(ESCAPE.split(row.rstrip())):
            if index % 2:
                tone = _tone(part)
            elif part:
                spans.append(Span(safe_text(part), tone))
        lines.append(line(*spans))
    return lines


def _tone(parameters: str) -> Tone:
    """A ground color marks a place, whichever it is."""
    codes = [int(code) for code in parameters.split(";") if code]
    if any(40 <= code <= 47 or 100 <= code <= 107 for code in codes):
        return "flag"
    return next((FRONTS[code] for code in codes if code in FRONTS), "text")


def in_the_middle(lines: list[Line], width: int, height: int) -> list[Line]:
    """The block of lines in the middle of so much room."""
    left = " " * max(0, (width - max(map(cells, lines), default=0)) // 2)
    return [line()] * max(0, (height - len(lines)) // 2) + [line(left, *spans) for spans in lines]


def numbers(scene: Scene, width: int) -> list[Line]:
    """Why there is no picture, and what the agent sees."""
    reason = [line(Span(row, "warning")) for row in wrapped(f" no picture: {safe_text(scene.undrawn)}", width)]
    return [*reason, line(), *(row for seen in scene.seen for row in seen_lines(seen, width))]


def seen_lines(seen: Seen, width: int) -> list[Line]:
    """One observation: its name and shape, and the first of its numbers."""
    shape = "x".join(map(str, seen.shape)) or "1"
    per_row = max(1, (width - 1) // NUMBER_WIDTH)
    values = [f"{value:{NUMBER_WIDTH}.4g}" for value in seen.values]
    rows = ["".join(values[at : at + per_row]) for at in range(0, len(values), per_row)]
    more = "" if seen.is_whole else f", the first {len(seen.values)} numbers"
    return [line(Span(f" {safe_text(seen.name)} ({shape}{more})", "dim")), *(line(row) for row in rows)]
