"""The terminal while a screen is on: it never holds up the program, whatever becomes of it, and is given back."""

from __future__ import annotations

import codecs
import contextlib
import os
import queue
import select
import signal
import termios
import time
from typing import Any

from textual.app import App
from textual.drivers.linux_driver import LinuxDriver

from tui.keyboard import Keyboard
from tui.signals import hand_back

LEAVE_SECONDS = 2.0  # what a terminal that takes nothing may cost the way out
FLUSH_SECONDS = 0.05
KEY_MILLISECONDS = 50  # from one look at the keys to the next
LARGEST_PIECE = 4096  # bytes
GONE_SECONDS = 0.2
SIGNALS = (signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)  # Textual's driver takes them and keeps them


class TerminalDriver(LinuxDriver):
    """Made and used in the main thread. Owns the signals of the terminal's job control and size until `give_back`.

    is_on: whether the terminal shows the screen.
    """

    def __init__(self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: Any = None) -> None:
        self.is_on = False
        self._former = {number: signal.getsignal(number) for number in SIGNALS}
        super().__init__(app, debug=debug, mouse=mouse, size=size)

    @property
    def is_gone(self) -> bool:
        """Whether nothing can come from the terminal any more, be there a signal for that or not."""
        poll = select.poll()
        poll.register(self.fileno, 0)
        return any(what & (select.POLLHUP | select.POLLERR) for _, what in poll.poll(0))

    def start_application_mode(self) -> None:
        """The terminal shows the screen. What it does not take waits, without holding anything up."""
        super().start_application_mode()  # type: ignore[no-untyped-call]  # Textual has no types there
        if self._writer_thread is not None:
            self.is_on = True
            self._writer_thread._queue.maxsize = 0  # Textual's 30 would hold up the app, and with it keys and signals

    def stop_application_mode(self) -> None:
        """The terminal is as it was before, as soon as it takes that; pictures that it has not taken are dropped."""
        self.is_on = False
        if self._writer_thread is not None:
            with contextlib.suppress(queue.Empty):
                while True:
                    self._writer_thread._queue.get_nowait()
        super().stop_application_mode()

    def run_input_thread(self) -> None:
        """Keys come until the screen is left or the terminal is gone, which `is_gone` then says."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTIN})  # reading another job's keys is an error then
        try:
            self._read_keys()
        except Exception as error:  # noqa: BLE001  # Textual would leave without a word on why
            self._app.call_later(self._app._handle_exception, error)

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
                    self.exit_event.wait(GONE_SECONDS)  # until it is ours again, or known to be gone
            for message in keyboard.feed(piece, time.monotonic()):
                self.process_message(message)

    def close(self) -> None:
        """What was written has been taken, or had LEAVE_SECONDS for that; then it is dropped but for the last words."""
        writer = self._writer_thread
        if writer is None:
            return
        writer._queue.put(None)
        writer.join(LEAVE_SECONDS)
        end = time.monotonic() + LEAVE_SECONDS
        while writer.is_alive() and time.monotonic() < end:
            self._forget_untaken()
            writer.join(FLUSH_SECONDS)

    def give_back(self) -> None:
        """The terminal and its signals are as they were, also where the screen was left halfway."""
        if self.is_on:
            self.stop_application_mode()
        self.close()
        hand_back(self._former)

    def _forget_untaken(self) -> None:
        """The kernel drops what the terminal has not taken, so that there is room for the words that restore it."""
        with contextlib.suppress(termios.error):
            termios.tcflush(self.fileno, termios.TCOFLUSH)
            termios.tcflow(self.fileno, termios.TCOOFF)
            termios.tcflow(self.fileno, termios.TCOON)  # Linux wakes a writer for this, not for the room that it has
