"""The screen of a run: it polls events, folds them and draws; keys become commands."""

from __future__ import annotations

import copy
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import get_args

from textual import events
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Input

from rl_tui.engine.session.bus import Subscription
from rl_tui.engine.session.messages import Command, Envelope
from rl_tui.engine.session.session import Session
from rl_tui.engine.session.view import RunView
from rl_tui.engine.session.watching import Unwatchable, Watching
from rl_tui.tui.drawing.glyphs import ASCII, Colors, glyphs_for
from rl_tui.tui.drawing.lines import Tone
from rl_tui.tui.drawing.pacing import FRAME_BYTES, LOCAL_SECONDS, REMOTE_FRAME_BYTES, REMOTE_SECONDS, Pace
from rl_tui.tui.drawing.painting import PiecesUpdate, exact_console, is_behind
from rl_tui.tui.drawing.themes import Themes
from rl_tui.tui.keys.keymap import Keymap, bindings
from rl_tui.tui.keys.user_keys import UserKeys
from rl_tui.tui.panes.base import Frame, in_words
from rl_tui.tui.panes.faults import Faults, traceback_of, write_beside
from rl_tui.tui.panes.first_keys import FirstKeys
from rl_tui.tui.panes.frames import Frames
from rl_tui.tui.panes.state_line import title_of
from rl_tui.tui.runs.history import RunHistory
from rl_tui.tui.runs.sources import Player, Runs
from rl_tui.tui.screens.alerts import Alerts
from rl_tui.tui.screens.base import HELP, RunScreen, prepare_help
from rl_tui.tui.screens.context import Context
from rl_tui.tui.screens.dialog import PaneDialog
from rl_tui.tui.screens.exit_policy import ExitPolicy, ExitReason
from rl_tui.tui.screens.overview import OverviewScreen
from rl_tui.tui.state.choices import ScreenState
from rl_tui.tui.state.command_status import CommandStatus
from rl_tui.tui.state.controls import Controls
from rl_tui.tui.state.preferences import Preferences, SavedView
from rl_tui.tui.terminal.driver import TerminalDriver
from rl_tui.tui.terminal.signals import LoopSignals
from rl_tui.tui.textual_private import FailingApp, driver_of, fail, mount_early, paint

OUTCOME_SECONDS = 0.1  # from one look at the events to the next while a key waits for its outcome or its picture
PREPARE_SECONDS = 2.0  # after the start, when the engine has been loaded
ANSWER_SECONDS = 0.1  # within which a key should have its picture
SWITCH_SECONDS = 0.001  # with Python-heavy engine threads, the default 5 ms makes a key take 5 times as long to show


class TrainerApp(FailingApp[ExitReason]):
    """Lives in the main thread. Owns the view, the subscription and the way out; `show()` returns how the user left.

    None: the screen failed. The run is the caller's, whether it goes on or its end is waited for.
    """

    CSS_PATH = "app.tcss"
    BINDINGS = bindings("anywhere")
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
        on_folded: Callable[[], None] | None = None,
        runs: Runs | None = None,
        player: Player | None = None,
        refuses: str = "",
        forbids: str = "",
        opened: str = "",
        notes: Callable[[], tuple[str, ...]] = tuple,
        theme: str | None = None,
        bell: bool = True,
        title: bool = True,
        user_keys: UserKeys | None = None,
        preferences: Preferences | None = None,
        prioritize_ui: Callable[[float], None] | None = None,
        watching: Watching | None = None,
    ) -> None:
        """`view` may hold behaviors already: they are shown until events say more. It is changed from now on.

        on_shown: called once in the app's loop after the first picture, e.g. to start the run. on_folded: called there
        whenever events are in the view.
        subscription: one opened before the run was started, so that no event is missed; else one is opened at mount.
        runs, player: see Context. refuses: why nothing may be changed, such as --readonly; "" when it may.
        forbids: see Context. opened: the screen to begin with, "" for the overview.
        notes: short words for the state line. theme: a name in THEMES; None for the one chosen last. bell: call the
        user when something fails or the run ends. title: show progress and state in the title of the terminal's window.
        preferences: None to remember nothing. prioritize_ui: makes training in this process wait for so many seconds.
        watching: None where the session has no policies.
        """
        super().__init__(driver_class=TerminalDriver)
        self.keep_streams()
        self.view = view
        self.status, state = CommandStatus(), ScreenState()
        self.themes = Themes(
            self, preferences.theme() if preferences else "", preferences.save_theme if preferences else None
        )
        self._user_keys = user_keys or UserKeys()
        keymap = Keymap().remapped(self._user_keys.chosen)
        is_remote = "SSH_CONNECTION" in os.environ
        self.context = Context(
            view=view,
            state=state,
            status=self.status,
            controls=Controls(view, state, self.status, self.send, refuses),
            keymap=keymap,
            redraw=self.redraw,
            freeze=self.freeze,
            choose_theme=self.themes.choose,
            watching=watching or Unwatchable("this session has no policies"),
            frames=Frames(
                self,
                self._frame,
                REMOTE_FRAME_BYTES if is_remote else FRAME_BYTES,
                may_paint=lambda: self._frozen is None,
                spares=lambda: self.view.state in ("starting", "training"),
            ),
            runs=runs,
            player=player,
            forbids=forbids,
            leave_for=self.leave_for,
        )
        self.exit_policy = ExitPolicy(self, session, self.context, clock)
        self.overview = OverviewScreen(self.context)
        self._session = session
        self._subscription, self._owns_subscription = subscription, subscription is None
        self._frozen: RunView | None = None
        self._history: RunHistory | None = None
        self._signals = LoopSignals(self.exit_policy.on_signal)
        self._former_switch_seconds = sys.getswitchinterval()
        self._config_name, self._clock, self._notes = config_name, clock, notes
        self._on_shown, self._on_folded = on_shown, on_folded
        self._pace = Pace(REMOTE_SECONDS if is_remote else LOCAL_SECONDS)
        self._follow_up: Timer | None = None
        self._owes_a_picture = False
        self._drawn_states: object = None
        self._glyphs = glyphs_for(os.environ, ascii)
        self._faults = Faults(view, clock)
        self._alerts = Alerts(self, view, keymap, may_ring=bell and player is None)
        if preferences is not None:
            state.runs = preferences.runs_order()
        self._runs_order = replace(state.runs)
        self._preferences, self._saved_view = preferences, SavedView(preferences, view, state)
        self._first_keys = FirstKeys(preferences, keymap)
        self._theme_asked, self._opened = theme, opened
        self._prioritize_ui, self._has_title = prioritize_ui, title
        self._colors: Colors = "" if self.no_color else self.console.color_system or ""  # type: ignore[assignment]
        self.animation_level = "none"
        self.console = exact_console(self.console)

    @property
    def failure(self) -> str:
        """Of what the screen itself failed; "" when it did not. The traceback is on stderr."""
        return "" if self.fault is None else in_words(self.fault)

    @property
    def terminal(self) -> TerminalDriver | None:
        """The terminal that the screen is on; None before that, and without one."""
        driver = driver_of(self)
        return driver if isinstance(driver, TerminalDriver) else None

    def show(self, *, mouse: bool) -> ExitReason | None:
        """The screen was on, and the terminal is as it was before, whatever happened."""
        try:
            return self.run(mouse=mouse)
        except Exception as error:  # noqa: BLE001  # no fault of the screen may reach the run
            fail(self, error)
            return None
        finally:
            if self.terminal is not None:
                self.terminal.give_back()

    def report_failure(self, error: Exception) -> None:
        """The traceback is where the process's output goes."""
        write_beside(f"the screen failed\n{traceback_of(error)}")

    async def on_event(self, event: events.Event) -> None:
        """A key should be answered as if nothing trained. One pressed before ctrl+z took effect does nothing."""
        if isinstance(event, events.InputEvent) and self._was_pressed_before_stop(event):
            return
        if isinstance(event, events.Key):
            if self._prioritize_ui is not None:
                self._prioritize_ui(ANSWER_SECONDS)
            if not isinstance(self.focused, Input):
                self._first_keys.on_key(event.key)
        await super().on_event(event)

    def _was_pressed_before_stop(self, event: events.InputEvent) -> bool:
        return self.terminal is not None and event.time < self.terminal.on_again_at

    def get_default_screen(self) -> Screen[None]:
        """The overview."""
        return self.overview

    def on_load(self) -> None:
        """The colors are known before anything is laid out."""
        self.themes.begin(self._theme_asked)

    def on_mount(self) -> None:
        """Events are polled, and signals end the run in order."""
        self.set_class(self._glyphs is ASCII, "-ascii")
        sys.setswitchinterval(SWITCH_SECONDS)
        if self._subscription is None:
            self._subscription = self._session.subscribe()
        if not self.is_headless:
            self._signals.start()
        self.set_keymap({id: ",".join(keys) for id, keys in self._user_keys.chosen.items()})
        self._warn(self._user_keys.problems)
        self.set_interval(self._pace.usual, self._beat)
        self._follow_up = self.set_interval(OUTCOME_SECONDS, self._beat, pause=True)
        self.call_after_refresh(self.tick)
        if self._opened:
            self.call_after_refresh(self.overview.action_open_screen, self._opened)
        if self._on_shown is not None:
            self.call_after_refresh(self._on_shown)
        self.set_timer(PREPARE_SECONDS, self._prepare)

    def _prepare(self) -> None:
        """The help is mounted before anybody asks for it: its first opening then takes no longer than every other."""
        prepare_help(self, self.context)
        mount_early(self, HELP)

    def load_history(self, events: Iterator[Envelope]) -> None:
        """The view begins with the earlier events of a run; new ones wait in the mailbox until these are read."""
        self._history = RunHistory(events)
        self.run_worker(self._load(self._history))

    async def _load(self, history: RunHistory) -> None:
        await history.load_into(self.view)
        self._history = None
        self._warn([f"not all earlier events of the run could be read: {history.problem}"] if history.problem else [])
        self.tick()

    def on_unmount(self) -> None:
        """Signals mean again what they meant before."""
        if self._history is not None:
            self._history.close()
            self._history = None
        sys.setswitchinterval(self._former_switch_seconds)
        self._signals.stop()
        self._saved_view.save()
        if self._preferences is not None and self.context.state.runs != self._runs_order:
            self._preferences.save_runs_order(self.context.state.runs)
        if self._subscription is not None and self._owns_subscription:
            self._subscription.close()

    def tick(self) -> None:
        """Fold what came and draw it, unless the terminal has not taken the last picture yet."""
        self._follow(must_draw=True)

    def _beat(self) -> None:
        """Fold what came; draw when it is time, or at once what the user should not wait for."""
        self._follow(must_draw=False)

    def _follow(self, must_draw: bool) -> None:
        if not self.screen_stack:  # Textual closes the screens before it stops the timers
            return
        if self.terminal is not None and self.terminal.is_gone:
            self.exit_policy.on_terminal_lost()
            return
        now = time.monotonic()
        has_news = self.fold() or self._saved_view.restore() or self._owes_a_picture
        self._saved_view.save_periodically(now)
        self._warn(self._preferences.pop_problems() if self._preferences is not None else [])
        if self.exit_policy.update():
            return
        self._alerts.show(now)
        self._show_title(now)
        if must_draw or has_news or self._pace.is_due(now):
            if is_behind(self):
                self._pace.skipped(now)
            else:
                self.redraw()
        if self._follow_up is not None and not self.status.num_pending and not self._owes_a_picture:
            self._follow_up.pause()

    def _show_title(self, now: float) -> None:
        if self._has_title and self.terminal is not None and not is_behind(self):
            self.terminal.show_title(title_of(self._frozen or self.view, self._config_name), now)

    def _warn(self, problems: Sequence[str]) -> None:
        """What the user's own files are not good for is in the log, and the first of it is said."""
        for problem in problems:
            self.view.add_log(self._clock(), "warning", "SCREEN", "", problem)
        if problems:
            more = f" (and {len(problems) - 1} more, in the log)" if len(problems) > 1 else ""
            self.status.say(problems[0] + more)

    def fold(self) -> bool:
        """Bring the view up to the newest event; returns whether a command has ended or a state has changed."""
        self._go_along()
        if self._subscription is not None and self._history is None:
            for envelope in self._subscription.drain():
                self.view.apply(envelope)
                self._alerts.add(envelope.event)
        if self._on_folded is not None:
            self._on_folded()
        has_news = self.status.update(self.view)
        return has_news or self._states() != self._drawn_states

    def _go_along(self) -> None:
        """Where a replay has gone elsewhere, the view is the one there; what was told before is of another place."""
        player = self.context.player
        new_view = player.new_view() if player is not None else None
        if player is None or new_view is None:
            return
        if self._subscription is not None:
            self._subscription.drain()
        for each in fields(RunView):
            setattr(self.view, each.name, getattr(new_view, each.name))
        player.accept_view()
        for screen in self.screen_stack:
            if isinstance(screen, RunScreen):
                for pane in screen.panes:  # where the replay stands still, no time goes by that would make them due
                    pane.forget_lines()

    def _states(self) -> object:
        return self.view.state, [behavior.state for behavior in self.view.behaviors.values()]

    def redraw(self) -> None:
        """Draw the screen on top, now, or as soon as the terminal takes it.

        What lies behind a dialog stands still, for it would be painted as a whole.
        """
        self._owes_a_picture = is_behind(self)
        if self._owes_a_picture:
            self._look_sooner()
            return
        self._drawn_states = self._states()
        top = self.screen
        if isinstance(top, RunScreen | PaneDialog):
            pieces = top.draw(self._frame())
            self._faults.collect(top.panes)
            paint(self, top, PiecesUpdate(pieces) if pieces else None)
        self._pace.drew(time.monotonic(), time.thread_time())

    def _frame(self) -> Frame:
        return Frame(
            view=self._frozen or self.view,
            state=self.context.state,
            status=self.status,
            keymap=self.context.keymap,
            now=self._clock(),
            glyphs=self._glyphs,
            config_name=self._config_name,
            is_frozen=self._frozen is not None,
            has_color=not self.no_color,
            colors=self._colors,
            refuses=self.context.controls.refuses,
            notes=(*self._notes(), *self._pace.notes(time.monotonic())),
            is_new=self._first_keys.are_shown,
        )

    def _look_sooner(self) -> None:
        if self._follow_up is not None:
            self._follow_up.resume()

    def send(self, command: Command) -> None:
        """Hand the command to the run, and look for its outcome more often than for the rest."""
        self._session.send(command)
        self._look_sooner()

    def leave_for(self, words: Sequence[str]) -> None:
        """Leave, and let that command line of rl-tui take this one's place."""
        self.exit_policy.exit_for(words)

    def freeze(self) -> None:
        """Hold the picture still, or let it follow again; events are folded all the same."""
        self._frozen = copy.deepcopy(self.view) if self._frozen is None else None
        self.redraw()

    def action_suspend_process(self) -> None:
        """To the shell, with the whole group of processes, as the terminal itself would do."""
        if self.terminal is not None and not self.terminal.suspend(0):
            self.status.say("ctrl+z: there is no shell that could bring the screen back, so it stays")
            self.redraw()

    def action_leave(self) -> None:
        """Leave at once when nothing runs; otherwise ask."""
        self.exit_policy.request_exit()

    def action_interrupt(self) -> None:
        """ctrl+c: ask; the second time stop with checkpoints, the third time stop now."""
        self.exit_policy.interrupt()
