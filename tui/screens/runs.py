"""The runs of the folder: looked at, marked, compared."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from textual.app import ComposeResult

from engine.errors import RlTuiError
from engine.session.text import safe_text
from tui.comparing import Chosen
from tui.context import Context, Runs
from tui.keymap import bindings
from tui.lines import SERIES
from tui.panes.run_list import RunDetails, RunsList
from tui.run_groups import GroupReader
from tui.run_rows import is_rising
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
        self._groups = GroupReader()
        self._is_wanted = asyncio.Event()  # a look at the folder, at once

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
            with suppress(TimeoutError):
                rest = max(READ_SECONDS, READING_SHARE * (time.monotonic() - began))
                await asyncio.wait_for(self._is_wanted.wait(), rest)
            self._is_wanted.clear()

    async def _read(self, runs: Runs) -> None:
        groups = self.runs.groups
        try:
            found, words = await asyncio.to_thread(runs.runs), ""
            if self.context.state.runs.is_grouped:
                groups = await asyncio.to_thread(self._groups.of, found, runs)
        except RlTuiError as error:
            found, words = [], safe_text(str(error))
        if (tuple(found), groups, words) != (self.runs.runs, self.runs.groups, self.runs.words):
            self.runs.runs, self.runs.groups, self.runs.words = tuple(found), groups, words
            self.runs.read_at = 0.0 if self.context.player is None else time.time()
            self.context.redraw()

    def action_group(self) -> None:
        """A line for each configuration, or for each run."""
        order = self.context.state.runs
        order.is_grouped = not order.is_grouped
        self._is_wanted.set()
        self.say(f"runs: {'grouped by everything but the seed' if order.is_grouped else 'each in a line'}")

    def action_sort(self) -> None:
        """By the next column that is shown."""
        order, columns = self.context.state.runs, self.runs.columns()
        at = columns.index(order.column) if order.column in columns else -1
        order.column, order.is_reversed = columns[(at + 1) % len(columns)], False
        self._say_order()

    def action_sort_reversed(self) -> None:
        """From the other end."""
        order = self.context.state.runs
        order.is_reversed = not order.is_reversed
        self._say_order()

    def _say_order(self) -> None:
        order = self.context.state.runs
        end = "lowest" if is_rising(order.column, is_reversed=order.is_reversed) else "highest"
        self.say(f"sorted by {order.column}, {end} first")

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
        row, own = self.runs.chosen_row(), self.context.view.run
        chosen = [found for key in self.runs.marked if (found := self.runs.found(key)) is not None]
        if not chosen and row is not None:
            chosen = [row]
        members = [Chosen(each.name, tuple(run.run_id for run in each.runs)) for each in chosen]
        if len(members) == 1 and own is not None and members[0].run_ids != (own.run_id,):
            members.insert(0, Chosen(own.run_id, (own.run_id,)))
        if not members:
            self.say("compare: there is no run below the cursor")
            return
        from tui.screens.comparison import ComparisonScreen  # with the charts: imported when first opened

        screen = ComparisonScreen(self.context, "comparison", members)
        self.app.push_screen(screen)
        screen.call_after_refresh(self.context.redraw)

    def action_copy(self) -> None:
        """Copy the path of the run below the cursor."""
        row = self.runs.chosen_row()
        if row is None:
            self.say("copy: there is no run below the cursor")
        else:
            self.copy(safe_text(" ".join(run.path for run in row.runs)))
