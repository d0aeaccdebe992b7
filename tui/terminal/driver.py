"""The terminal while a screen is on: it never blocks the program, and is restored afterwards."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import select
import signal
import termios
import time
from collections.abc import Callable
from typing import Any

from textual.app import App

from rl_tui.engine.process.vital_signs import SIGNS
from rl_tui.tui.terminal.flow import QUERY
from rl_tui.tui.terminal.keyboard import Answered, Keyboard
from rl_tui.tui.terminal.sequences import POP_TITLE, PUSH_TITLE, title_sequence
from rl_tui.tui.terminal.signals import restore_signals
from rl_tui.tui.terminal.streams import open_without_waiting
from rl_tui.tui.textual_private import OpenDriver, fail, get_time

TITLE_SECONDS = 1.0  # from one title to the next
LEAVE_SECONDS = 2.0  # how long leaving waits for a terminal that accepts nothing
FLUSH_SECONDS = 0.05
KEY_MILLISECONDS = 50  # from one poll for keys to the next
READ_BYTES = 4096
ANSWER_SECONDS = 1.0  # how long leaving waits for answers, which the shell would otherwise take for keys
FOREGROUND_SECONDS = 0.2  # from one check whether the terminal is ours to the next
SIGNALS = (signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)  # Textual's driver handles them and does not restore them


class TerminalDriver(OpenDriver):
    """Made and used in the main thread. Owns the signals of the terminal's job control and size until `restore`.

    The screen is on from `start_application_mode` to `stop_application_mode`, except while the terminal is the shell's.
    is_on: whether the terminal shows it. on_again_at: when it was turned on last, on the clock of messages.
    """

    def __init__(self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: Any = None) -> None:
        self.is_on = False
        self.on_again_at = 0.0
        self._title, self._titled_at = "", float("-inf")
        self._is_wanted = False
        self._was_continued = False
        self._num_asked = self._num_answers = 0
        self._next_try: asyncio.TimerHandle | None = None
        self._former = {number: signal.getsignal(number) for number in SIGNALS}
        super().__init__(app, debug=debug, mouse=mouse, size=size)

    @property
    def is_gone(self) -> bool:
        """Whether the terminal is gone, with or without a signal."""
        poll = select.poll()
        poll.register(self.fileno, 0)
        return any(what & (select.POLLHUP | select.POLLERR) for _, what in poll.poll(0))

    @property
    def is_in_foreground(self) -> bool:
        """Whether this job has the terminal, not the shell or another job: only then may its modes be changed."""
        try:
            return os.tcgetpgrp(self.fileno) == os.getpgrp()
        except OSError:  # a terminal without job control
            return True

    def start_application_mode(self) -> None:
        """The terminal shows the screen, as soon as it is ours."""
        self._is_wanted = True
        self._turn_on()

    def stop_application_mode(self) -> None:
        """Restore the terminal; pictures that are not written yet are dropped."""
        self._is_wanted = False
        self._turn_off()

    def suspend(self, process: int) -> bool:
        """Give the terminal to the shell, and stop the process (0: its group) until it is continued.

        Returns whether that was possible: the kernel stops no process without a shell that could continue it.
        """
        self._turn_off()
        self.close()
        self._was_continued = False
        restore_signals({signal.SIGTSTP: self._former[signal.SIGTSTP]})
        os.kill(process, signal.SIGTSTP)
        self.catch_stop()
        has_stopped, self._was_continued = self._was_continued, False
        self._turn_on()
        return has_stopped

    def write(self, data: str) -> None:
        """Write `data` while the terminal shows the screen."""
        if self.is_writing:
            super().write(data)
            self._num_asked += data == QUERY

    def show_title(self, title: str, now: float) -> None:
        """Set the window's title until the screen is off; one that comes too soon after another is dropped."""
        sequence = title_sequence(title, os.environ)
        if not self.is_on or not sequence or title == self._title or now - self._titled_at < TITLE_SECONDS:
            return
        self.write(sequence if self._title else PUSH_TITLE + sequence)
        self._title, self._titled_at = title, now

    def disable_input(self) -> None:
        """Stop reading keys; those that were typed ahead are dropped if the terminal is ours."""
        keys = self.detach_key_thread()
        if keys is None:
            return
        signal.signal(signal.SIGWINCH, signal.SIG_DFL)
        self.disable_mouse()
        self.exit_event.set()
        keys.join()
        self.exit_event.clear()
        if self.is_in_foreground:
            with contextlib.suppress(termios.error):
                termios.tcflush(self.fileno, termios.TCIFLUSH)

    def run_input_thread(self) -> None:
        """Read keys until the screen is left or the terminal is gone, which `is_gone` reports."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTIN})  # reading another job's keys is then an error
        try:
            with open_without_waiting(self.fileno) as keys:
                self._read_keys(keys)
        except Exception as error:  # noqa: BLE001  # Textual would exit without a reason
            self.app.call_later(fail, self.app, error)

    def _read_keys(self, keys: int) -> None:
        """Between a poll and the read, the shell may have taken what there was.

        At the end, wait for answers of a terminal that gives them.
        """
        keyboard, decoder = Keyboard(), codecs.getincrementaldecoder("utf-8")(errors="replace")
        poll = select.poll()
        poll.register(self.fileno, select.POLLIN)
        wait_until = float("inf")
        while not self.exit_event.is_set() or (self._awaits_answers and time.monotonic() < wait_until):
            if self.exit_event.is_set():
                wait_until = min(wait_until, time.monotonic() + ANSWER_SECONDS)
            text = ""
            if poll.poll(KEY_MILLISECONDS):
                try:
                    text = decoder.decode(os.read(keys, READ_BYTES))
                except OSError:
                    if self.exit_event.wait(FOREGROUND_SECONDS):  # until it is ours again, or gone
                        return
            for message in keyboard.feed(text, time.monotonic()):
                if isinstance(message, Answered):
                    self._num_answers += 1
                    self._call_in_loop(self.app.on_terminal_answer, time.monotonic())
                else:
                    self.process_message(message)

    @property
    def _awaits_answers(self) -> bool:
        return 0 < self._num_answers < self._num_asked

    def close(self) -> None:
        """Wait at most LEAVE_SECONDS until everything is written; then drop all but the sequences that restore."""
        writer = self.detach_writer()
        if writer is None:
            return
        writer.join(LEAVE_SECONDS)
        end = time.monotonic() + LEAVE_SECONDS
        while writer.is_alive() and time.monotonic() < end:
            self._discard_unread()
            writer.join(FLUSH_SECONDS)

    def restore(self) -> None:
        """The terminal and its signals are as they were, even if the screen was left halfway."""
        if self._is_wanted:
            self.stop_application_mode()
        self.close()
        restore_signals(self._former)

    def _turn_on(self) -> None:
        """Show the whole screen; while the terminal is not ours, try again later."""
        if self._next_try is not None:
            self._next_try.cancel()
            self._next_try = None
        if self.is_on or not self._is_wanted:
            return
        if not self.is_in_foreground:
            self._next_try = self.loop.call_later(FOREGROUND_SECONDS, self._turn_on)
            return
        unrestored = self.attrs_before
        super().start_application_mode()  # type: ignore[no-untyped-call]  # Textual has no types there
        if unrestored is not None:
            self.attrs_before = unrestored
        if self.is_writing:
            self.is_on = SIGNS.has_screen = True
            self.lift_write_limit()
            self.on_again_at = get_time()
            self._num_asked = self._num_answers = 0
            self.app.take_terminal()
            self.app.refresh(layout=True)

    def _turn_off(self) -> None:
        """Restore the terminal; its modes are left alone if another job has it by now."""
        if not self.is_on:
            return
        self.is_on = SIGNS.has_screen = False
        self._num_asked -= self.drop_unwritten().count(QUERY)
        if self._title:
            self._title = ""
            self.write(POP_TITLE)
        kept = None
        if not self.is_in_foreground:
            kept, self.attrs_before = self.attrs_before, None
        super().stop_application_mode()
        self.attrs_before = kept

    def stop_requested(self) -> None:
        """Another process stops this one."""
        self._call_in_loop(self._on_stop)

    def continued(self) -> None:
        """The process was continued."""
        self._was_continued = True
        self._call_in_loop(self._on_continue)

    def _call_in_loop(self, call: Callable[..., object], *arguments: object) -> None:
        """A signal may have interrupted code that holds a lock; the thread that reads keys is another one."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(call, *arguments)

    def _on_stop(self) -> None:
        self.suspend(os.getpid())

    def _on_continue(self) -> None:
        """After SIGSTOP, which comes without notice, the terminal's content and modes are unknown: start again."""
        if self._was_continued:
            self._was_continued = False
            self._turn_off()
            self.close()
            self._turn_on()

    def _discard_unread(self) -> None:
        """Let the kernel drop what the terminal has not read, to make room for the sequences that restore it."""
        with contextlib.suppress(termios.error):
            termios.tcflush(self.fileno, termios.TCOFLUSH)
            termios.tcflow(self.fileno, termios.TCOOFF)
            termios.tcflow(self.fileno, termios.TCOON)  # Linux wakes a blocked writer only for this
