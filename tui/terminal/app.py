"""What every app has that draws on this terminal: its colors, and a picture of which only what changed is written."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar, get_args

from textual.timer import Timer, TimerCallback

from rl_tui.tui.drawing.glyphs import Colors, glyphs_for, is_monochrome
from rl_tui.tui.drawing.lines import Tone
from rl_tui.tui.drawing.painting import exact_console
from rl_tui.tui.drawing.themes import Themes
from rl_tui.tui.terminal.driver import TerminalDriver
from rl_tui.tui.terminal.painter import Painter
from rl_tui.tui.textual_private import FailingApp, driver_of, fail, fire_late, forget_removed_widgets

Result = TypeVar("Result")


class TerminalApp(FailingApp[Result]):
    """Runs in the main thread. `show()` returns what it was left with, None if the screen failed."""

    COMPONENT_CLASSES = {f"tone--{tone}" for tone in get_args(Tone)}  # each would cost every pane 0.6 ms
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (40, "-compact"), (60, "-narrow"), (100, "-normal"), (160, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (10, "-low"), (15, "-squat"), (22, "-short"), (30, "-tall"), (48, "-high")]

    def __init__(
        self,
        *,
        ascii: bool,  # as on the command line
        theme: str | None,
        last_theme: str,
        save_theme: Callable[[str], None] | None,
    ) -> None:
        """theme: a name in THEMES; None for last_theme, the one chosen last, "" for none. save_theme: see Themes."""
        super().__init__(driver_class=TerminalDriver)
        self.keep_streams()
        forget_removed_widgets()
        self.themes = Themes(self, last_theme, save_theme)
        self._requested_theme = theme
        self._glyphs = glyphs_for(os.environ, ascii)
        self._painter = Painter(self, self._poll_sooner)
        self.no_color = self.no_color or is_monochrome(os.environ)
        self._colors: Colors = "" if self.no_color else self.console.color_system or ""  # type: ignore[assignment]
        self.animation_level = "none"
        self.console = exact_console(self.console)

    @property
    def terminal(self) -> TerminalDriver | None:
        """The terminal of the screen; None before it is on, and without a terminal."""
        driver = driver_of(self)
        return driver if isinstance(driver, TerminalDriver) else None

    def show(self, *, mouse: bool) -> Result | None:
        """Run the screen until it is left; the terminal is restored, whatever happened."""
        try:
            return self.run(mouse=mouse)
        except Exception as error:  # noqa: BLE001  # no failure of the screen may reach the run
            fail(self, error)
            return None
        finally:
            if self.terminal is not None:
                self.terminal.restore()

    def show_update(self, sequences: str) -> None:
        """Draw it; what of the picture has changed is written as soon as the terminal takes it."""
        self._painter.draw(sequences)

    def forget_terminal(self) -> None:
        """Something else may have written to the terminal: all of it is written again."""
        self._painter.forget()

    def take_terminal(self) -> None:
        """It is turned on, and all of it is written."""
        self._painter.begin()

    def set_timer(
        self, delay: float, callback: TimerCallback | None = None, *, name: str | None = None, pause: bool = False
    ) -> Timer:
        """As in Textual; it fires also where it is late from the start."""
        timer = super().set_timer(delay, callback, name=name, pause=pause)
        fire_late(timer)
        return timer

    def on_load(self) -> None:
        """The colors are known before anything is laid out."""
        self.themes.apply_first(self._requested_theme)

    def _poll_sooner(self) -> None:
        """The terminal has not taken the last picture yet: try again to write, soon."""
