"""A screen from its first picture to the terminal's return, whatever it shows and however it is left."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rl_tui.engine.errors import ConfigError, RlTuiError
from rl_tui.engine.session.bus import Subscription
from rl_tui.engine.session.messages import Envelope, Stop
from rl_tui.engine.session.session import Session
from rl_tui.engine.session.view import RunView
from rl_tui.engine.session.watching import Watching
from rl_tui.tui.app import TrainerApp
from rl_tui.tui.command_line.train_arguments import Look, words_of
from rl_tui.tui.drawing.themes import THEMES
from rl_tui.tui.keys.user_keys import read_user_keys
from rl_tui.tui.screens.exit_policy import ExitReason
from rl_tui.tui.state.preferences import Preferences
from rl_tui.tui.state.user_folders import config_folder, state_folder
from rl_tui.tui.terminal.signals import StopSignals
from rl_tui.tui.terminal.streams import move_output, redirect_output

if TYPE_CHECKING:
    from rl_tui.tui.runs.sources import Player, Runs

POLL_SECONDS = 0.1  # how soon a signal is acted upon
LEAVE_SECONDS = 5.0  # what a run that was asked to stop now may take for its last files
READONLY = "--readonly was given"


class Ending(Session, Protocol):
    """A session whose end can be waited for."""

    def wait(self, timeout: float) -> bool:
        """Whether the run is over, waiting at most `timeout` seconds for it."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is shown. start: called after the first picture; returns the events of the run's past if it has one, and may
    raise RlTuiError. For the rest see TrainerApp.

    is_remembered: whether what the user chooses on the screen is written down for the next time. outlives_screen: a
    screen that failed or whose terminal is gone is no reason to stop it. output_log: the file for what is printed
    beside the screen; None while there is none.
    """

    session: Ending
    start: Callable[[], Iterator[Envelope] | None]
    name: str
    view: RunView
    mail: Subscription
    clock: Callable[[], float] = time.time
    runs: Runs | None = None
    player: Player | None = None
    refuses: str = ""
    opened: str = ""
    notes: Callable[[], tuple[str, ...]] = tuple
    is_remembered: bool = True
    prioritize_ui: Callable[[float], None] | None = None
    outlives_screen: bool = False
    output_log: Callable[[], Path | None] = lambda: None
    watching: Watching | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """How a screen was left; None: it failed, and `failure` says of what. printed: what was written beside it while
    there was no log for that. next_command: the command line of rl-tui that takes this one's place, if any.
    """

    exit_reason: ExitReason | None
    failure: str
    printed: str
    next_command: tuple[str, ...] = ()

    @property
    def was_left(self) -> bool:
        """Whether somebody wanted that."""
        return self.exit_reason not in (None, "lost")


class Start:
    """Starts a subject, once. mistake: why that was refused."""

    def __init__(self, subject: Subject) -> None:
        self.has_begun = False
        self.mistake: RlTuiError | None = None
        self._subject = subject

    def __call__(self) -> Iterator[Envelope] | None:
        """The subject goes on by itself, or `mistake` says why not; returns its past, if it has one."""
        try:
            past = self._subject.start()
        except RlTuiError as error:
            self.mistake = error
            return None
        self.has_begun = True
        return past


def show(subject: Subject, look: Look, signals: StopSignals) -> Shown:
    """The screen was left, and the run is over or had LEAVE_SECONDS for it; or it goes on without one.

    signals: reach the run whenever the screen does not take them. Raises ConfigError for a wrong look, and what `start`
    raised once the terminal is as it was.
    """
    if look.theme and look.theme not in THEMES:
        raise ConfigError(f"--theme: found {look.theme}, expected one of {', '.join(THEMES)}")
    with tempfile.NamedTemporaryFile(prefix="rl-tui-", suffix=".log") as output:
        exit_reason, failure, next_command = _show(subject, look, signals, Path(output.name))
        next_command = (*next_command, *words_of(look)) if next_command else ()
        return Shown(exit_reason, failure, output.read().decode(errors="replace"), next_command)


def _show(
    subject: Subject, look: Look, signals: StopSignals, output: Path
) -> tuple[ExitReason | None, str, tuple[str, ...]]:
    start = Start(subject)
    has_log = False
    with redirect_output(output):

        def keep_output() -> None:
            nonlocal has_log
            log = None if has_log else subject.output_log()
            if log is not None:
                has_log = move_output(output, log)

        def begin() -> None:
            past = start()
            if start.mistake is not None:
                app.exit("finished")
                return
            if past is not None:
                app.recall(past)
            for stop in signals.take():
                app.exit_policy.on_signal(stop.exit_code)

        app = _app(subject, look, begin, keep_output)
        exit_reason = app.show(mouse=look.has_mouse)
        signals.take_back()
        if exit_reason in (None, "lost") and subject.outlives_screen:
            if not start.has_begun and start.mistake is None:  # the first picture failed
                start()
        else:
            _end(subject, start, app, signals, exit_reason)
    if start.mistake is not None:
        raise start.mistake
    return exit_reason, app.failure, app.exit_policy.next_command


def _end(subject: Subject, start: Start, app: TrainerApp, signals: StopSignals, exit_reason: ExitReason | None) -> None:
    if exit_reason in (None, "lost"):
        subject.session.send(Stop("checkpoint", exit_code=1))
    if start.has_begun:
        _await_end(subject.session, signals, LEAVE_SECONDS if exit_reason == "now" else None)
    if exit_reason is not None:
        app.fold()


def _app(subject: Subject, look: Look, begin: Callable[[], None], keep_output: Callable[[], None]) -> TrainerApp:
    preferences = Preferences(state_folder())
    return TrainerApp(
        subject.session,
        subject.view,
        subject.name,
        subscription=subject.mail,
        ascii=look.is_ascii,
        clock=subject.clock,
        on_shown=begin,
        on_folded=keep_output,
        runs=subject.runs,
        player=subject.player,
        refuses=subject.refuses or (READONLY if look.is_readonly else ""),
        forbids=READONLY if look.is_readonly else "",
        opened=subject.opened,
        notes=subject.notes,
        theme=look.theme or preferences.theme() or None,
        bell=look.has_bell,
        title=look.has_title,
        user_keys=read_user_keys(config_folder()),
        preferences=preferences if subject.is_remembered else None,
        prioritize_ui=subject.prioritize_ui,
        watching=subject.watching,
    )


def _await_end(session: Ending, signals: StopSignals, seconds: float | None) -> None:
    """The run is over, or was given that many seconds for it; signals still reach it."""
    waited = 0.0
    while not session.wait(POLL_SECONDS) and (seconds is None or waited < seconds):
        waited += POLL_SECONDS
        for stop in signals.take():
            session.send(stop)
