"""All that rl-tui uses of Textual without a promise of Textual, in the only file that may.

tests/tui/test_textual_private.py names every symbol: another release of Textual breaks that test first.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import signal
import sys
import threading
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import IO, Any, TypeVar, cast

from rich.control import Control
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._compositor import CompositorUpdate
from textual._parser import ParseTimeout
from textual._styles_cache import StylesCache
from textual._time import get_time
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.app import App
from textual.command import CommandPalette
from textual.drivers._writer_thread import WriterThread
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter
from textual.geometry import Region
from textual.keys import _character_to_key
from textual.message import Message
from textual.screen import Screen
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import OptionList
from textual.worker import WorkerFailed

__all__ = [
    "ANSI_SEQUENCES_KEYS", "BRACKETED_PASTE_END", "BRACKETED_PASTE_START", "CompositorUpdate",
    "XTermParser", "get_time",
]  # fmt: skip

Result = TypeVar("Result")
AT_ONCE = 64  # characters that a terminal reads, and shows, at once anyway
_INNER_OUTER = lru_cache(1024)(partial(StylesCache.get_inner_outer.__wrapped__, StylesCache))


class FailingApp(App[Result]):
    """An app that leaves its screen on a failure of its own, which it keeps and gives to `report_failure`.

    Textual would print the values of all variables, which may fail in its turn, and lose what is printed meanwhile.
    """

    def keep_streams(self) -> None:
        """What is printed goes where it would without a screen."""
        self._capture_stdout, self._capture_stderr = sys.stdout, sys.stderr  # type: ignore[assignment]

    def report_failure(self, error: Exception) -> None:
        """The screen is about to be left because of `error`."""

    @property
    def fault(self) -> Exception | None:
        """The first error that the screen was left for."""
        return self._exception

    def show_update(self, sequences: str) -> None:
        """Text and escape sequences that change the picture: those that Textual would write."""

    def take_terminal(self) -> None:
        """The terminal is turned on."""

    def on_terminal_answer(self, now: float) -> None:
        """The terminal has answered a query at the time `now`, of `time.monotonic`."""

    def _display(self, screen: Screen[Any], renderable: object) -> None:
        if not isinstance(renderable, CompositorUpdate) or self._batch_count or not self.is_running or self.is_headless:
            return
        try:
            sequences = renderable.render_segments(self.console)
        except Exception as error:  # noqa: BLE001  # as Textual does
            self._handle_exception(error)
        else:
            self.show_update(sequences)

    def _handle_exception(self, error: Exception) -> None:
        self._return_code = 1
        if isinstance(error, WorkerFailed) and isinstance(error.error, Exception):
            error = error.error
        self.report_failure(error)
        if self._exception is None:
            self._exception = error
            self._exception_event.set()
        self._close_messages_no_wait()


class _LossyTerminal:
    """The terminal as it is written to: what can no longer be written is lost."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._file.flush()


class OpenDriver(LinuxDriver):
    """Textual's driver, with names for what it keeps to itself. `stop_requested` and `continued` answer signals."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        if self._file is not None:
            self._file = cast(Any, _LossyTerminal(self._file))

    @property
    def app(self) -> FailingApp[Any]:
        """The app that it drives."""
        assert isinstance(self._app, FailingApp)
        return self._app

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The app's loop."""
        return self._loop

    @property
    def is_writing(self) -> bool:
        """Whether there is a thread that writes to the terminal."""
        return self._writer_thread is not None

    def detach_writer(self) -> WriterThread | None:
        """The thread that writes, which ends when it has written all; there is none for the driver from now on."""
        writer, self._writer_thread = self._writer_thread, None
        if writer is not None:
            writer._queue.put(None)
        return writer

    def lift_write_limit(self) -> None:
        """Writing never waits: Textual's limit of 30 would hold up the app, and with it keys and signals."""
        if self._writer_thread is not None:
            self._writer_thread._queue.maxsize = 0

    def drop_unwritten(self) -> list[str | None]:
        """What waits to be written never is; returns it."""
        dropped: list[str | None] = []
        if self._writer_thread is not None:
            with contextlib.suppress(queue.Empty):
                while True:
                    dropped.append(self._writer_thread._queue.get_nowait())
        return dropped

    def detach_key_thread(self) -> threading.Thread | None:
        """The thread that reads keys; there is none for the driver from now on."""
        keys, self._key_thread = self._key_thread, None
        return keys

    def disable_mouse(self) -> None:
        """The terminal reports no mouse."""
        self._disable_mouse_support()

    def catch_stop(self) -> None:
        """SIGTSTP comes to `stop_requested`."""
        signal.signal(signal.SIGTSTP, self._sigtstp_application)

    def stop_requested(self) -> None:
        """SIGTSTP came."""

    def continued(self) -> None:
        """SIGCONT came."""

    def _sigtstp_application(self, *_: object) -> None:
        self.stop_requested()

    def _sigcont_application(self, *_: object) -> None:
        self.continued()


class PagingPalette(CommandPalette):
    """Textual's palette, which would page through a list that was not laid out yet or has no room."""

    def _action_command_list(self, action: str) -> None:
        if not action.startswith("page_") or self.query_one(OptionList).scrollable_content_region:
            super()._action_command_list(action)


def fail(app: App[Any], error: Exception) -> None:
    """The app leaves its screen because of `error`."""
    app._handle_exception(error)


def write(app: App[Any], text: str) -> None:
    """The text is on its way to the terminal, where there is one."""
    if app._driver is not None and not app.is_headless:
        app._driver.write(text)


def write_picture(app: App[Any], sequences: str) -> None:
    """The terminal shows them at once, where it can (mode 2026), and the cursor is where the user types."""
    typed_at = app.cursor_position  # (0, 0) where nothing is typed
    cursor = Control.move_to(*app.screen.outer_size.clamp_offset(typed_at)) if typed_at else ""
    if is_long := len(sequences) > AT_ONCE:
        app._begin_update()
    write(app, f"{sequences}{cursor}")
    if is_long:
        app._end_update()


def driver_of(app: App[Any]) -> object:
    """What drives the app; None before it runs."""
    return app._driver


def num_unwritten(app: App[Any]) -> int:
    """How many writes the terminal has not taken yet."""
    writer = getattr(app._driver, "_writer_thread", None)  # there is none without a terminal
    return 0 if writer is None else writer._queue.qsize()


def paint(app: App[Any], screen: Screen[Any], update: CompositorUpdate | None) -> None:
    """The update is on the terminal; all of the screen will be, where Textual holds pictures back."""
    if app._batch_count:
        screen.refresh()
    elif update is not None:
        app._display(screen, update)  # type: ignore[arg-type]  # its own updates are none of Rich's


def paint_now(screen: Screen[Any], widgets: set[Widget]) -> None:
    """What Textual was asked to draw again of these widgets is drawn in this picture, not some messages later."""
    if widgets and screen.is_current and not screen._layout_required and not screen.app._batch_count:
        screen._compositor.update_widgets(widgets)
        screen._compositor_refresh()


def mount_early(app: App[Any], name: str) -> None:
    """The installed screen of that name is mounted, without being shown."""
    app._get_screen(name)


def take_size_classes(screen: Screen[Any]) -> None:
    """The screen has the classes of its size before its widgets are mounted: Textual 8.2.8 would style them all again,
    and lay them out again, once it has laid them out for no size."""
    app, (width, height) = screen.app, screen.app.size
    screen.add_class(
        *screen._get_breakpoint_classes(width, app.HORIZONTAL_BREAKPOINTS or []),
        *screen._get_breakpoint_classes(height, app.VERTICAL_BREAKPOINTS or []),
    )


def follow_terminal_colors(app: App[Any]) -> None:
    """The filter for the terminal's own colors is that of the app's theme."""
    app._refresh_truecolor_filter(app.ansi_theme)


def filter_by(app: App[Any], line_filter: LineFilter) -> None:
    """Everything that is shown goes through that filter alone."""
    app._filters = [line_filter]


def visible_widgets(screen: Screen[Any]) -> Mapping[Widget, tuple[Region, Region]]:
    """Where each widget that can be seen was laid out last, and the part of the terminal that it may paint."""
    return screen._compositor.visible_widgets


def rendered_strips(screen: Screen[Any]) -> list[Strip]:
    """The rows of the screen."""
    return screen._compositor.render_strips()


def request_layout_again(widget: Widget) -> None:
    """Make a layout that is due already see the widget's new height: Textual 8.2.8 would keep the old one."""
    widget._layout_updates += 1


def fire_late(timer: Timer) -> None:
    """It fires in any case: Textual 8.2.8 drops a timer that fires once where the processor was elsewhere for its delay
    just when it started, and an app whose timer for changes of size was dropped follows none of them any more."""
    timer._skip = False


def forget_removed_widgets() -> None:
    """What Textual has rendered of a widget goes when the widget does.

    Textual 8.2.8 keeps that of the last 1,024 widgets, 25 KiB each on average: a cache of colors has them in its keys.
    """
    StylesCache.get_inner_outer = staticmethod(_INNER_OUTER)  # type: ignore[method-assign, assignment]


def render_again(widget: Widget, region: Region) -> None:
    """Textual renders that region of the widget when next it paints it."""
    widget._styles_cache.set_dirty(region)


def key_of(character: str) -> str:
    """Textual's name of the key that types the character."""
    return _character_to_key(character)


def flush_parser(parser: XTermParser) -> list[Message]:
    """What the parser makes of what it has, as if no more came for long."""
    if parser._timeout_time is None:
        return []
    parser._timeout_time = None
    parser._awaiting = parser._gen.throw(ParseTimeout())
    messages = list(parser._tokens)
    parser._tokens.clear()
    return messages
