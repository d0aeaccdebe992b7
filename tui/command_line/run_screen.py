"""Run a screen, from its first picture until the terminal is restored, whatever it shows."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rl_tui.engine.errors import ConfigError, RlTuiError
from rl_tui.engine.process.hangups import ENDING, Hangups
from rl_tui.engine.process.vital_signs import SIGNS
from rl_tui.engine.session.messages import Envelope, Stop
from rl_tui.engine.session.session import Session
from rl_tui.tui.app import TrainerApp
from rl_tui.tui.command_line.train_arguments import ScreenOptions, screen_flags
from rl_tui.tui.drawing.themes import THEMES
from rl_tui.tui.keys.user_keys import read_user_keys
from rl_tui.tui.screens.exit_policy import ExitReason
from rl_tui.tui.state.preferences import Preferences
from rl_tui.tui.state.user_folders import config_folder, state_folder
from rl_tui.tui.terminal.signals import RunSignals
from rl_tui.tui.terminal.streams import move_output, redirect_output

if TYPE_CHECKING:
    from rl_tui.tui.runs.sources import Player, Runs

POLL_SECONDS = 0.1  # how often signals are handled
GOES_ON = (None, "lost", "detached")  # a run that outlives its screen, which was left so
LEAVE_SECONDS = 5.0  # for a run that stops without saving to close its files
READONLY = "--readonly was given"


@dataclass(frozen=True, slots=True)
class ScreenSubject:
    """What is shown. start: called after the first picture; returns the earlier events of a resumed run, and may raise
    RlTuiError. For the rest see TrainerApp.

    saves_preferences: whether the user's choices are saved. outlives_screen: whether it continues when the screen fails
    or the terminal is gone. output_log: the file for what is printed meanwhile; None while there is none.
    """

    session: Session
    start: Callable[[], Iterator[Envelope] | None]
    name: str
    clock: Callable[[], float] = time.time
    runs: Runs | None = None
    player: Player | None = None
    refuses: str = ""
    opened: str = ""
    notes: Callable[[], tuple[str, ...]] = tuple
    saves_preferences: bool = True
    outlives_screen: bool = False
    output_log: Callable[[], Path | None] = lambda: None
    is_made_up: bool = False
    detaches: bool = False
    hangups: Hangups = ENDING
    why_not_leave: Callable[[], str] = str
    screen_name: str = ""
    said: str = ""


@dataclass(frozen=True, slots=True)
class ScreenResult:
    """exit_reason: None if the screen failed; failure: of what. printed: output for which there was no log yet.
    next_command: the command line of rl-tui that replaces this one, if any.
    """

    exit_reason: ExitReason | None
    failure: str
    printed: str
    next_command: tuple[str, ...] = ()

    @property
    def was_left(self) -> bool:
        """Whether the run ends with it, where both are in this process."""
        return self.exit_reason not in GOES_ON


class Start:
    """Starts a subject, once. error: why it could not be started."""

    def __init__(self, subject: ScreenSubject) -> None:
        self.has_started = False
        self.error: RlTuiError | None = None
        self._subject = subject

    def __call__(self) -> Iterator[Envelope] | None:
        """The subject runs, or `error` is set; returns the events before, if there are any."""
        try:
            past = self._subject.start()
        except RlTuiError as error:
            self.error = error
            return None
        self.has_started = True
        return past


def run_screen(subject: ScreenSubject, options: ScreenOptions, signals: RunSignals) -> ScreenResult:
    """The screen was left, and the run is over or had LEAVE_SECONDS to end; or it continues without a screen.

    signals: for the run, while the screen does not receive them. Raises ConfigError for bad options, and what `start`
    raised, after the terminal was restored.
    """
    if options.theme and options.theme not in THEMES:
        raise ConfigError(f"--theme: must be one of {', '.join(THEMES)}, got {options.theme}")
    with tempfile.NamedTemporaryFile(prefix="rl-tui-", suffix=".log") as output:
        exit_reason, failure, next_command = _run(subject, options, signals, Path(output.name))
        next_command = (*next_command, *screen_flags(options)) if next_command else ()
        return ScreenResult(exit_reason, failure, output.read().decode(errors="replace"), next_command)


def _run(
    subject: ScreenSubject, options: ScreenOptions, signals: RunSignals, output: Path
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
            if start.error is not None:
                app.exit("finished")
                return
            if past is not None:
                app.load_history(past)
            for command in signals.pop_commands():
                app.obey(command)

        app = _app(subject, options, begin, keep_output)
        exit_reason = app.show(mouse=options.has_mouse)
        signals.reinstall()
        if exit_reason in GOES_ON and subject.outlives_screen:
            if not start.has_started and start.error is None:  # the first picture failed
                start()
        else:
            _end(subject, start, app, signals, exit_reason)
    if start.error is not None:
        raise start.error
    return exit_reason, app.failure, app.exit_policy.next_command


def _end(
    subject: ScreenSubject, start: Start, app: TrainerApp, signals: RunSignals, exit_reason: ExitReason | None
) -> None:
    if subject.detaches and exit_reason not in ("stop", "now"):
        return  # it goes on in its process
    if exit_reason in (None, "lost"):
        subject.session.send(Stop("checkpoint", exit_code=1))
    if start.has_started:
        _await_end(subject.session, signals, LEAVE_SECONDS if exit_reason == "now" else None)
    if exit_reason is not None:
        app.fold()


def _app(
    subject: ScreenSubject, options: ScreenOptions, begin: Callable[[], None], keep_output: Callable[[], None]
) -> TrainerApp:
    preferences = Preferences(state_folder())
    return TrainerApp(
        subject.session,
        subject.name,
        ascii=options.is_ascii,
        clock=subject.clock,
        on_shown=begin,
        on_folded=keep_output,
        runs=subject.runs,
        player=subject.player,
        refuses=subject.refuses or (READONLY if options.is_readonly else ""),
        forbids=READONLY if options.is_readonly else "",
        opened=subject.opened,
        notes=subject.notes,
        theme=options.theme or preferences.theme() or None,
        bell=options.has_bell,
        title=options.has_title,
        user_keys=read_user_keys(config_folder()),
        preferences=preferences if subject.saves_preferences else None,
        is_made_up=subject.is_made_up,
        detaches=subject.detaches,
        hangups=subject.hangups,
        why_not_leave=subject.why_not_leave,
        screen_name=subject.screen_name,
        said=subject.said,
    )


def _await_end(session: Session, signals: RunSignals, seconds: float | None) -> None:
    """The run is over, or had that many seconds to end; signals still reach it."""
    waited = 0.0
    while not session.wait(POLL_SECONDS) and (seconds is None or waited < seconds):
        waited += POLL_SECONDS
        SIGNS.beat("main")
        for command in signals.pop_commands():
            session.send(command)
