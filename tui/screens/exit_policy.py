"""How the screen is left: what keys and signals ask for, and what becomes of the run."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Literal, TypeAlias

from textual.app import App

from rl_tui.engine.session.messages import Stop, StopMode
from rl_tui.engine.session.session import Session
from rl_tui.tui.screens.context import Context
from rl_tui.tui.screens.leave import LeaveScreen

Departure: TypeAlias = Literal["finished", "stop", "now", "hangup", "lost"]

REPEAT_SECONDS = 1.0  # presses of ctrl+c nearer together than this are one: a held key, an impatient hand
HANGUP = 128 + signal.SIGHUP
UNSAVED_EXIT_CODE = 130  # of a run that a key stopped without saving: nobody's next command should take it for done


class WayOut:
    """Owned by the app. Knows whether the run was asked to stop, and how the screen will be left then.

    "finished": after the run's end; "stop": stopped with checkpoints, and the run has ended; "now": stop asked for, not
    waited for; "hangup": the terminal is gone, stop with checkpoints asked for; "lost": it is gone, the run goes on.
    """

    def __init__(self, app: App[Departure], session: Session, context: Context, clock: Callable[[], float]) -> None:
        self.context = context
        self.departure: Departure | None = None
        self.next_words: tuple[str, ...] = ()  # the command line that takes the place of this one
        self.stop_asked_at: float | None = None
        self._app, self._session, self._clock = app, session, clock
        self._interrupted_at = -REPEAT_SECONDS

    @property
    def is_free(self) -> bool:
        """Whether there is nothing to stop."""
        return self.context.view.is_over or self.context.player is not None

    def ask(self) -> None:
        """Leave at once when nothing runs; otherwise ask."""
        if self.is_free:
            self._app.exit("finished")
        else:
            self._show_dialog()

    def leave_for(self, words: Sequence[str]) -> None:
        """Leave, since nothing runs here, and let that command line of rl-tui take this one's place."""
        self.next_words = tuple(words)
        self._app.exit("finished")

    def interrupt(self) -> None:
        """Ask; where that is asked already, stop with checkpoints, and where they are being saved, stop now."""
        is_repeat = monotonic() - self._interrupted_at < REPEAT_SECONDS
        self._interrupted_at = monotonic()
        if self.is_free or not isinstance(self._app.screen, LeaveScreen):
            self.ask()
        elif not is_repeat:
            self.stop("checkpoint" if self.stop_asked_at is None else "now")

    def stop(self, mode: StopMode, exit_code: int = 0) -> None:
        """Ask the run to stop. "checkpoint": the screen closes once it has; "now": at once."""
        self._session.send(Stop(mode, exit_code or (UNSAVED_EXIT_CODE if mode == "now" else 0)))
        self.departure = "stop" if mode == "checkpoint" else "now"
        if self.stop_asked_at is None:
            self.stop_asked_at = self._clock()
        if mode == "now":
            self._app.exit(self.departure)
        else:
            self._show_dialog()

    def heed(self, exit_code: int) -> None:
        """A signal came: save, stop and leave; a second one does not wait for that. Call it in the app's loop.

        129 says that the terminal is gone: the screen is left at once and nothing is painted any more.
        """
        if self.departure in ("hangup", "lost"):  # both the signal and the terminal say so
            return
        if exit_code == HANGUP:
            self.departure = "hangup"
            self._session.send(Stop("checkpoint", exit_code))
            self._app.exit("hangup")
        elif self.is_free:
            self._app.exit("finished")
        else:
            self.stop("checkpoint" if self.stop_asked_at is None else "now", exit_code)

    def lose_terminal(self) -> None:
        """Nothing can be shown any more: what a hangup means; where that is ignored (nohup), the run goes on."""
        if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:  # what the loop's own handling is not
            self.departure = "lost"
            self._app.exit("lost")
        else:
            self.heed(HANGUP)

    def follow(self) -> bool:
        """Once the run is over, how to stop it is no longer the question; returns whether the screen is being left."""
        if self.departure in ("hangup", "lost"):
            return True
        if not self.context.view.is_over:
            return False
        if self.departure is not None:
            self._app.exit(self.departure)
            return True
        if isinstance(self._app.screen, LeaveScreen):
            self.context.outcomes.say("the run has ended by itself; q leaves", "text")
            self._app.screen.dismiss()
        return False

    def _show_dialog(self) -> None:
        if isinstance(self._app.screen, LeaveScreen):
            self._app.screen.show_progress()
            self.context.redraw()
        else:
            self._app.push_screen(LeaveScreen(self), callback=self._redraw)
            self._app.call_after_refresh(self.context.redraw)

    def _redraw(self, _: Any) -> None:
        self.context.redraw()
