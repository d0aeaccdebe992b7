"""The screen of a run: it polls events, folds them and draws; keys become commands."""

from __future__ import annotations

import asyncio
import copy
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Literal, TypeAlias, get_args

from textual.app import App
from textual.filter import Monochrome, NoColor
from textual.screen import Screen
from textual.timer import Timer

from engine.session.bus import Subscription
from engine.session.messages import Command, Stop, StopMode
from engine.session.session import Session
from engine.session.view import RunView
from tui.glyphs import ASCII, UNICODE
from tui.keymap import bindings
from tui.lines import Tone
from tui.pacing import Pace
from tui.painting import PiecesUpdate, exact_console
from tui.panes.base import Frame, is_over
from tui.screens.leave import LeaveScreen
from tui.screens.overview import OverviewScreen

Departure: TypeAlias = Literal["finished", "stop", "now", "hangup"]
Disposition: TypeAlias = "Callable[[int, FrameType | None], object] | int | None"

LOCAL_SECONDS, REMOTE_SECONDS = 0.25, 0.5  # from one look at the events to the next, and at least between drawings
OUTCOME_SECONDS = 0.1  # the same while a key waits for its outcome
INTERRUPT_SECONDS = 2.0  # presses of ctrl+c nearer together than this count as one request
SWITCH_SECONDS = 0.001  # with Python-heavy engine threads, the default 5 ms makes a key take 5 times as long to show
SIGNALS: Mapping[signal.Signals, int] = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


class TrainerApp(App[Departure]):
    """Lives in the main thread. Owns the view, the subscription and the way out; `run()` returns how the user left.

    "finished": after the run's end; "stop": stopped with checkpoints, and the run has ended; "now": stop asked for, not
    waited for; "hangup": the terminal is gone, stop with checkpoints asked for. Waiting for the run is the caller's.
    """

    CSS_PATH = "app.tcss"
    BINDINGS = list(bindings("anywhere"))
    COMPONENT_CLASSES = {f"tone--{tone}" for tone in get_args(Tone)}  # here once: each costs a pane 0.6 ms at its start
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (40, "-compact"), (60, "-narrow"), (100, "-normal"), (160, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (10, "-low"), (15, "-squat"), (22, "-short"), (30, "-tall"), (48, "-high")]

    def __init__(
        self,
        session: Session,
        view: RunView,
        config_name: str = "",
        *,
        subscription: Subscription | None = None,
        ascii: bool = False,  # the word of the command line
        clock: Callable[[], float] = time.time,
        on_shown: Callable[[], None] | None = None,
    ) -> None:
        """`view` may hold behaviors already: they are shown until the engine tells more. It is changed from now on.

        on_shown: called once in the app's loop after the first picture, e.g. to start the run.
        subscription: one opened before the run was started, so that no event is missed; else one is opened at mount.
        """
        super().__init__()
        self.view = view
        self.stop_asked_at: float | None = None
        self.overview = OverviewScreen(self)
        self._session = session
        self._subscription, self._owns_subscription = subscription, subscription is None
        self._frozen: RunView | None = None
        self._departure: Departure | None = None
        self._interrupts: list[float] = []
        self._former_signals: dict[signal.Signals, Disposition] = {}
        self._former_switch_seconds = sys.getswitchinterval()
        self._config_name, self._clock, self._on_shown = config_name, clock, on_shown
        self._beat_seconds = REMOTE_SECONDS if "SSH_CONNECTION" in os.environ else LOCAL_SECONDS
        self._pace = Pace(self._beat_seconds)
        self._follow_up: Timer | None = None
        self._drawn_states: object = None
        self._glyphs = ASCII if ascii or not _speaks_unicode() else UNICODE
        self.animation_level = "none"
        self.console = exact_console(self.console)
        if self.no_color:  # Textual turns colors to grays; NO_COLOR asks for none at all
            kept = [each for each in self._filters if not isinstance(each, Monochrome)]
            self._filters = [*kept, NoColor()]

    def get_default_screen(self) -> Screen[None]:
        """The overview."""
        return self.overview

    def on_mount(self) -> None:
        """Events are polled, and signals end the run in order."""
        self.set_class(self._glyphs is ASCII, "-ascii")
        sys.setswitchinterval(SWITCH_SECONDS)
        if self._subscription is None:
            self._subscription = self._session.subscribe()
        if not self.is_headless:
            loop = asyncio.get_running_loop()
            for number, exit_code in SIGNALS.items():
                self._former_signals[number] = signal.getsignal(number)
                loop.add_signal_handler(number, self.request_stop, exit_code)
        self.set_interval(self._beat_seconds, self._beat)
        self._follow_up = self.set_interval(OUTCOME_SECONDS, self._beat, pause=True)
        self.call_after_refresh(self.tick)
        if self._on_shown is not None:
            self.call_after_refresh(self._on_shown)

    def on_unmount(self) -> None:
        """Signals mean again what they meant before."""
        sys.setswitchinterval(self._former_switch_seconds)
        for number, former in self._former_signals.items():
            asyncio.get_running_loop().remove_signal_handler(number)
            signal.signal(number, former)
        self._former_signals.clear()
        if self._subscription is not None and self._owns_subscription:
            self._subscription.close()

    def tick(self) -> None:
        """Fold what came and draw it, unless the terminal has not taken the last picture yet."""
        self._follow(must_draw=True)

    def _beat(self) -> None:
        """Fold what came; draw when it is time, or at once what the user should not wait for."""
        self._follow(must_draw=False)

    def _follow(self, must_draw: bool) -> None:
        if self._departure == "hangup":
            return
        has_news = self.fold()
        if self._follow_up is not None and not self.overview.outcome.is_waiting:
            self._follow_up.pause()
        if is_over(self.view):
            self._end_asking()
        if self._departure is not None and is_over(self.view):
            self.exit(self._departure)
        elif (must_draw or has_news or self._pace.is_due(time.monotonic())) and not self._terminal_is_behind():
            self.redraw()

    def _end_asking(self) -> None:
        """The run is over: how to stop it is no longer the question."""
        if isinstance(self.screen, LeaveScreen) and self._departure is None:
            self.overview.outcome.notice("the run has ended by itself; q leaves", "text")
            self.screen.dismiss()

    def fold(self) -> bool:
        """Bring the view up to the newest event; returns whether a command has ended or a state has changed."""
        if self._subscription is not None:
            for envelope in self._subscription.take():
                self.view.apply(envelope)
        has_settled = self.overview.outcome.settle(self.view)
        return has_settled or self._states() != self._drawn_states

    def _states(self) -> object:
        return self.view.state, [behavior.state for behavior in self.view.behaviors.values()]

    def redraw(self) -> None:
        """Draw the screen on top, now; what lies behind a dialog stands still, for it would be painted as a whole."""
        self._drawn_states = self._states()
        top = self.screen
        if isinstance(top, OverviewScreen | LeaveScreen):
            pieces = top.draw(self._frame())
            if self._batch_count:  # Textual holds the picture back, and paints all of it later
                top.refresh()
            elif pieces:
                self._display(top, PiecesUpdate(pieces))  # type: ignore[arg-type]  # its own updates are none of Rich's
        self._pace.drew(time.monotonic(), time.thread_time())

    def _frame(self) -> Frame:
        return Frame(
            view=self._frozen or self.view,
            selected=self.overview.selected,
            now=self._clock(),
            glyphs=self._glyphs,
            config_name=self._config_name,
            is_frozen=self._frozen is not None,
            has_color=not self.no_color,
        )

    def _terminal_is_behind(self) -> bool:
        """Whether frames wait in Textual's writer; False where a later version keeps them elsewhere."""
        writer = getattr(self._driver, "_writer_thread", None)
        queue = getattr(writer, "_queue", None)
        return queue is not None and queue.qsize() > 0

    def send(self, command: Command) -> None:
        """Hand the command to the run, and look for its outcome more often than for the rest."""
        self._session.send(command)
        if self._follow_up is not None:
            self._follow_up.resume()

    def freeze(self) -> None:
        """Hold the picture still, or let it follow again; events are folded all the same."""
        self._frozen = copy.deepcopy(self.view) if self._frozen is None else None
        self.redraw()

    def stop(self, mode: StopMode, exit_code: int = 0) -> None:
        """Ask the run to stop. "checkpoint": the screen closes once it has; "now": at once."""
        self._session.send(Stop(mode, exit_code))
        self._departure = "stop" if mode == "checkpoint" else "now"
        if self.stop_asked_at is None:
            self.stop_asked_at = self._clock()
        if mode == "now":
            self.exit(self._departure)
        elif not isinstance(self.screen, LeaveScreen):
            self.push_screen(LeaveScreen(self), callback=lambda _: self.redraw())
            self.call_after_refresh(self.redraw)
        else:
            self.redraw()

    def request_stop(self, exit_code: int) -> None:
        """A signal came: save, stop and leave; a second one does not wait for that. Call it in the app's loop.

        129 tells that the terminal is gone: the screen is left at once and nothing is painted any more.
        """
        if exit_code == SIGNALS[signal.SIGHUP]:
            self._departure = "hangup"
            self._session.send(Stop("checkpoint", exit_code))
            self.exit("hangup")
        elif is_over(self.view):
            self.exit("finished")
        else:
            self.stop("checkpoint" if self.stop_asked_at is None else "now", exit_code)

    def action_leave(self) -> None:
        """Leave at once when the run is over; otherwise ask."""
        if is_over(self.view):
            self.exit("finished")
        elif not isinstance(self.screen, LeaveScreen):
            self.push_screen(LeaveScreen(self), callback=lambda _: self.redraw())
            self.call_after_refresh(self.redraw)

    def action_interrupt(self) -> None:
        """ctrl+c: ask; the second time within two seconds stop with checkpoints, the third time stop now."""
        now = time.monotonic()
        self._interrupts = [at for at in self._interrupts if now - at <= INTERRUPT_SECONDS] + [now]
        if is_over(self.view) or len(self._interrupts) == 1:
            self.action_leave()
        elif len(self._interrupts) == 2:
            self.stop("checkpoint")
        else:
            self.stop("now")


def _speaks_unicode() -> bool:
    """Whether the locale's encoding can write what the screen is drawn with."""
    names = (os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale_name = next((name for name in names if name), "")
    if os.environ.get("TERM") == "linux":  # the console's font has no braille
        return False
    return "utf8" in locale_name.lower().replace("-", "") or (not locale_name and sys.flags.utf8_mode == 1)
