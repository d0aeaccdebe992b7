"""A person plays a game against policies: the board or the picture, the figures, and the keys that act."""

from __future__ import annotations

from textual import events

from rl_tui.engine.session.games import GamePlaying, GameTurn
from rl_tui.engine.session.text import counted
from rl_tui.tui.drawing.lines import Tone
from rl_tui.tui.keys.game_keys import NEXT, TAKEN, choice_keys, game_bindings
from rl_tui.tui.keys.keymap import shown_keys
from rl_tui.tui.panes.base import Pane
from rl_tui.tui.panes.game import GamePane, choice_words
from rl_tui.tui.panes.game_line import GameLine
from rl_tui.tui.panes.game_picture import GamePicture
from rl_tui.tui.panes.watched import number
from rl_tui.tui.screens.turns import PlayContext, TurnScreen


class GameScreen(TurnScreen):
    """playing: what is played. run: as it was typed. turn: the newest; None before the first."""

    BINDINGS = game_bindings()

    def __init__(self, playing: GamePlaying, run: str, context: PlayContext) -> None:
        self.board = GamePicture()
        super().__init__(playing, context, self.board, "the game waits")
        self._playing = playing
        self.top, self.game = GameLine(run), GamePane()
        self.turn: GameTurn | None = None

    def top_pane(self) -> Pane:
        """What is played, and whose turn it is."""
        return self.top

    def side_pane(self) -> Pane:
        """The game in figures, and the choices."""
        return self.game

    def follow(self) -> None:
        """Show the newest turn, and say what has happened."""
        turn = self._playing.pop_turn()
        if turn is None:
            return
        before, self.turn = self.turn, turn
        self.top.turn = self.game.turn = turn
        self.top.is_waiting, self.num_busy = False, 0
        self.board.take(turn)
        self.game.has_board = self.board.shows_board
        self._say_what_happened(before, turn)
        self._shared.redraw()

    def beat(self) -> None:
        """Time has passed."""
        super().beat()
        self.top.is_waiting = self.is_late

    def on_key(self, event: events.Key) -> None:
        """A key of a choice acts; once a game is over, some begin the next one."""
        turn = self.turn
        if turn is None or event.key in TAKEN:
            return
        if turn.is_over or turn.scene.state == "failed":
            if event.key in NEXT:
                self.action_begin()
            return
        key = event.character if event.character is not None and event.character.isalnum() else event.key
        index = next((index for index, keys in enumerate(choice_keys(turn.choices)) if key in keys), None)
        if index is None:
            self.say(f"{shown_keys((key,))}: no choice has this key")
        elif not turn.is_allowed[index]:
            self.say(f"{choice_words(turn, index)} cannot be chosen now")
        else:
            self._playing.act(index)

    def action_begin(self) -> None:
        """Another game begins."""
        turn = self.turn
        if turn is not None and not turn.is_over and turn.scene.step and turn.scene.state != "failed":
            self.say(f"game {turn.scene.episode:,} does not count: another one begins", "text")
        self._playing.begin()

    def action_hint(self) -> None:
        """What the policy would do."""
        if self.turn is None or self.turn.is_over or self.turn.scene.state == "failed":
            self.say("hint: it is not your turn")
        else:
            self._playing.advise()

    def action_view(self) -> None:
        """The board, or the environment's picture."""
        if self.turn is None or self.turn.board is None:
            self.say("view: there is only one")
            return
        self.board.prefers_board = not self.board.prefers_board
        self.board.choose()
        self.game.has_board = self.board.shows_board
        self.say(f"view: {'the board' if self.board.prefers_board else 'the picture of the environment'}", "text")

    def _say_what_happened(self, before: GameTurn | None, turn: GameTurn) -> None:
        scene, status = turn.scene, self._shared.status
        if scene.state == "failed":
            status.say("the environment has failed, and the game under way is lost", "bad")
        elif turn.is_over and (before is None or not before.is_over):
            tones: dict[str | None, Tone] = {"won": "good", "lost": "bad", "drawn": "warning"}
            verdict = f"you have {turn.result}" if turn.result in ("won", "lost") else "it is a draw"
            words = verdict if turn.result else f"return {number(scene.total)}"
            moves = counted(scene.step, "step" if turn.board is None else "move")
            status.say(f"game {scene.episode:,}: {words} after {moves}", tones.get(turn.result, "text"))
        elif turn.advice is not None and (before is None or before.advice is None):
            status.say(f"hint: {choice_words(turn, turn.advice.choice)}", "text")
