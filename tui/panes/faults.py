"""Failures of the screen are reported once: in the log on the screen, and in the process's output."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable

from rl_tui.engine.session.live_view import LiveView
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.panes.base import Pane, in_words

OUTPUT = 2  # the descriptor of stderr: redirected while a screen is on, which `sys.stderr` is not


class Faults:
    """Owned by the app. Knows which failures were reported, since a broken pane fails with every picture."""

    def __init__(self, live: LiveView, clock: Callable[[], float]) -> None:
        self._live, self._clock = live, clock
        self._known: set[tuple[str, ...]] = set()

    def collect(self, panes: Iterable[Pane]) -> None:
        """Log the newest failures of the panes with their tracebacks, each once."""
        for pane in panes:
            fault = pane.take_fault()
            if fault is not None:
                self._report(type(pane).__name__, fault)

    def _report(self, name: str, fault: Exception) -> None:
        places = traceback.extract_tb(fault.__traceback__)
        which = (name, type(fault).__name__, *(f"{place.filename}:{place.lineno}" for place in places[-1:]))
        if which in self._known:
            return
        self._known.add(which)
        story = f"{name} could not be drawn: {in_words(fault)}\n{traceback_of(fault)}"
        self._live.view.add_log(self._clock(), "error", "SCREEN", "", story)
        write_output(story)


def traceback_of(error: BaseException) -> str:
    """As Python prints it."""
    return "".join(traceback.format_exception(error))


def write_output(text: str) -> None:
    """Write to the process's output while a screen is on; lost if that cannot be written."""
    try:
        os.write(OUTPUT, (safe_text(text, multiline=True).rstrip("\n") + "\n").encode(errors="replace"))
    except OSError:
        return
