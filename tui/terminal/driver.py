"""The terminal while a screen is on: it never holds up the program, whatever becomes of it, and is given back."""

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

from rl_tui.tui.terminal.keyboard import Keyboard
from rl_tui.tui.terminal.sequences import POP_TITLE, PUSH_TITLE, title_sequence
from rl_tui.tui.terminal.signals import restore_signals
from rl_tui.tui.textual_private import OpenDriver, fail, get_time

TITLE_SECONDS = 1.0  # from one title to the next
LEAVE_SECONDS = 2.0  # what a terminal that takes nothing may cost the way out
FLUSH_SECONDS = 0.05
KEY_MILLISECONDS = 50  # from one look at the keys to the next
LARGEST_PIECE = 4096  # bytes
FOREGROUND_SECONDS = 0.2  # from one look whether the terminal is ours to the next
SIGNALS = (signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)  # Textual's driver takes them and keeps them


class TerminalDriver(OpenDriver):
    """Made and used in the main thread. Owns the signals of the terminal's job control and size until `give_back`.

    The screen is on from `start_application_mode` to `stop_application_mode`, but for the time in which the terminal
    is the shell's. is_on: whether the terminal shows it. on_again_at: when it came on last, on the clock of messages.
    """

    def __init__(self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: Any = None) -> None:
        self.is_on = False
        self.on_again_at = 0.0
        self._title, self._titled_at = "", float("-inf")
        self._is_wanted = False
        self._was_continued = False
        self._next_look: asyncio.TimerHandle | None = None
        self._former = {number: signal.getsignal(number) for number in SIGNALS}
        super().__init__(app, debug=debug, mouse=mouse, size=size)

    @property
    def is_gone(self) -> bool:
        """Whether nothing can come from the terminal any more, be there a signal for that or not."""
        poll = select.poll()
        poll.register(self.fileno, 0)
        return any(what & (select.POLLHUP | select.POLLERR) for _, what in poll.poll(0))

    @property
    def is_in_foreground(self) -> bool:
        """Whether the terminal is ours, not the shell's or another job's: only then may its modes be changed."""
        try:
            return os.tcgetpgrp(self.fileno) == os.getpgrp()
        except OSError:  # a terminal without job control
            return True

    def start_application_mode(self) -> None:
        """The terminal shows the screen, as soon as it is ours."""
        self._is_wanted = True
        self._turn_on()

    def stop_application_mode(self) -> None:
        """The terminal is as it was before, as soon as it takes that; pictures that it has not taken are dropped."""
        self._is_wanted = False
        self._turn_off()

    def suspend(self, process: int) -> bool:
        """The terminal is the shell's and the process (0: its group) stands still until somebody continues it.

        Returns whether that was possible: without a shell that could continue it, the kernel stops none.
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
        """The terminal is given `data` while it shows the screen."""
        if self.is_writing:
            super().write(data)

    def show_title(self, title: str, now: float) -> None:
        """The window has that title until the screen goes off; one that comes too soon after another is not shown."""
        sequence = title_sequence(title, os.environ)
        if not self.is_on or not sequence or title == self._title or now - self._titled_at < TITLE_SECONDS:
            return
        self.write(sequence if self._title else PUSH_TITLE + sequence)
        self._title, self._titled_at = title, now

    def disable_input(self) -> None:
        """No key comes any more; those that were typed ahead are dropped where the terminal is ours."""
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
        """Keys come until the screen is left or the terminal is gone, which `is_gone` then says."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTIN})  # reading another job's keys is an error then
        try:
            self._read_keys()
        except Exception as error:  # noqa: BLE001  # Textual would leave without a word on why
            self.app.call_later(fail, self.app, error)

    def _read_keys(self) -> None:
        keyboard, decoder = Keyboard(), codecs.getincrementaldecoder("utf-8")(errors="replace")
        poll = select.poll()
        poll.register(self.fileno, select.POLLIN)
        while not self.exit_event.is_set():
            piece = ""
            if poll.poll(KEY_MILLISECONDS):
                try:
                    piece = decoder.decode(os.read(self.fileno, LARGEST_PIECE))
                except OSError:
                    self.exit_event.wait(FOREGROUND_SECONDS)  # until it is ours again, or known to be gone
            for message in keyboard.feed(piece, time.monotonic()):
                self.process_message(message)

    def close(self) -> None:
        """What was written has been taken, or had LEAVE_SECONDS for that; then it is dropped but for the last words."""
        writer = self.detach_writer()
        if writer is None:
            return
        writer.join(LEAVE_SECONDS)
        end = time.monotonic() + LEAVE_SECONDS
        while writer.is_alive() and time.monotonic() < end:
            self._forget_untaken()
            writer.join(FLUSH_SECONDS)

    def give_back(self) -> None:
        """The terminal and its signals are as they were, also where the screen was left halfway."""
        if self._is_wanted:
            self.stop_application_mode()
        self.close()
        restore_signals(self._former)

    def _turn_on(self) -> None:
        """The terminal shows the whole screen; while it is not ours, it is looked at again and again."""
        if self._next_look is not None:
            self._next_look.cancel()
            self._next_look = None
        if self.is_on or not self._is_wanted:
            return
        if not self.is_in_foreground:
            self._next_look = self.loop.call_later(FOREGROUND_SECONDS, self._turn_on)
            return
        unrestored = self.attrs_before
        super().start_application_mode()  # type: ignore[no-untyped-call]  # Textual has no types there
        if unrestored is not None:
            self.attrs_before = unrestored
        if self.is_writing:
            self.is_on = True
            self.lift_write_limit()
            self.on_again_at = get_time()
            self.app.refresh(layout=True)

    def _turn_off(self) -> None:
        """The terminal is as it was before; its modes are left alone where they are another's by now."""
        if not self.is_on:
            return
        self.is_on = False
        self.drop_unwritten()
        if self._title:
            self._title = ""
            self.write(POP_TITLE)
        kept = None
        if not self.is_in_foreground:
            kept, self.attrs_before = self.attrs_before, None
        super().stop_application_mode()
        self.attrs_before = kept

    def stop_requested(self) -> None:
        """Somebody else wants the program to stand still."""
        self._call_in_loop(self._heed_stop)

    def continued(self) -> None:
        """Somebody continued the program."""
        self._was_continued = True
        self._call_in_loop(self._heed_continue)

    def _call_in_loop(self, call: Callable[[], object]) -> None:
        """A signal may have interrupted code that holds a lock."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(call)

    def _heed_stop(self) -> None:
        self.suspend(os.getpid())

    def _heed_continue(self) -> None:
        """What stopped the program gave no notice (SIGSTOP): whatever the terminal shows now, and in which modes."""
        if self._was_continued:
            self._was_continued = False
            self._turn_off()
            self.close()
            self._turn_on()

    def _forget_untaken(self) -> None:
        """The kernel drops what the terminal has not taken, so that there is room for the words that restore it."""
        with contextlib.suppress(termios.error):
            termios.tcflush(self.fileno, termios.TCOFLUSH)
            termios.tcflow(self.fileno, termios.TCOOFF)
            termios.tcflow(self.fileno, termios.TCOON)  # Linux wakes a writer for this, not for the room that it has
