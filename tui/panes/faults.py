"""Faults of the screen are reported once: in the log on the screen, and where the process's output goes."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable

from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.panes.base import Pane, in_words

OUTPUT = 2  # the descriptor of stderr: redirected while a screen is on, which `sys.stderr` is not


class Faults:
    """Owned by the app. Knows which faults of drawing were reported: a pane that fails does so with every picture."""

    def __init__(self, view: RunView, clock: Callable[[], float]) -> None:
        self._view, self._clock = view, clock
        self._known: set[tuple[str, ...]] = set()

    def collect(self, panes: Iterable[Pane]) -> None:
        """The panes' newest faults are in the log, each with its traceback, unless they are there already."""
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
        self._view.add_log(self._clock(), "error", "SCREEN", "", story)
        write_beside(story)


def traceback_of(error: BaseException) -> str:
    """As Python would print it."""
    return "".join(traceback.format_exception(error))


def write_beside(text: str) -> None:
    """The text is where the process's output goes while a screen is on; lost where that takes no more."""
    try:
        os.write(OUTPUT, (safe_text(text, multiline=True).rstrip("\n") + "\n").encode(errors="replace"))
    except OSError:
        return
