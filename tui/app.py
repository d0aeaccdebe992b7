"""The screen of a run: polls events, folds them and draws; turns keys into commands."""

from __future__ import annotations

import asyncio
import copy
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from textual import events
from textual.await_complete import AwaitComplete
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Input

from rl_tui.engine.process.hangups import ENDING, Hangups
from rl_tui.engine.process.vital_signs import SIGNS
from rl_tui.engine.session.messages import Attend, Command, Envelope, SaveCheckpoint, Stop, TakeControl, YieldToScreen
from rl_tui.engine.session.session import Session
from rl_tui.engine.session.view import RunView
from rl_tui.tui.drawing.glyphs import ASCII
from rl_tui.tui.drawing.pacing import FRAME_BYTES, LOCAL_SECONDS, REMOTE_FRAME_BYTES, REMOTE_SECONDS, Pace
from rl_tui.tui.drawing.painting import PatchUpdate
from rl_tui.tui.keys.keymap import Keymap, bindings
from rl_tui.tui.keys.user_keys import UserKeys
from rl_tui.tui.panes.base import Frame, in_words
from rl_tui.tui.panes.faults import Faults, traceback_of, write_output
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
from rl_tui.tui.terminal.app import TerminalApp
from rl_tui.tui.terminal.signals import IGNORED, IGNORED_NOTE, SAVING, LoopSignals
from rl_tui.tui.textual_private import mount_early, paint, paint_now

PICTURE_SECONDS = 0.1  # from one look at the terminal to the next while a picture waits for it
PREPARE_SECONDS = 2.0  # after the start, when the engine has been loaded
ANSWER_SECONDS = 0.1  # a key should have its picture by then
SWITCH_SECONDS = 0.001  # with Python-heavy engine threads, the default 5 ms makes a key take 5 times as long to show


class TrainerApp(TerminalApp[ExitReason]):
    """Runs in the main thread. Owns the exit policy. `show()` returns why the user left.

    None: the screen failed. The caller then decides whether the run continues.
    """

    CSS_PATH = "app.tcss"
    BINDINGS = bindings("anywhere")

    def __init__(
        self,
        session: Session,
        config_name: str = "",
        *,
        ascii: bool = False,  # as on the command line
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
        is_made_up: bool = False,
        detaches: bool = False,
        hangups: Hangups = ENDING,
        why_not_leave: Callable[[], str] = str,
        screen_name: str = "",
        said: str = "",
    ) -> None:
        """The session's view may have behaviors already, which are shown at once.

        on_shown: called once in the app's loop after the first picture, e.g. to start the run. on_folded: called there
        after new events were folded into the view.
        runs, player: see Context. refuses: why nothing may be changed, such as --readonly; "" if it may.
        forbids: see Context. opened: the screen to begin with, "" for the overview.
        notes: short words for the state line. theme: a name in THEMES; None for the one chosen last. bell: ring
        when something fails or the run ends. title: show progress and state in the title of the terminal's window.
        preferences: None to save none. is_made_up, detaches, why_not_leave: see Context. hangups: what a
        SIGHUP means. screen_name: see Controls. said: the first words to the user.
        """
        super().__init__(
            ascii=ascii,
            theme=theme,
            last_theme=preferences.theme() if preferences else "",
            save_theme=preferences.save_theme if preferences else None,
        )
        self._session, self._live = session, session.live
        self.status, state = CommandStatus(), ScreenState()
        self._user_keys = user_keys or UserKeys()
        keymap = Keymap().remapped(self._user_keys.chosen)
        is_remote = "SSH_CONNECTION" in os.environ
        self.context = Context(
            live=session.live,
            state=state,
            status=self.status,
            controls=Controls(session.live, state, self.status, self.send, refuses, screen_name),
            keymap=keymap,
            redraw=self.redraw,
            freeze=self.freeze,
            choose_theme=self.themes.choose,
            watching=session.watching,
            frames=Frames(
                self,
                self._frame,
                REMOTE_FRAME_BYTES if is_remote else FRAME_BYTES,
                may_paint=lambda: self._frozen is None and not self._painter.is_behind,
                is_training=lambda: self.view.state in ("starting", "training"),
            ),
            runs=runs,
            player=player,
            forbids=forbids,
            exit_for=self.exit_for,
            take_control=self.take_control,
            is_made_up=is_made_up,
            detaches=detaches,
            why_not_leave=why_not_leave,
        )
        self.exit_policy = ExitPolicy(self, session, self.context, clock, hangups)
        self.overview = OverviewScreen(self.context)
        self._frozen: RunView | None = None
        self._drawn_view = self.view
        self.status.update(self.view)
        self._history: RunHistory | None = None
        self._signals = LoopSignals(self._on_signal)
        self._former_switch_seconds = sys.getswitchinterval()
        self._config_name, self._clock, self._notes = config_name, clock, notes
        self._on_shown, self._on_folded = on_shown, on_folded
        self._pace = Pace(REMOTE_SECONDS if is_remote else LOCAL_SECONDS)
        self._follow_up: Timer | None = None
        self._is_picture_due = False
        self._drawn_states: object = None
        self._faults = Faults(session.live, clock)
        self._alerts = Alerts(self, session.live, self.status, keymap, may_ring=bell and player is None)
        if preferences is not None:
            state.runs = preferences.runs_order()
        self._runs_order = replace(state.runs)
        self._preferences, self._saved_view = preferences, SavedView(preferences, session.live, state)
        self._first_keys = FirstKeys(preferences, keymap)
        self._opened, self._said = opened, said
        self._attends_to: object = None  # the start of the run that has heard of this screen
        self._controller = ""  # the other one, of which the user knows
        self._has_title = title

    @property
    def view(self) -> RunView:
        """The run as it was folded last."""
        return self._live.view

    @property
    def failure(self) -> str:
        """Why the screen itself failed, "" if it did not. The traceback is on stderr."""
        return "" if self.fault is None else in_words(self.fault)

    def show_update(self, sequences: str) -> None:
        """As in every app on a terminal; a screen that was held back until now is shown."""
        super().show_update(sequences)
        if self._painter.is_held and not isinstance(self.screen, RunScreen | PaneDialog):  # Textual draws all of it
            self.screen.call_after_refresh(self._painter.release)

    def on_terminal_answer(self, now: float) -> None:
        """What may be written now is; first what a key waits for."""
        self._painter.on_answer(now)
        self._pace.measured(self._painter.line.is_slow, self._painter.line.busy_seconds)
        if self._is_picture_due and self.screen_stack:
            self.redraw()
        self._painter.write()

    def push_screen(self, *arguments: Any, **named: Any) -> Any:  # as Textual has it, with its overloads
        """As in Textual; the new screen is written once it is drawn as a whole."""
        self._painter.hold()
        if isinstance(arguments[0], PaneDialog):
            arguments[0].pane.expect(self._frame())
        return super().push_screen(*arguments, **named)

    def pop_screen(self) -> AwaitComplete:
        """The same for the screen below."""
        self._painter.hold()
        return super().pop_screen()

    def switch_screen(self, screen: Screen[Any] | str) -> AwaitComplete:
        """The same for another one in its place."""
        self._painter.hold()
        return super().switch_screen(screen)

    def report_failure(self, error: Exception) -> None:
        """Write the traceback to the process's output."""
        write_output(f"the screen failed\n{traceback_of(error)}")

    async def on_event(self, event: events.Event) -> None:
        """Training waits while a key is answered. One that was pressed before ctrl+z took effect does nothing, nor does
        one that comes when the screens are closed already."""
        if isinstance(event, events.InputEvent) and (self._was_pressed_before_stop(event) or not self.screen_stack):
            return
        if isinstance(event, events.Key):
            self._painter.on_key()
            self._session.send(YieldToScreen(ANSWER_SECONDS))
            if not isinstance(self.focused, Input):
                self._first_keys.on_key(event.key)
        await super().on_event(event)

    def _was_pressed_before_stop(self, event: events.InputEvent) -> bool:
        return self.terminal is not None and event.time < self.terminal.on_again_at

    def get_default_screen(self) -> Screen[None]:
        """The overview."""
        return self.overview

    def on_mount(self) -> None:
        """Events are polled, and signals end the run in order."""
        self.set_class(self._glyphs is ASCII, "-ascii")
        sys.setswitchinterval(SWITCH_SECONDS)
        self._live.mail.on_news = self._on_news(asyncio.get_running_loop())
        if not self.is_headless:
            self._signals.start()
        self.set_keymap({id: ",".join(keys) for id, keys in self._user_keys.chosen.items()})
        self._warn(self._user_keys.problems)
        self.set_interval(self._pace.usual, self._beat)
        self._follow_up = self.set_interval(PICTURE_SECONDS, self._beat, pause=True)
        self.call_after_refresh(self.tick)
        if self._said:
            self.announce(self._said)
        if self._opened:
            self.call_after_refresh(self.overview.action_open_screen, self._opened)
        if self._on_shown is not None:
            self.call_after_refresh(self._on_shown)
        self.set_timer(PREPARE_SECONDS, self._prepare)

    def _on_news(self, loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
        """What other threads call when something has come that is to be shown at once."""

        def beat() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._beat)

        return beat

    def _prepare(self) -> None:
        """Mount the help before it is first opened, which then takes no longer than later."""
        prepare_help(self, self.context)
        mount_early(self, HELP)

    def load_history(self, events: Iterator[Envelope]) -> None:
        """The view begins with the earlier events of a run; new ones wait in the mailbox until these are read."""
        self._history = RunHistory(events)
        self.run_worker(self._load(self._history))

    async def _load(self, history: RunHistory) -> None:
        self._live.show(await history.read())
        self._history = None
        self._warn([f"not all earlier events of the run could be read: {history.problem}"] if history.problem else [])
        self.tick()

    def on_unmount(self) -> None:
        """Install the previous signal handlers, and save the view."""
        if self._history is not None:
            self._history.close()
            self._history = None
        sys.setswitchinterval(self._former_switch_seconds)
        self._signals.stop()
        self._saved_view.save()
        if self._preferences is not None and self.context.state.runs != self._runs_order:
            self._preferences.save_runs_order(self.context.state.runs)
        self._live.mail.on_news = None

    def tick(self) -> None:
        """Fold new events and draw, unless the terminal is still busy with the last picture."""
        self._follow(must_draw=True)

    def _beat(self) -> None:
        """Fold new events; draw when it is time, or at once what the user waits for."""
        self._follow(must_draw=False)

    def _follow(self, must_draw: bool) -> None:
        SIGNS.beat("main")
        if not self.screen_stack:  # Textual closes the screens before it stops the timers
            return
        if self.terminal is not None and self.terminal.is_gone:
            self.exit_policy.on_terminal_lost()
            return
        now = time.monotonic()
        has_news = self.fold() or self._saved_view.restore() or self._is_picture_due
        self._saved_view.save_periodically(now)
        self._warn(self._preferences.pop_problems() if self._preferences is not None else [])
        if self.exit_policy.update():
            return
        self._alerts.show(now)
        self._show_title(now)
        if must_draw or has_news or self._pace.is_due(now):
            if self._painter.is_behind:
                if not self._painter.line.answers:
                    self._pace.skipped(now)
            else:
                self.redraw()
        self._painter.write()
        is_waiting = self._is_picture_due or self._painter.is_due
        if self._follow_up is not None and not is_waiting:
            self._follow_up.pause()

    def _show_title(self, now: float) -> None:
        if self._has_title and self.terminal is not None and not self._painter.is_behind:
            self.terminal.show_title(title_of(self._frozen or self.view, self._config_name), now)

    def _warn(self, problems: Sequence[str]) -> None:
        """Log problems with the user's files, and show the first."""
        for problem in problems:
            self.view.add_log(self._clock(), "warning", "SCREEN", "", problem)
        if problems:
            more = f" (and {len(problems) - 1} more, in the log)" if len(problems) > 1 else ""
            self.status.say(problems[0] + more)

    def fold(self) -> bool:
        """Fold new events into the view; returns whether a command has ended or a state has changed."""
        for envelope in self._live.fold() if self._history is None else ():
            self._alerts.add(envelope.event)
        if self._on_folded is not None:
            self._on_folded()
        self._attend()
        if self.context.player is None:  # a recording's commands are no news
            self.status.update(self.view)
        return self._states() != self._drawn_states

    def _attend(self) -> None:
        """The run knows that this screen shows it, and the user which screen controls it."""
        controls, run = self.context.controls, self.view.run
        if not controls.screen or self._history is not None:
            return
        if run is not self._attends_to and not controls.never:
            self._attends_to = run
            self._session.send(Attend(True, controls.screen))
        if self._controller != controls.other:
            self._controller = controls.other
            key = self.context.keymap.of_id("take-control").shown
            has_lost = f"{self._controller} controls the run; {key} takes over"
            self.announce(has_lost if self._controller else "this screen controls the run")

    def take_control(self) -> None:
        """From now on this screen controls the run."""
        self._session.send(TakeControl(self.context.controls.screen))

    def announce(self, text: str) -> None:
        """Show it, and keep it in the log of this screen."""
        self.view.add_log(self._clock(), "info", "SCREEN", "", text)
        self.status.say(text, "text")

    def _states(self) -> object:
        latest = self.status.latest
        command = (latest.id, latest.state) if latest is not None else None
        return self.view.state, [behavior.state for behavior in self.view.behaviors.values()], command

    def redraw(self) -> None:
        """Draw the screen on top, now, or as soon as the terminal is ready.

        What is behind a dialog is not updated, since all of it would be painted.
        """
        self._is_picture_due = self._painter.is_behind
        if self._is_picture_due:
            self._poll_sooner()
            return
        self._drawn_states = self._states()
        if self._drawn_view is not self.view:
            self._drawn_view = self.view
            self._forget_lines()
        top = self.screen
        if isinstance(top, RunScreen | PaneDialog):
            patches = top.draw(self._frame())
            self._faults.collect(top.panes)
            paint(self, top, PatchUpdate(patches) if patches else None)
            if isinstance(top, RunScreen):  # the box of a dialog has no heading of its pane
                paint_now(top, {pane for pane in top.panes if pane.take_new_heading()})
            top.was_drawn |= top.is_laid_out
            if self._painter.is_held and top.was_drawn:
                top.call_after_refresh(self._painter.release)
        self._pace.drew(time.monotonic(), time.thread_time())

    def _forget_lines(self) -> None:
        """Another view is drawn from scratch: while a replay is paused, no pane would be due."""
        for screen in self.screen_stack:
            for pane in screen.panes if isinstance(screen, RunScreen) else ():
                pane.forget_lines()

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
            controller=self.context.controls.other,
            notes=(*self._notes(), *self._pace.notes(time.monotonic())),
            is_new=self._first_keys.are_shown,
            can_watch=self._can_watch(),
        )

    def _can_watch(self) -> bool:
        selected = self.context.controls.selected
        return selected is not None and not self.context.watching.why_not(selected.name)

    def _poll_sooner(self) -> None:
        if self._follow_up is not None:
            self._follow_up.resume()

    def send(self, command: Command) -> None:
        """Send the command to the run, and show that it was asked."""
        self._session.send(command)
        self.fold()

    def obey(self, command: Stop | SaveCheckpoint) -> None:
        """Carry out what a signal asked for, whatever the keys may do."""
        if isinstance(command, Stop):
            self.exit_policy.on_signal(command.exit_code)
        else:
            self.send(command)

    def _on_signal(self, number: int) -> None:
        if number == IGNORED:
            self.announce(IGNORED_NOTE)
        else:
            self.obey(SaveCheckpoint() if number == SAVING else Stop("checkpoint", 128 + number))

    def exit_for(self, words: Sequence[str]) -> None:
        """Leave, and let that command line of rl-tui replace this one."""
        self.exit_policy.exit_for(words)

    def freeze(self) -> None:
        """Freeze the view, or unfreeze it; events are folded meanwhile."""
        self._frozen = copy.deepcopy(self.view) if self._frozen is None else None
        self.redraw()

    def action_suspend_process(self) -> None:
        """Suspend the whole process group, as the terminal itself would do."""
        if self.terminal is not None and not self.terminal.suspend(0):
            self.status.say("ctrl+z: not possible, no shell could bring the screen back")
            self.redraw()

    def action_repaint(self) -> None:
        """Write everything again."""
        self.forget_terminal()
        self.status.say("repaint: the whole screen was written again", "text")
        self.redraw()

    def action_leave(self) -> None:
        """Leave at once when nothing runs; otherwise ask."""
        self.exit_policy.request_exit()

    def action_interrupt(self) -> None:
        """ctrl+c: ask; the second time stop with checkpoints, the third time stop now."""
        self.exit_policy.interrupt()
