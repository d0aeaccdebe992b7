"""A pane: lines drawn from a frame, of which only the cells that changed are sent to the terminal."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, repeat, zip_longest
from typing import Literal, TypeAlias, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.drawing.glyphs import Colors, Glyphs
from rl_tui.tui.drawing.lines import SERIES, Line, Span, Tone, cells, centered, clip, line
from rl_tui.tui.drawing.painting import Patch, Spot, styled
from rl_tui.tui.drawing.text import num_cells
from rl_tui.tui.keys.keymap import Keymap, Place
from rl_tui.tui.state.choices import ScreenState
from rl_tui.tui.state.command_status import CommandStatus
from rl_tui.tui.textual_private import render_again, request_layout_again

Condition: TypeAlias = Literal["hidden", "current", "old", "changed"]  # old: by time alone; changed: its inputs did
DUE: tuple[Condition, ...] = ("old", "changed")

T = TypeVar("T")

BEAT = 0.9  # seconds from one picture of the figures to the next: those that change faster cannot be read

WRAPPED_HEIGHT = 4  # lines from which words on a fault may take several


@dataclass(frozen=True, slots=True)
class Frame:
    """What a pane draws. now: wall time; is_frozen: view is a copy of the past; has_color: tones are distinguishable.
    colors: which ones the terminal has, "" where none are wanted.

    places: whose keys work now; focus: topic of the focused pane, "" without one; refuses: why nothing may be changed,
    "" when it may; notes: short words for the state line, e.g. the speed of a replay; is_new: the user
    has not pressed one of the first keys yet; can_watch: the selected behavior can be watched at play. controller: the
    other screen that controls the run; "" where this one may.
    """

    view: RunView
    state: ScreenState
    status: CommandStatus
    keymap: Keymap
    now: float
    glyphs: Glyphs
    config_name: str = ""
    is_frozen: bool = False
    has_color: bool = True
    colors: Colors = "256"
    places: tuple[Place, ...] = ()
    focus: str = ""
    refuses: str = ""
    notes: tuple[str, ...] = ()
    is_new: bool = False
    can_watch: bool = False
    controller: str = ""

    @property
    def selected(self) -> int:
        """Index of the selected behavior."""
        return self.state.selected_in(self.view)

    @property
    def behavior(self) -> BehaviorView | None:
        """The selected behavior; None while the run has none."""
        return self.state.behavior_in(self.view)

    @property
    def time(self) -> float:
        """The wall time until which the run has lived: the present, or its last event once it is over."""
        return self.view.now if self.is_frozen or self.view.is_over else max(self.now, self.view.now)

    @property
    def tone(self) -> Tone:
        """The color of the selected behavior."""
        return series_tone(self.selected)


def series_tone(index: int) -> Tone:
    """The color of the behavior at `index`, the same as long as the run lives."""
    return SERIES[index % len(SERIES)]


class Pane(Widget):
    """Runs in the app's thread. Owns the lines on screen; a subclass says what they are. Where that fails, the pane
    says so in its place and tries again with the next picture; `take_fault` has the reason.

    seconds: the lines are made again at most that often, unless the state or the `inputs` change. topic: what the pane
    is about, in a word; names its filter, its cursor and its keys' help. places: of the keys that only it has.
    """

    can_focus = False
    seconds = 0.0
    topic = ""
    places: tuple[Place, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self._frame: Frame | None = None
        self._lines: list[Line] = []
        self._lines_size = Size()
        self._heading = ""
        self._has_new_heading = False
        self._wanted_height = 1
        self._tones: dict[Tone, Style] = {}
        self._made_of: object = None
        self._seen: object = None
        self._made_at = 0.0
        self._spot: Spot | None = None
        self._content = Region()
        self._fault: Exception | None = None

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """What the pane shows, newest state of `frame`; at most `height` lines are painted. A bare pane is empty."""
        return []

    def inputs(self, frame: Frame) -> object:
        """What of `frame` is shown at once when it changes; counts only where `seconds` is not zero."""
        return None

    def heading(self, frame: Frame) -> str:
        """The words in the pane's frame; they should change rarely, for the whole pane is then painted."""
        return ""

    def titled(self, frame: Frame) -> str:
        """The heading with what every pane of its kind adds to it."""
        return self.heading(frame)

    def wanted_height(self, frame: Frame, width: int) -> int:
        """Lines that the pane would like; counts only where app.tcss says `height: auto`."""
        return 1

    def draw(self, frame: Frame, spot: Spot | None, *, must: bool = False) -> list[Patch]:
        """Bring the lines up to `frame` where that is due, or always if `must`; returns the patches to paint."""
        condition = self.check(frame, spot)
        return self.redraw() if condition in DUE or (must and condition != "hidden") else []

    def check(self, frame: Frame, spot: Spot | None) -> Condition:
        """Look at `frame`, and return whether the lines must be made again for it. spot: None while it is hidden."""
        self._frame = frame
        if spot is None:
            return "hidden"
        self._spot, self._content = spot, spot[0].shrink(self.styles.gutter)  # a border may go while the spot stays
        self._entitle(frame)
        self._seen = self._ingredients(frame)
        if self._seen != self._made_of:
            return "changed"
        return "current" if 0 <= frame.now - self._made_at < self.seconds else "old"

    @property
    def waited(self) -> float:
        """Seconds for which the lines have been due, as of the last `check`."""
        return 0.0 if self._frame is None else self._frame.now - self._made_at - self.seconds

    def redraw(self) -> list[Patch]:
        """Make the lines again for the frame and the spot of the last `check`; returns the patches to paint."""
        frame, spot = self._frame, self._spot
        assert frame is not None
        assert spot is not None
        self._made_of, self._made_at = self._seen, frame.now
        height = self.styles.height
        wanted = self.height_for(frame, self._content.width) if height is not None and height.is_auto else 0
        if wanted and wanted != self._wanted_height:
            self._wanted_height = wanted
            self.refresh(layout=True)
            request_layout_again(self)
        before = self._lines if self._lines_size == self._content.size else []
        self._make_lines(frame, self._content.size)
        self._entitle(frame)
        changed = [
            (y, *changed_cells(old, new, self._content.width))
            for y, (old, new) in enumerate(zip_longest(before, self._lines, fillvalue=()))
            if old != new
        ]
        if not spot[1].contains_region(self._content):
            self.refresh(*(Region(first, y, last - first, 1) for y, first, last in changed if last > first))
            return []
        return [self._patch(y, first, last) for y, first, last in changed if last > first]

    def _entitle(self, frame: Frame) -> None:
        heading = self._tried(lambda: self.titled(frame), self._heading)
        if self.can_focus and frame.focus == self.topic:
            heading = f"{frame.glyphs.marker} {heading}"
        if heading != self._heading:
            self._heading = heading
            self._has_new_heading = True
            self.border_title = Content(heading)

    def take_new_heading(self) -> bool:
        """Whether the heading has changed since the last call; Textual draws it, later than `redraw`."""
        is_new, self._has_new_heading = self._has_new_heading, False
        return is_new

    def expect(self, frame: Frame) -> None:
        """Have the height that this frame needs from the first layout on."""
        self._frame = frame

    def forget_lines(self) -> None:
        """Make them again for the next picture, in any case."""
        self._lines_size = Size()
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """See wanted_height."""
        if self._frame is not None:
            self._wanted_height = self.height_for(self._frame, width)
        return self._wanted_height

    def take_fault(self) -> Exception | None:
        """Of what drawing failed last, since the last call."""
        fault, self._fault = self._fault, None
        return fault

    def notify_style_update(self) -> None:
        """Colors are looked up again."""
        self._tones.clear()
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        """All lines; they are made again when the pane was laid out differently, before its frame with the heading."""
        if self._frame is not None and self.size != self._lines_size:
            self._content = Region(*self._content.offset, *self.size)  # where it stands, the next `check` says
            self._make_lines(self._frame, self.size)
            self._entitle(self._frame)
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Line y in the colors of app.tcss."""
        width = self.size.width
        spans = self._lines[y] if y < len(self._lines) else ()
        segments = [Segment(text, self._style(tone)) for text, tone in spans]
        missing = width - cells(spans)
        if missing > 0:
            segments.append(Segment(" " * missing, self._style("text")))
        return Strip(segments, width)

    def _ingredients(self, frame: Frame) -> object:
        state = frame.behavior.state if frame.behavior else None
        return (
            self._spot,
            self._content,
            frame.selected,
            frame.is_frozen,
            frame.view.state,
            state,
            frame.focus,
            self._tried(lambda: self.inputs(frame), None),
        )

    def height_for(self, frame: Frame, width: int) -> int:
        """Its wanted_height, or the last one where asking for it fails."""
        return self._tried(lambda: self.wanted_height(frame, width), self._wanted_height)

    def _make_lines(self, frame: Frame, size: Size) -> None:
        width, height = self._lines_size = size
        made = self._tried(lambda: clipped(self.lines(frame, width, height), size) if width and height else [], None)
        self._lines = clipped(fault_lines(self._fault, frame, width, height), size) if made is None else made

    def _tried(self, make: Callable[[], T], otherwise: T) -> T:
        try:
            return make()
        except Exception as error:  # noqa: BLE001  # whatever it is, it must cost no more than this pane
            self._fault = error
            return otherwise

    def _patch(self, y: int, first: int, last: int) -> Patch:
        """Cells [first, last) of line y, which Textual will render again when it next paints the line itself."""
        self.renew_line(y)
        parts: list[tuple[str, Tone]] = []
        at = 0
        for text, tone in self._lines[y] if y < len(self._lines) else ():
            if part := text[max(0, first - at) : max(0, last - at)]:
                parts.append((part, tone))
            at += num_cells(text)
        if at < last:
            parts.append((" " * (last - max(at, first)), "text"))
        console = self.app.console
        text = "".join(styled(part, self._style(tone), console) for part, tone in parts)
        return Patch(self._content.x + first, self._content.y + y, text)

    def renew_line(self, y: int) -> None:
        """Textual asks for line y again when it next paints it."""
        assert self._spot is not None
        render_again(self, Region(0, self._content.y + y - self._spot[0].y, 1, 1))

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


def clipped(lines: list[Line], size: Size) -> list[Line]:
    """What of the lines has room."""
    return [clip(spans, size.width) for spans in lines[: size.height]]


def fault_lines(fault: Exception | None, frame: Frame, width: int, height: int) -> list[Line]:
    """What is shown in the place of a pane whose drawing failed."""
    key = frame.keymap.of_id("log").shown
    words = Span(f"{frame.glyphs.failed} could not be drawn: {in_words(fault)}", "bad")
    advice = Span(f"training is not affected; the log ({key}, then enter) has the traceback", "dim")
    return centered([words, advice], height, width) if height >= WRAPPED_HEIGHT else [line(words), line(advice)]


def in_words(fault: BaseException | None) -> str:
    """Kind and message of an error in one line, also where its message cannot be had."""
    summary = traceback.TracebackException(type(fault), fault, None)  # type: ignore[arg-type]  # for None, too
    summary.__notes__ = None  # they would come last
    name, _, message = list(summary.format_exception_only())[-1].strip().partition(": ")
    return safe_text(": ".join(part for part in (name.rpartition(".")[2], message) if part))


def changed_cells(old: Line, new: Line, width: int) -> tuple[int, int]:
    """First cell that differs and one past the last; the whole width where a character is not one cell wide.

    Most spans are as they were: only those from the first to the last that changed are compared cell by cell.
    """
    both = "".join([span.text for span in chain(old, new)])
    if num_cells(both) != len(both):
        return 0, width
    at = 0
    while old and new and old[0] == new[0]:
        at += len(new[0].text)
        old, new = old[1:], new[1:]
    if sum(len(span.text) for span in old) == sum(len(span.text) for span in new):
        while old and new and old[-1] == new[-1]:
            width -= len(new[-1].text)
            old, new = old[:-1], new[:-1]
    pairs = zip(_by_cell(old, width - at), _by_cell(new, width - at), strict=True)
    different = [at + cell for cell, (old, new) in enumerate(pairs) if old != new]
    return (different[0], different[-1] + 1) if different else (0, 0)


def _by_cell(spans: Line, width: int) -> list[tuple[str, Tone]]:
    text = "".join(span.text for span in spans).ljust(width)
    tones = chain.from_iterable(repeat(span.tone, len(span.text)) for span in spans)
    return list(zip(text[:width], chain(tones, repeat("text")), strict=False))
