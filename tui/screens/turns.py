"""What every screen of a person who plays has: a line above, a picture beside figures, words and keys below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.screen import Screen

from rl_tui.engine.session.playing import Playing
from rl_tui.tui.drawing.lines import Tone
from rl_tui.tui.drawing.painting import Patch, spots
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.panes.compact import TooSmallPane
from rl_tui.tui.panes.keys_line import KeysLine
from rl_tui.tui.panes.outcome import OutcomeLine
from rl_tui.tui.panes.picture import PicturePane
from rl_tui.tui.state.command_status import CommandStatus
from rl_tui.tui.textual_private import take_size_classes

LATE_BEATS = 2  # of the app, after which the screen says that the environment has not answered


@dataclass(frozen=True, slots=True)
class PlayContext:
    """What a screen gets from its app."""

    status: CommandStatus
    redraw: Callable[[], None]
    choose_theme: Callable[[], str]


class TurnScreen(Screen[None]):
    """Owns its panes. picture: of the environment; num_busy: beats in a row without its answer."""

    def __init__(self, playing: Playing[object], context: PlayContext, picture: PicturePane, unaffected: str) -> None:
        """unaffected: by a terminal that is too small."""
        super().__init__()
        self._played, self._shared, self._unaffected = playing, context, unaffected
        self.picture = picture
        self.num_busy = 0
        self._panes: list[Pane] = []

    def top_pane(self) -> Pane:
        """The line above."""
        raise NotImplementedError

    def side_pane(self) -> Pane:
        """What stands beside the picture."""
        raise NotImplementedError

    def follow(self) -> None:
        """Show what is new of the play."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        """The line above, the picture beside the figures, the message line, the line of keys."""
        take_size_classes(self)
        yield self.top_pane()
        with Horizontal(id="play"):
            yield self.picture
            yield self.side_pane()
        yield TooSmallPane(self._unaffected)
        yield OutcomeLine()
        yield KeysLine()

    def on_mount(self) -> None:
        """The panes stay the same from now on."""
        self._panes = list(self.query(Pane))

    def on_resize(self, event: events.Resize) -> None:
        """The picture has other room."""
        self.call_after_refresh(lambda: self._played.resize(self.picture.pixels_wanted))
        self.call_after_refresh(self._shared.redraw)

    @property
    def panes(self) -> Sequence[Pane]:
        """What is drawn."""
        return self._panes

    def draw(self, frame: Frame) -> list[Patch]:
        """Bring every pane up to `frame` and return what is to be painted."""
        frame, where = replace(frame, places=("playing",)), spots(self)
        return [patch for pane in self._panes for patch in pane.draw(frame, where.get(pane))]

    def beat(self) -> None:
        """Time has passed."""
        self.num_busy = self.num_busy + 1 if self._played.is_busy else 0

    @property
    def is_late(self) -> bool:
        """Whether the environment has not answered for a while."""
        return self.num_busy >= LATE_BEATS

    def action_theme(self) -> None:
        """Other colors."""
        self.say(f"theme {self._shared.choose_theme()}", "text")

    def say(self, words: str, tone: Tone = "warning") -> None:
        """In the line above the keys."""
        self._shared.status.say(words, tone)
        self._shared.redraw()
