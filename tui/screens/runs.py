"""The runs of the folder: looked at, marked, compared."""

from __future__ import annotations

import asyncio
import time

from textual.app import ComposeResult

from engine.errors import RlTuiError
from engine.session.text import safe_text
from tui.context import Context, Runs
from tui.keymap import bindings
from tui.lines import SERIES
from tui.panes.run_list import RunDetails, RunsList
from tui.screens.base import RunScreen

MOST_MARKED = len(SERIES)  # each has a color
READ_SECONDS = 5.0  # from one look at the folder to the next, at least
READING_SHARE = 10  # and at least so many times what the look took


class RunsScreen(RunScreen):
    """Looks at the folder in another thread, again and again while it is open."""

    BINDINGS = bindings("runs")
    places = ("runs",)

    def __init__(self, context: Context, name: str) -> None:
        super().__init__(context, name)
        self.runs = RunsList()

    def body(self) -> ComposeResult:
        """The list, and all about one of them."""
        yield self.runs
        yield RunDetails(self.runs)

    def on_mount(self) -> None:
        """Reading begins."""
        if self.context.runs is None:
            self.runs.words = "the folder of this run is not known here: there are no other runs to show"
        else:
            self.runs.words = "reading the folder"
            self.run_worker(self._follow(self.context.runs))

    async def _follow(self, runs: Runs) -> None:
        while True:
            began = time.monotonic()
            if self.is_current:
                await self._read(runs)
            await asyncio.sleep(max(READ_SECONDS, READING_SHARE * (time.monotonic() - began)))

    async def _read(self, runs: Runs) -> None:
        try:
            found, words = await asyncio.to_thread(runs.runs), ""
        except RlTuiError as error:
            found, words = [], safe_text(str(error))
        if (tuple(found), words) != (self.runs.runs, self.runs.words):
            self.runs.runs, self.runs.words = tuple(found), words
            self.runs.read_at = 0.0 if self.context.player is None else time.time()
            self.context.redraw()

    def action_mark(self) -> None:
        """Mark the run below the cursor, or no longer; the cursor goes on."""
        entry, marked = self.runs.chosen(), self.runs.marked
        if entry is None:
            self.say("mark: there is no run below the cursor")
        elif entry.key in marked:
            marked.remove(entry.key)
        elif len(marked) == MOST_MARKED:
            self.say(f"mark: {MOST_MARKED} runs are marked already; x on one of them takes its mark back")
        else:
            marked.append(entry.key)
        self.runs.action_cursor(1)

    def action_open(self) -> None:
        """Compare the marked runs; one alone with the run on this screen."""
        entry, own = self.runs.chosen(), self.context.view.run
        chosen = [run_id for run_id in self.runs.marked if self.runs.found(run_id) is not None]
        if not chosen and entry is not None:
            chosen = [entry.key]
        if len(chosen) == 1 and own is not None and own.run_id not in chosen:
            chosen.insert(0, own.run_id)
        if not chosen:
            self.say("compare: there is no run below the cursor")
            return
        from tui.screens.comparison import ComparisonScreen  # with the charts: imported when first opened

        screen = ComparisonScreen(self.context, "comparison", chosen)
        self.app.push_screen(screen)
        screen.call_after_refresh(self.context.redraw)

    def action_copy(self) -> None:
        """Copy the path of the run below the cursor."""
        entry = self.runs.chosen()
        run = self.runs.found(entry.key) if entry is not None else None
        if run is None:
            self.say("copy: there is no run below the cursor")
        else:
            self.copy(safe_text(run.path))
