"""What a game looks like: its board, or the environment's own picture."""

from __future__ import annotations

from rl_tui.engine.session.games import GameTurn
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.lines import Line
from rl_tui.tui.keys.game_keys import choice_keys
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.board import BoardStyle, board_lines
from rl_tui.tui.panes.picture import PicturePane, in_the_middle


class GamePicture(PicturePane):
    """turn: what it shows. prefers_board: where there is both."""

    def __init__(self) -> None:
        super().__init__("Play")
        self.turn: GameTurn | None = None
        self.prefers_board = True

    @property
    def shows_board(self) -> bool:
        """Rather than the environment's picture."""
        return self.turn is not None and self.turn.board is not None and self.prefers_board

    def take(self, turn: GameTurn) -> None:
        """Show it."""
        self.turn = turn
        self.choose()

    def choose(self) -> None:
        """Show the board or the picture of the newest turn."""
        turn = self.turn
        if turn is None:
            return
        has_failed = turn.scene.state == "failed"
        self.words = safe_text(turn.scene.reason) if has_failed else ""
        self.scene = None if has_failed or self.shows_board else turn.scene

    def heading(self, frame: Frame) -> str:
        """What is played."""
        behavior = "" if self.turn is None else f" {frame.glyphs.dot} {safe_text(self.turn.scene.behavior)}"
        return f"{self._title}{behavior}"

    def inputs(self, frame: Frame) -> object:
        """The turn."""
        return self.turn, self.prefers_board, super().inputs(frame)

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The board, where it is shown and there is room for it."""
        turn = self.turn
        if turn is None or turn.board is None or not self.shows_board or turn.scene.state == "failed":
            return super().lines(frame, width, height)
        style = BoardStyle(
            tuple(own[-1] if own else "" for own in choice_keys(turn.choices)),
            turn.is_allowed,
            None if turn.advice is None else turn.advice.choice,
            turn.seat.number == 1,
            frame.glyphs,
        )
        board = board_lines(turn.board, style, width, height)
        return in_the_middle(board, width, height)
