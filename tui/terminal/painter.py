"""When the picture is written: once for a switch of screens, and never while the terminal is busy with the last one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from rl_tui.tui.terminal.driver import TerminalDriver
from rl_tui.tui.terminal.flow import QUERY, Flow
from rl_tui.tui.terminal.picture import Picture
from rl_tui.tui.textual_private import FailingApp, driver_of, num_unwritten, write_picture

HOLD_SECONDS = 0.25  # at most, from a switch of screens to its picture
FRAME_BYTES = 24  # around a picture: its beginning and end
FIRST_QUERY_BYTES = 150  # of the modes that are set when the screen is turned on


class Painter:
    """Used in the app's thread. Owns the picture of the terminal.

    poll_sooner: asks for `write` to be called soon, because the terminal has not taken the last picture yet.
    """

    def __init__(self, app: FailingApp[Any], poll_sooner: Callable[[], None]) -> None:
        self._app, self._poll_sooner = app, poll_sooner
        self._can_erase_in_color = erases_in_color(os.environ)
        self._picture = Picture(0, 0)
        self._flow = Flow()
        self._is_scheduled = False
        self._held_until = 0.0

    @property
    def is_due(self) -> bool:
        """Whether something was drawn and is not written yet."""
        return self._picture.is_due

    @property
    def is_held(self) -> bool:
        """Whether a screen is about to be shown."""
        return self._held_until > 0

    @property
    def is_behind(self) -> bool:
        """Whether nothing can be written now, because the terminal has not taken what came before."""
        room = self._flow.room(time.monotonic())
        return num_unwritten(self._app) > 0 if room is None else room == 0

    @property
    def line(self) -> Flow:
        """How the line to the terminal keeps up."""
        return self._flow

    def begin(self) -> None:
        """The terminal is turned on: nothing is known of what it shows, and of the line to it."""
        self._flow = Flow()
        driver = driver_of(self._app)
        if isinstance(driver, TerminalDriver):
            driver.write(QUERY)
            self._flow.sent(FIRST_QUERY_BYTES, time.monotonic())
        self.forget()

    def on_answer(self, now: float) -> None:
        """The terminal has taken the oldest part of what is on its way, at the time `now`."""
        self._flow.answered(now)

    def on_key(self) -> None:
        """What is drawn from now on is written first."""
        self._picture.on_key()

    def draw(self, sequences: str) -> None:
        """Draw what Textual would write; the difference is written after what else is being drawn."""
        size = self._app.size
        if (self._picture.width, self._picture.height) != tuple(size):
            self._picture = Picture(*size, can_erase_in_color=self._can_erase_in_color)
        self._picture.draw(sequences)
        self._write_soon()

    def hold(self) -> None:
        """Write nothing until the next screen is drawn as a whole, but not for long."""
        self._held_until = time.monotonic() + HOLD_SECONDS
        self._app.set_timer(HOLD_SECONDS, self.write)

    def release(self) -> None:
        """It is drawn."""
        self._held_until = 0.0
        self.write()

    def forget(self) -> None:
        """Write all of it again: something else may have written to the terminal."""
        self._picture.forget()
        self._write_soon()

    def write(self) -> None:
        """Write what has changed, if there is a terminal that takes it now."""
        self._is_scheduled = False
        driver = driver_of(self._app)
        if not self.is_due or not isinstance(driver, TerminalDriver) or not driver.is_on:
            return
        if self.is_behind:
            self._poll_sooner()
        elif time.monotonic() >= self._held_until:
            self._held_until = 0.0
            while self._picture.is_due and (room := self._flow.room(time.monotonic())) != 0:
                self._write_part(driver, room)

    def _write_part(self, driver: TerminalDriver, most: int | None) -> None:
        difference = self._picture.difference(most)
        if not difference:
            return
        write_picture(self._app, difference)
        driver.write(QUERY)
        self._flow.sent(len(difference.encode()) + FRAME_BYTES, time.monotonic())

    def _write_soon(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self.write)


def erases_in_color(environment: Mapping[str, str]) -> bool:
    """Whether erased cells get the background that is set (back_color_erase in terminfo); no, where that is unknown."""
    with contextlib.suppress(Exception):  # without curses, or without an entry for the terminal
        import curses

        curses.setupterm(environment.get("TERM", ""), 2)
        return curses.tigetflag("bce") > 0
    return False
