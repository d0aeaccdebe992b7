"""A screen from its first picture to the terminal's return, whatever it shows and however it is left."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from engine.errors import ConfigError, RlTuiError
from engine.session.bus import Subscription
from engine.session.messages import Envelope, Stop
from engine.session.session import Session
from engine.session.view import RunView
from tui.app import TrainerApp
from tui.arguments import Look
from tui.remembered import Memory
from tui.signals import StopSignals
from tui.terminal import redirect_output
from tui.themes import THEMES
from tui.user_folders import config_folder, state_folder
from tui.user_keys import read_user_keys
from tui.way_out import Departure

if TYPE_CHECKING:
    from tui.context import Player, Runs

POLL_SECONDS = 0.1  # how soon a signal is acted upon
LEAVE_SECONDS = 5.0  # what a run that was told to stop now may take for its last files
READONLY = "--readonly was given"


class Ending(Session, Protocol):
    """A session whose end can be waited for."""

    def wait(self, timeout: float) -> bool:
        """Whether the run is over, waiting at most `timeout` seconds for it."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is shown. start: called after the first picture; returns the events of the run's past if it has one, and may
    raise RlTuiError. For the rest see TrainerApp.

    is_remembered: whether what the user chooses on the screen is written down for the next time.
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
    notes: Callable[[], tuple[str, ...]] = tuple
    is_remembered: bool = True
    give_way: Callable[[float], None] | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """How a screen was left; None: it failed, and `failure` says of what. printed: what the process wrote beside it."""

    departure: Departure | None
    failure: str
    printed: str


def show(subject: Subject, look: Look) -> Shown:
    """The screen was left, and the run is over or had LEAVE_SECONDS for it.

    Raises ConfigError for a wrong look, and what `start` raised once the terminal is as it was.
    """
    if look.theme and look.theme not in THEMES:
        raise ConfigError(f"--theme: found {look.theme}, expected one of {', '.join(THEMES)}")
    with tempfile.NamedTemporaryFile(prefix="rl-tui-", suffix=".log") as output:
        departure, failure = _show(subject, look, Path(output.name))
        return Shown(departure, failure, output.read().decode(errors="replace"))


def _show(subject: Subject, look: Look, output: Path) -> tuple[Departure | None, str]:
    has_begun = False
    mistake: RlTuiError | None = None
    with StopSignals() as signals, redirect_output(output):

        def begin() -> None:
            nonlocal has_begun, mistake
            try:
                past = subject.start()
            except RlTuiError as error:
                mistake = error
                app.exit("finished")
                return
            has_begun = True
            if past is not None:
                app.recall(past)
            for stop in signals.take():
                app.way_out.heed(stop.exit_code)

        app = _app(subject, look, begin)
        departure = app.run(mouse=look.has_mouse)
        if departure is None:  # the screen itself failed
            subject.session.send(Stop("checkpoint", exit_code=1))
        if has_begun:
            _await_end(subject.session, signals, LEAVE_SECONDS if departure == "now" else None)
        app.fold()
    if mistake is not None:
        raise mistake
    return departure, app.failure


def _app(subject: Subject, look: Look, begin: Callable[[], None]) -> TrainerApp:
    memory = Memory(state_folder())
    return TrainerApp(
        subject.session,
        subject.view,
        subject.name,
        subscription=subject.mail,
        ascii=look.is_ascii,
        clock=subject.clock,
        on_shown=begin,
        runs=subject.runs,
        player=subject.player,
        refuses=subject.refuses or (READONLY if look.is_readonly else ""),
        notes=subject.notes,
        theme=look.theme or memory.theme() or None,
        bell=look.has_bell,
        user_keys=read_user_keys(config_folder()),
        memory=memory if subject.is_remembered else None,
        give_way=subject.give_way,
    )


def _await_end(session: Ending, signals: StopSignals, seconds: float | None) -> None:
    """The run is over, or was given that many seconds for it; signals still reach it."""
    waited = 0.0
    while not session.wait(POLL_SECONDS) and (seconds is None or waited < seconds):
        waited += POLL_SECONDS
        for stop in signals.take():
            session.send(stop)
