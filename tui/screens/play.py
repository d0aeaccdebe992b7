"""A person plays and is recorded: the picture, the figures and choices, and the keys that act."""

from __future__ import annotations

from textual import events

from rl_tui.engine.session.playing import Recorded, Turn
from rl_tui.engine.session.text import counted, safe_text
from rl_tui.tui.keys.keymap import shown_keys
from rl_tui.tui.keys.play_keys import TAKEN, choice_keys, play_bindings
from rl_tui.tui.panes.base import Pane
from rl_tui.tui.panes.picture import PicturePane
from rl_tui.tui.panes.play_line import PlayLine
from rl_tui.tui.panes.played import PlayedPane
from rl_tui.tui.panes.watched import number
from rl_tui.tui.screens.turns import PlayContext, TurnScreen


class PlayScreen(TurnScreen):
    """playing: what is played. env, file: as they were typed. num_episodes: see PlayedPane. turn: the newest; None
    before the first."""

    BINDINGS = play_bindings(of_app=False)

    def __init__(self, playing: Recorded, env: str, file: str, num_episodes: int | None, context: PlayContext) -> None:
        super().__init__(playing, context, PicturePane("Play"), "nothing is lost")
        self._playing = playing
        self.top, self.played = PlayLine(env, file), PlayedPane(num_episodes)
        self.turn: Turn | None = None

    def top_pane(self) -> Pane:
        """What is played, and where to."""
        return self.top

    def side_pane(self) -> Pane:
        """The episode and the choices."""
        return self.played

    def follow(self) -> None:
        """Show the newest turn, and say what has changed among the complete episodes."""
        turn = self._playing.pop_turn()
        if turn is None:
            return
        before, self.turn = self.turn, turn
        self.top.turn = self.played.turn = turn
        self.top.is_waiting, self.num_busy = False, 0
        has_failed = turn.scene.state == "failed"
        self.picture.scene = None if has_failed else turn.scene
        if has_failed:
            self.picture.words = safe_text(turn.scene.reason)
        if before is not None:
            self._say_what_changed(before, turn)
        self._shared.redraw()

    def beat(self) -> None:
        """Time has passed."""
        super().beat()
        self.top.is_waiting = self.is_late

    def on_key(self, event: events.Key) -> None:
        """A key of a choice acts."""
        turn = self.turn
        if turn is None or turn.scene.state == "failed" or event.key in TAKEN:
            return
        key = event.character if event.character is not None and event.character.isalnum() else event.key
        index = next((index for index, keys in enumerate(choice_keys(turn.choices)) if key in keys), None)
        if index is None:
            self.say(f"{shown_keys((key,))}: no action has this key")
        elif not turn.is_allowed[index]:
            self.say(f"{safe_text(turn.choices[index]) or f'action {index}'}: the environment does not allow it now")
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
            self.say("drop last: there is no complete episode")
        else:
            self._playing.drop_last()

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
