"""The runs of the folder: looked at, marked, compared."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from textual.app import ComposeResult

from rl_tui.engine.errors import RlTuiError
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.lines import SERIES
from rl_tui.tui.drawing.text import size
from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.run_list import TITLES, RunDetails, RunsList
from rl_tui.tui.runs.browsing import is_of_no_run
from rl_tui.tui.runs.comparing import RunChoice
from rl_tui.tui.runs.groups import GroupReader
from rl_tui.tui.runs.rows import is_rising
from rl_tui.tui.runs.sources import Runs
from rl_tui.tui.screens.base import RunScreen
from rl_tui.tui.screens.context import Context
from rl_tui.tui.screens.questions import behavior_prompt, removal_prompt, resume_elsewhere, resume_here
from rl_tui.tui.state.choices import RunsColumn
from rl_tui.tui.terminal.relaunch import shell_command

if TYPE_CHECKING:
    from rl_tui.engine.session.summaries import Removal, RunSummary

T = TypeVar("T")

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
            self.runs.words = "there are no other runs to show: this run has no folder here"
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
        self.runs.is_past = self.context.player is not None or self.context.view.is_over
        try:
            found, words = await asyncio.to_thread(runs.runs), ""
            if self.context.state.runs.is_grouped:
                groups = await asyncio.to_thread(self._groups.of, found, runs)
        except RlTuiError as error:
            found, words = [], safe_text(str(error))
        if (tuple(found), groups, words) != (self.runs.runs, self.runs.groups, self.runs.words):
            self.runs.runs, self.runs.groups, self.runs.words = tuple(found), groups, words
            self.context.redraw()

    def action_group(self) -> None:
        """A line for each configuration, or for each run."""
        order = self.context.state.runs
        order.is_grouped = not order.is_grouped
        self._is_wanted.set()
        self.say(f"runs: {'grouped by everything but the seed' if order.is_grouped else 'one line each'}")

    def action_sort(self, by: int) -> None:
        """By the next column that is shown, or by the one before."""
        order, columns = self.context.state.runs, self.runs.columns()
        at = columns.index(order.column) if order.column in columns else -1 if by > 0 else 0
        order.column, order.is_reversed = columns[(at + by) % len(columns)], False
        self._say_order()

    def action_sort_reversed(self) -> None:
        """From the other end."""
        order = self.context.state.runs
        order.is_reversed = not order.is_reversed
        self._say_order()

    def action_sort_by(self, column: RunsColumn) -> None:
        """By that column; from its other end where it is sorted by it already."""
        order = self.context.state.runs
        order.column, order.is_reversed = column, order.column == column and not order.is_reversed
        self._say_order()

    def _say_order(self) -> None:
        order = self.context.state.runs
        end = "lowest" if is_rising(order.column, is_reversed=order.is_reversed) else "highest"
        self.say(f"sorted by {TITLES.get(order.column, order.column)}, {end} first")

    def action_mark(self) -> None:
        """Mark the run below the cursor, or no longer; the cursor stays."""
        entry, marked = self.runs.chosen(), self.context.state.marked
        if entry is None:
            self.say("mark: no run is selected")
        elif entry.key in marked:
            marked.remove(entry.key)
        elif len(marked) == MOST_MARKED:
            self.say(f"mark: {MOST_MARKED} runs are marked already; * on one of them unmarks it")
        else:
            marked.append(entry.key)
        if entry is not None:
            self.context.state.cursors[self.runs.topic] = entry.key  # also where it was on the first line by default
        self.context.redraw()

    def action_open(self) -> None:
        """Compare the marked runs; one alone with the run on this screen."""
        row, own = self.runs.chosen_row(), self.context.view.run
        chosen = [found for key in self.context.state.marked if (found := self.runs.found(key)) is not None]
        if not chosen and row is not None:
            chosen = [row]
        members = [RunChoice(each.name, tuple(run.run_id for run in each.runs)) for each in chosen]
        if len(members) == 1 and own is not None and members[0].run_ids != (own.run_id,):
            members.insert(0, RunChoice(own.run_id, (own.run_id,)))
        if not members:
            self.say("compare: no run is selected")
            return
        from rl_tui.tui.screens.comparison import ComparisonScreen  # with the charts: imported when first opened

        screen = ComparisonScreen(self.context, "comparison", members)
        self.app.push_screen(screen)
        screen.call_after_refresh(self.context.redraw)

    def action_delete(self) -> None:
        """Ask, and then remove the run below the cursor."""
        run = self._alone("delete")
        if run is None:
            return
        if self._is_own(run):
            self.say(f"delete {safe_text(run.run_id)}: not possible, it is on this screen")
            return
        self.run_worker(self._delete(run))

    def action_resume(self) -> None:
        """Ask, and then go on with the run below the cursor in the place of this screen, or say how elsewhere.

        One that another process trains is attached to.
        """
        run = self._alone("resume")
        if run is not None and run.is_alive and not self._is_own(run):
            self._show_live(run)
        elif run is not None:
            self.run_worker(self._resume(run))

    def action_evaluate(self) -> None:
        """Play the run below the cursor in a process of its own."""
        run = self._alone("evaluate")
        if run is not None:
            self.run_worker(self._evaluate(run))

    async def _delete(self, run: RunSummary) -> None:
        found = await self._tried("delete", run, lambda runs: runs.preview_removal(run.run_id))
        if found is not None:
            self.open_dialog(removal_prompt(run, found), lambda _: self._begin_removal(run, found))

    def _begin_removal(self, run: RunSummary, found: Removal) -> None:
        self.run_worker(self._remove(run, found))

    async def _remove(self, run: RunSummary, found: Removal) -> None:
        def remove(runs: Runs) -> bool:
            runs.remove(run.run_id)
            return True

        self.say(f"deleting {safe_text(run.run_id)}")
        if await self._tried("delete", run, remove):
            self.say(f"deleted {safe_text(run.run_id)}: {size(found.num_bytes)} in {safe_text(found.path)}")
        if run.run_id in self.context.state.marked:
            self.context.state.marked.remove(run.run_id)
        self._is_wanted.set()

    @property
    def _is_free(self) -> bool:
        """Whether another command line may take the place of this screen."""
        return self.context.player is not None or self.context.view.is_over or self.context.detaches

    def _show_live(self, run: RunSummary) -> None:
        words = ("attach", run.path)
        if self._is_free:
            self.context.exit_for(words)
        else:
            self.copy(shell_command(words))

    async def _resume(self, run: RunSummary) -> None:
        words = await self._tried("resume", run, lambda runs: runs.resume_command(run.run_id))
        if words is None:
            return
        is_free = self._is_free

        def go_on(is_yes: bool) -> None:
            if is_yes and is_free:
                self.context.exit_for(words)
            elif is_yes:
                self.copy(shell_command(words))

        self.open_dialog(resume_here(run, words) if is_free else resume_elsewhere(run, words), go_on)

    async def _evaluate(self, run: RunSummary) -> None:
        words = await self._tried("evaluate", run, lambda runs: runs.evaluate_command(run.run_id))
        if words is None:
            return
        from rl_tui.tui.screens.evaluation import (
            EvaluationScreen,  # with asyncio's processes: imported when first opened
        )

        def play(behavior: str = "") -> None:
            which = ("--behavior", behavior) if behavior else ()
            self.open_dialog(EvaluationScreen(run.run_id, (*words, *which, "--progress")))

        if len(run.behaviors) > 1:
            self.open_dialog(behavior_prompt(run), play)
        else:
            play()

    async def _tried(self, verb: str, run: RunSummary, ask: Callable[[Runs], T]) -> T | None:
        """The answer of the folder, which may take a while; None where it refuses, with its reason said."""
        assert self.context.runs is not None
        try:
            return await asyncio.to_thread(ask, self.context.runs)
        except RlTuiError as error:
            self.context.status.say(f"{verb} {safe_text(run.run_id)}: {safe_text(str(error))}", "bad")
            self.context.redraw()
            return None

    def _alone(self, verb: str) -> RunSummary | None:
        """The run below the cursor, where it is one and may be changed; else it is said why not."""
        row = self.runs.chosen_row()
        if row is None:
            self.say(f"{verb}: no run is selected")
        elif self.context.forbids:
            self.say(f"{verb} {safe_text(row.name)}: not possible, {self.context.forbids}")
        elif row.is_group:
            self.say(f"{verb}: {safe_text(row.name)} is a group of {len(row.runs)} runs; J shows them one by one")
        else:
            return row.runs[0]
        return None

    def _is_own(self, run: RunSummary) -> bool:
        return self.context.view.run is not None and self.context.view.run.run_id == run.run_id

    def action_back(self) -> None:
        """Where there is no run on the screen, there is nothing behind the list."""
        if is_of_no_run(self.context.view) and not self.context.state.filters.get("runs"):
            self.say("these are the runs of the folder; q leaves")
        else:
            super().action_back()

    def action_copy(self) -> None:
        """Copy the path of the run below the cursor."""
        row = self.runs.chosen_row()
        if row is None:
            self.say("copy: no run is selected")
        else:
            self.copy(safe_text(" ".join(run.path for run in row.runs)))
