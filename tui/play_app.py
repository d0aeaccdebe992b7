"""The screen of a person who plays an environment."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from textual import events

from rl_tui.engine.session.playing import Playing
from rl_tui.tui.drawing.glyphs import ASCII
from rl_tui.tui.drawing.painting import PatchUpdate
from rl_tui.tui.keys.keymap import Key, Keymap
from rl_tui.tui.keys.play_keys import play_bindings
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.faults import traceback_of, write_output
from rl_tui.tui.runs.browsing import no_view
from rl_tui.tui.screens.turns import PlayContext, TurnScreen
from rl_tui.tui.state.choices import ScreenState
from rl_tui.tui.state.command_status import CommandStatus
from rl_tui.tui.terminal.app import TerminalApp
from rl_tui.tui.terminal.signals import IGNORED, IGNORED_NOTE, SAVING, LoopSignals
from rl_tui.tui.terminal.streams import HANGUP_CODE
from rl_tui.tui.textual_private import paint, paint_now

BEAT_SECONDS = 0.25


class PlayApp(TerminalApp[int]):
    """`show()` returns the exit code with which the person has left, or a signal has; None if the screen failed.

    playing: what is played; the caller waits for its end.
    """

    CSS_PATH = "app.tcss"
    BINDINGS = play_bindings(of_app=True)

    def __init__(
        self,
        playing: Playing[object],
        make_screen: Callable[[PlayContext], TurnScreen],
        keys: tuple[Key, ...],
        *,
        nothing_to_save: str,
        ascii: bool = False,
        theme: str | None = None,
        last_theme: str = "",
        save_theme: Callable[[str], None] | None = None,
    ) -> None:
        """keys: of the screen; those with ctrl as in play_keys. nothing_to_save: the answer to a signal that saves. For
        the rest see TerminalApp."""
        super().__init__(ascii=ascii, theme=theme, last_theme=last_theme, save_theme=save_theme)
        self._playing = playing
        self._exit_code: int | None = None  # set once the screen is being left
        self.status = CommandStatus()
        self.play = make_screen(PlayContext(self.status, self.redraw, self.themes.choose))
        self._keymap_shown, self._nothing_to_save = Keymap(keys), nothing_to_save
        self._state, self._view = ScreenState(), no_view()
        self._signals = LoopSignals(self._on_signal)

    def get_default_screen(self) -> TurnScreen:
        """The only one."""
        return self.play

    def report_failure(self, error: Exception) -> None:
        """Write the traceback to the process's output."""
        write_output(f"the screen failed\n{traceback_of(error)}")

    def on_mount(self) -> None:
        """Turns are shown as they come, and signals end the play in order."""
        self.set_class(self._glyphs is ASCII, "-ascii")
        loop = asyncio.get_running_loop()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._follow)

        self._playing.listen(wake)
        if not self.is_headless:
            self._signals.start()
        self.set_interval(BEAT_SECONDS, self._beat)
        self.call_after_refresh(self._follow)

    def on_unmount(self) -> None:
        """Install the previous signal handlers."""
        self._signals.stop()

    def on_terminal_answer(self, now: float) -> None:
        """What may be written now is."""
        self._painter.on_answer(now)
        self._painter.write()

    async def on_event(self, event: events.Event) -> None:
        """What answers a key is written first. A key that comes when the screen is closed already does nothing."""
        if isinstance(event, events.InputEvent) and not self.screen_stack:
            return
        if isinstance(event, events.Key):
            self._painter.on_key()
        await super().on_event(event)

    def redraw(self) -> None:
        """Draw what has changed."""
        if not self.screen_stack or not self.play.is_attached:
            return
        patches = self.play.draw(self._frame())
        paint(self, self.play, PatchUpdate(patches) if patches else None)
        paint_now(self.play, {pane for pane in self.play.panes if pane.take_new_heading()})

    def action_finish(self) -> None:
        """Leave: what is played ends."""
        self._leave(0)

    def action_repaint(self) -> None:
        """Write everything again."""
        self.forget_terminal()
        self.status.say("repaint: the whole screen was written again", "text")
        self.redraw()

    def action_suspend_process(self) -> None:
        """Suspend the whole process group, as the terminal itself would do."""
        if self.terminal is not None and not self.terminal.suspend(0):
            self.status.say("ctrl+z: not possible, no shell could bring the screen back")
            self.redraw()

    def _follow(self) -> None:
        """Show the newest turn, and leave when the play has ended."""
        if not self.screen_stack:
            return
        self.play.follow()
        if self._playing.has_ended:
            self._leave(0)

    def _beat(self) -> None:
        if self.terminal is not None and self.terminal.is_gone:
            self._leave(HANGUP_CODE)
            return
        self.play.beat()
        self.redraw()
        self._painter.write()

    def _leave(self, exit_code: int) -> None:
        if self._exit_code is None:
            self._exit_code = exit_code
            self._playing.finish()
            self.exit(exit_code)

    def _on_signal(self, number: int) -> None:
        if number in (SAVING, IGNORED):
            self.status.say(IGNORED_NOTE if number == IGNORED else self._nothing_to_save, "text")
            self.redraw()
        else:
            self._leave(128 + number)

    def _frame(self) -> Frame:
        return Frame(
            view=self._view,
            state=self._state,
            status=self.status,
            keymap=self._keymap_shown,
            now=time.time(),
            glyphs=self._glyphs,
            has_color=not self.no_color,
            colors=self._colors,
        )
