"""How the screen is left on keys and signals, and whether the run then stops."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Literal, TypeAlias

from textual.app import App

from rl_tui.engine.process.hangups import Hangups
from rl_tui.engine.session.messages import Stop, StopMode
from rl_tui.engine.session.session import Session
from rl_tui.tui.screens.context import Context
from rl_tui.tui.screens.leave import LeaveScreen

ExitReason: TypeAlias = Literal["finished", "stop", "now", "hangup", "lost", "detached"]

REPEAT_SECONDS = 1.0  # presses of ctrl+c nearer together than this are one: a held key, or an impatient user
HANGUP = 128 + signal.SIGHUP
UNSAVED_EXIT_CODE = 130  # of a run that a key stopped without saving, so that a script does not take it for finished


class ExitPolicy:
    """Owned by the app. Knows whether the run was requested to stop, and why the screen will be left then.

    "finished": after the run's end; "stop": stopped with checkpoints, and the run has ended; "now": stopping, not
    waited for; "hangup": the terminal is gone, stopping with checkpoints; "lost": it is gone, the run continues;
    "detached": the run continues without the screen, because the user has left it so.
    """

    def __init__(
        self, app: App[ExitReason], session: Session, context: Context, clock: Callable[[], float], hangups: Hangups
    ) -> None:
        self.context = context
        self.exit_reason: ExitReason | None = None
        self.next_command: tuple[str, ...] = ()  # the command line that replaces this one
        self.stop_requested_at: float | None = None
        self._app, self._session, self._clock = app, session, clock
        self._hangups = hangups
        self._interrupted_at = -REPEAT_SECONDS

    @property
    def is_free(self) -> bool:
        """Whether there is nothing to stop."""
        return self.context.view.is_over or self.context.player is not None

    def request_exit(self) -> None:
        """Leave at once when nothing runs; otherwise ask."""
        if self.is_free:
            self._app.exit("finished")
        elif self.context.detaches:
            self._app.exit("detached")
        else:
            self._show_dialog()

    def leave_running(self) -> None:
        """Leave the screen, and let the run go on; or say why not."""
        if self.context.view.run is None:
            self.context.status.say("leave it running: not possible yet, the engine is starting")
            self.context.redraw()
        else:
            self._app.exit("detached")

    def exit_for(self, words: Sequence[str]) -> None:
        """Leave, since nothing runs here, and let that command line of rl-tui replace this one."""
        self.next_command = tuple(words)
        self._app.exit("finished")

    def interrupt(self) -> None:
        """Ask; when the dialog is open, stop with checkpoints; while they are being saved, stop now."""
        is_repeat = monotonic() - self._interrupted_at < REPEAT_SECONDS
        self._interrupted_at = monotonic()
        if self.is_free or (self.context.detaches and self.context.controls.refuses):
            self.request_exit()
        elif not isinstance(self._app.screen, LeaveScreen):
            self._show_dialog()
        elif not is_repeat:
            self.stop("checkpoint" if self.stop_requested_at is None else "now")

    def stop(self, mode: StopMode, exit_code: int = 0) -> None:
        """Stop the run. "checkpoint": the screen closes once it has stopped; "now": at once."""
        self._session.send(Stop(mode, exit_code or (UNSAVED_EXIT_CODE if mode == "now" else 0)))
        self.exit_reason = "stop" if mode == "checkpoint" else "now"
        if self.stop_requested_at is None:
            self.stop_requested_at = self._clock()
        if mode == "now":
            self._app.exit(self.exit_reason)
        else:
            self._show_dialog()

    def on_signal(self, exit_code: int) -> None:
        """Save, stop and leave; a second signal does not wait for that. Call it in the app's loop.

        129 means that the terminal is gone: the screen is left at once, and nothing more is painted.
        """
        if self.exit_reason in ("hangup", "lost"):  # reported by both the signal and the terminal
            return
        if self.context.detaches and not self.is_free:
            self._app.exit("detached")
            return
        if exit_code == HANGUP and self._hangups.is_survived():
            self._lose_terminal()
        elif exit_code == HANGUP:
            self.exit_reason = "hangup"
            self._session.send(Stop("checkpoint", exit_code))
            self._app.exit("hangup")
        elif self.is_free:
            self._app.exit("finished")
        else:
            self.stop("checkpoint" if self.stop_requested_at is None else "now", exit_code)

    def on_terminal_lost(self) -> None:
        """Treat it as a hangup; where hangups are ignored (nohup), the run continues."""
        if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:  # never so while the loop handles it
            self._lose_terminal()
        else:
            self.on_signal(HANGUP)

    def _lose_terminal(self) -> None:
        """The screen is left, and the run continues."""
        self.exit_reason = "lost"
        self._app.exit("lost")

    def update(self) -> bool:
        """Close the dialog once the run is over; returns whether the screen is being left."""
        if self.exit_reason in ("hangup", "lost"):
            return True
        if not self.context.view.is_over:
            return False
        if self.exit_reason is not None:
            self._app.exit(self.exit_reason)
            return True
        if isinstance(self._app.screen, LeaveScreen):
            self.context.status.say("the run has ended by itself; q leaves", "text")
            self._app.screen.dismiss()
        return False

    def _show_dialog(self) -> None:
        if isinstance(self._app.screen, LeaveScreen):
            self._app.screen.show_progress()
            self.context.redraw()
        else:
            dialog = LeaveScreen(self)
            self._app.push_screen(dialog, callback=self._redraw)
            dialog.call_after_refresh(self.context.redraw)

    def _redraw(self, _: Any) -> None:
        self.context.redraw()
