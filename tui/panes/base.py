"""A pane: lines drawn from a frame, of which only the cells that changed are sent to the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, repeat, zip_longest

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from engine.session.view import BehaviorView, RunView
from tui.glyphs import Glyphs
from tui.lines import SERIES, Line, Tone, cells, clip
from tui.painting import Piece, Place, styled


@dataclass(frozen=True, slots=True)
class Frame:
    """What a pane draws. now: wall time; is_frozen: view is a copy of the past; has_color: tones can be told apart."""

    view: RunView
    selected: int
    now: float
    glyphs: Glyphs
    config_name: str = ""
    is_frozen: bool = False
    has_color: bool = True

    @property
    def behavior(self) -> BehaviorView | None:
        """The selected behavior; None while the run has none."""
        behaviors = list(self.view.behaviors.values())
        return behaviors[min(self.selected, len(behaviors) - 1)] if behaviors else None

    @property
    def time(self) -> float:
        """The wall time until which the run has lived: the present, or its last event once it is over."""
        return self.view.now if self.is_frozen or is_over(self.view) else max(self.now, self.view.now)

    @property
    def tone(self) -> Tone:
        """The color of the selected behavior."""
        return series_tone(self.selected)


def is_over(view: RunView) -> bool:
    """Whether the run has ended, well or badly."""
    return view.state in ("finished", "failed")


def series_tone(index: int) -> Tone:
    """The color of the behavior at `index`, the same as long as the run lives."""
    return SERIES[index % len(SERIES)]


class Pane(Widget):
    """Lives in the app's thread. Owns the lines on screen; a subclass says what they are.

    seconds: the lines are made anew at most that often, unless the state or the `inputs` change.
    """

    can_focus = False
    seconds = 0.0

    def __init__(self) -> None:
        super().__init__()
        self._frame: Frame | None = None
        self._lines: list[Line] = []
        self._lines_size = Size()
        self._heading = ""
        self._wanted_height = 1
        self._tones: dict[Tone, Style] = {}
        self._made_of: object = None
        self._made_at = 0.0
        self._place: Place | None = None
        self._content = Region()

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """What the pane shows, newest state of `frame`; at most `height` lines are painted. A bare pane is empty."""
        return []

    def inputs(self, frame: Frame) -> object:
        """What of `frame` is shown at once when it changes; counts only where `seconds` is not zero."""
        return None

    def heading(self, frame: Frame) -> str:
        """The words in the pane's frame; they should change seldom, for the whole pane is then painted."""
        return ""

    def wanted_height(self, frame: Frame, width: int) -> int:
        """Lines that the pane would like; counts only where app.tcss says `height: auto`."""
        return 1

    def draw(self, frame: Frame, place: Place | None) -> list[Piece]:
        """Bring the lines up to `frame` and return what is to be painted of them. place: None when out of sight."""
        self._frame = frame
        heading = self.heading(frame)
        if heading != self._heading:
            self._heading = heading
            self.border_title = Content(heading)
        if place is None or self._is_fresh(frame, place):
            return []
        wanted = self.wanted_height(frame, self._content.width)
        if wanted != self._wanted_height:
            self._wanted_height = wanted
            self.refresh(layout=True)
        before = self._lines if self._lines_size == self._content.size else []
        self._make_lines(frame, self._content.size)
        changed = [
            (y, *changed_cells(old, new, self._content.width))
            for y, (old, new) in enumerate(zip_longest(before, self._lines, fillvalue=()))
            if old != new
        ]
        if not place[1].contains_region(self._content):
            self.refresh(*(Region(first, y, last - first, 1) for y, first, last in changed if last > first))
            return []
        return [self._piece(y, first, last) for y, first, last in changed if last > first]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """See wanted_height."""
        if self._frame is not None:
            self._wanted_height = self.wanted_height(self._frame, width)
        return self._wanted_height

    def notify_style_update(self) -> None:
        """Colors are looked up anew."""
        self._tones.clear()
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        """Line y in the colors of app.tcss; the lines are made anew when the pane was laid out differently."""
        if self._frame is not None and self.size != self._lines_size:
            self._make_lines(self._frame, self.size)
        width = self.size.width
        spans = self._lines[y] if y < len(self._lines) else ()
        segments = [Segment(text, self._style(tone)) for text, tone in spans]
        missing = width - cells(spans)
        if missing > 0:
            segments.append(Segment(" " * missing, self._style("text")))
        return Strip(segments, width)

    def _is_fresh(self, frame: Frame, place: Place) -> bool:
        """Whether the lines there are still do; takes note of what they will be made of otherwise."""
        if place != self._place:
            self._place, self._content = place, place[0].shrink(self.styles.gutter)
        state = frame.behavior.state if frame.behavior else None
        made_of = place, frame.selected, frame.is_frozen, frame.view.state, state, self.inputs(frame)
        if made_of == self._made_of and 0 <= frame.now - self._made_at < self.seconds:
            return True
        self._made_of, self._made_at = made_of, frame.now
        return False

    def _make_lines(self, frame: Frame, size: Size) -> None:
        width, height = self._lines_size = size
        self._lines = [clip(spans, width) for spans in self.lines(frame, width, height)[:height]] if width else []

    def _piece(self, y: int, first: int, last: int) -> Piece:
        """Cells [first, last) of line y, which Textual will render anew when next it paints the line itself."""
        row = self._content.y + y
        assert self._place is not None
        self._styles_cache.set_dirty(Region(0, row - self._place[0].y, 1, 1))
        parts: list[tuple[str, Tone]] = []
        at = 0
        for text, tone in self._lines[y] if y < len(self._lines) else ():
            if part := text[max(0, first - at) : max(0, last - at)]:
                parts.append((part, tone))
            at += cell_len(text)
        if at < last:
            parts.append((" " * (last - max(at, first)), "text"))
        console = self.app.console
        text = "".join(styled(part, self._style(tone), console) for part, tone in parts)
        return Piece(self._content.x + first, row, text)

    def _style(self, tone: Tone) -> Style:
        style = self._tones.get(tone)
        if style is None:
            styles = self.app.get_component_styles(f"tone--{tone}")
            style = self.rich_style + Style(color=styles.color.rich_color) + styles.text_style
            if styles.has_rule("background"):
                style += Style(bgcolor=styles.background.rich_color)
            strip = Strip([Segment(" ", style)])
            for each in self.app.get_line_filters():
                strip = strip.apply_filter(each, self.background_colors[1])
            style = next(iter(strip)).style or style
            self._tones[tone] = style
        return style


def changed_cells(old: Line, new: Line, width: int) -> tuple[int, int]:
    """First cell that differs and one past the last; the whole width where a character is not one cell wide."""
    before, after = _by_cell(old, width), _by_cell(new, width)
    if before is None or after is None:
        return 0, width
    different = [at for at, (was, becomes) in enumerate(zip(before, after, strict=True)) if was != becomes]
    return (different[0], different[-1] + 1) if different else (0, 0)


def _by_cell(spans: Line, width: int) -> list[tuple[str, Tone]] | None:
    if any(cell_len(span.text) != len(span.text) for span in spans):
        return None
    text = "".join(span.text for span in spans).ljust(width)
    tones = chain.from_iterable(repeat(span.tone, len(span.text)) for span in spans)
    return list(zip(text[:width], chain(tones, repeat("text")), strict=False))
