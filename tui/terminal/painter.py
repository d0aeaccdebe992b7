"""When the picture is written: once for a switch of screens, and never while the terminal is busy with the last one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from rl_tui.tui.drawing.painting import is_behind
from rl_tui.tui.terminal.driver import TerminalDriver
from rl_tui.tui.terminal.picture import Picture
from rl_tui.tui.textual_private import FailingApp, driver_of, write_picture

HOLD_SECONDS = 0.25  # at most, from a switch of screens to its picture


class Painter:
    """Used in the app's thread. Owns the picture of the terminal.

    poll_sooner: asks for `write` to be called soon, because the terminal has not taken the last picture yet.
    """

    def __init__(self, app: FailingApp[Any], poll_sooner: Callable[[], None]) -> None:
        self._app, self._poll_sooner = app, poll_sooner
        self._can_erase_in_color = erases_in_color(os.environ)
        self._picture = Picture(0, 0)
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
        if is_behind(self._app):
            self._poll_sooner()
        elif time.monotonic() >= self._held_until:
            self._held_until = 0.0
            difference = self._picture.difference()
            if difference:
                write_picture(self._app, difference)

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
