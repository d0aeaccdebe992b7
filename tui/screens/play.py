"""A person plays: the picture, the figures and choices, and the keys that act."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.screen import Screen

from rl_tui.engine.session.playing import Recorded, Turn
from rl_tui.engine.session.text import counted, safe_text
from rl_tui.tui.drawing.lines import Tone
from rl_tui.tui.drawing.painting import Patch, spots
from rl_tui.tui.keys.keymap import shown_keys
from rl_tui.tui.keys.play_keys import TAKEN, choice_keys, play_bindings
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.panes.compact import TooSmallPane
from rl_tui.tui.panes.keys_line import KeysLine
from rl_tui.tui.panes.outcome import OutcomeLine
from rl_tui.tui.panes.picture import PicturePane
from rl_tui.tui.panes.play_line import PlayLine
from rl_tui.tui.panes.played import PlayedPane
from rl_tui.tui.panes.watched import number
from rl_tui.tui.state.command_status import CommandStatus
from rl_tui.tui.textual_private import take_size_classes

LATE_BEATS = 2  # of the app, after which the screen says that the environment has not answered


@dataclass(frozen=True, slots=True)
class PlayContext:
    """What the screen gets from its app. env, file: as they were typed. num_episodes: see PlayedPane."""

    env: str
    file: str
    num_episodes: int | None
    status: CommandStatus
    redraw: Callable[[], None]
    choose_theme: Callable[[], str]


class PlayScreen(Screen[None]):
    """Owns its panes. playing: what is played. turn: the newest; None before the first."""

    BINDINGS = play_bindings(of_app=False)

    def __init__(self, playing: Recorded, context: PlayContext) -> None:
        super().__init__()
        self._playing, self._shared = playing, context
        self.top, self.picture = PlayLine(context.env, context.file), PicturePane("Play")
        self.played = PlayedPane(context.num_episodes)
        self.turn: Turn | None = None
        self._num_busy = 0  # beats in a row
        self._panes: list[Pane] = []

    def compose(self) -> ComposeResult:
        """The line above, the picture beside the figures, the message line, the line of keys."""
        take_size_classes(self)
        yield self.top
        with Horizontal(id="play"):
            yield self.picture
            yield self.played
        yield TooSmallPane("nothing is lost")
        yield OutcomeLine()
        yield KeysLine()

    def on_mount(self) -> None:
        """The panes stay the same from now on."""
        self._panes = list(self.query(Pane))

    def on_resize(self, event: events.Resize) -> None:
        """The picture has other room."""
        self.call_after_refresh(lambda: self._playing.resize(self.picture.pixels_wanted))
        self.call_after_refresh(self._shared.redraw)

    @property
    def panes(self) -> Sequence[Pane]:
        """What is drawn."""
        return self._panes

    def draw(self, frame: Frame) -> list[Patch]:
        """Bring every pane up to `frame` and return what is to be painted."""
        frame, where = replace(frame, places=("playing",)), spots(self)
        return [patch for pane in self._panes for patch in pane.draw(frame, where.get(pane))]

    def take(self, turn: Turn) -> None:
        """Show it, and say what has changed among the complete episodes."""
        before, self.turn = self.turn, turn
        self.top.turn = self.played.turn = turn
        self.top.is_waiting, self._num_busy = False, 0
        has_failed = turn.scene.state == "failed"
        self.picture.scene = None if has_failed else turn.scene
        if has_failed:
            self.picture.words = safe_text(turn.scene.reason)
        if before is not None:
            self._say_what_changed(before, turn)

    def beat(self) -> None:
        """Time has passed."""
        self._num_busy = self._num_busy + 1 if self._playing.is_busy else 0
        self.top.is_waiting = self._num_busy >= LATE_BEATS

    def on_key(self, event: events.Key) -> None:
        """A key of a choice acts."""
        turn = self.turn
        if turn is None or turn.scene.state == "failed" or event.key in TAKEN:
            return
        key = event.character if event.character is not None and event.character.isalnum() else event.key
        index = next((index for index, keys in enumerate(choice_keys(turn.choices)) if key in keys), None)
        if index is None:
            self._say(f"{shown_keys((key,))}: no action has this key")
        elif not turn.is_allowed[index]:
            self._say(f"{safe_text(turn.choices[index]) or f'action {index}'}: the environment does not allow it now")
        else:
            self._playing.act(index)

    def action_discard(self) -> None:
        """Another episode begins."""
        num_steps = 0 if self.turn is None else self.turn.scene.step
        words = f"the episode is discarded after {counted(num_steps, 'step')}: " if num_steps else ""
        self._shared.status.say(f"{words}another one begins", "text")
        self._playing.discard()

    def action_drop(self) -> None:
        """The newest complete episode is not kept."""
        if self.turn is None or not self.turn.scene.returns:
            self._say("drop last: there is no complete episode")
        else:
            self._playing.drop_last()

    def action_theme(self) -> None:
        """Other colors."""
        self._say(f"theme {self._shared.choose_theme()}", "text")

    def _say(self, words: str, tone: Tone = "warning") -> None:
        self._shared.status.say(words, tone)
        self._shared.redraw()

    def _say_what_changed(self, before: Turn, turn: Turn) -> None:
        old, new = before.scene, turn.scene
        status = self._shared.status
        if new.state == "failed" and old.state != "failed":
            status.say("the environment has failed, and the episode under way is lost", "bad")
        elif len(new.returns) > len(old.returns):
            words = f"episode {len(new.returns)} is complete: return {number(new.returns[-1])}"
            status.say(f"{words} in {counted(new.lengths[-1], 'step')}", "good")
        elif len(new.returns) < len(old.returns):
            words = f"episode {len(old.returns)} is dropped: return {number(old.returns[-1])}"
            status.say(f"{words} in {counted(old.lengths[-1], 'step')}", "text")
