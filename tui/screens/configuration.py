"""The configuration of this run, and how that of another run differs."""

from __future__ import annotations

import asyncio

from rl_tui.engine.errors import RlTuiError
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.painting import Patch
from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.configuration_list import ConfigurationList
from rl_tui.tui.runs.configurations import Settings, compared, read_settings
from rl_tui.tui.runs.sources import Runs
from rl_tui.tui.screens.context import Context
from rl_tui.tui.screens.list_screen import ListScreen


class ConfigurationScreen(ListScreen):
    """Reads files in other threads; what was read stays as long as it is open."""

    BINDINGS = bindings("configuration")
    places = ("configuration",)

    def __init__(self, context: Context, name: str) -> None:
        self.settings = ConfigurationList()
        super().__init__(context, name, self.settings)
        self._own: Settings | None = None
        self._others: list[str] | None = None  # runs to compare with, newest first; None before they are known
        self._other_at = -1  # index of the one that is compared with, -1 for none
        self._has_begun = False

    def draw(self, frame: Frame) -> list[Patch]:
        """As soon as the run is known, its configuration is read."""
        run, runs = frame.view.run, self.context.runs
        if runs is None:
            self.settings.words = "there is no configuration to show: this run has no folder here"
        elif run is None:
            self.settings.words = "the engine is starting; the configuration appears with the run's folder"
        elif not self._has_begun:
            self._has_begun = True
            self.settings.words = "reading the configuration"
            self.run_worker(self._read_own(runs, run.run_id))
        return super().draw(frame)

    def action_other_run(self) -> None:
        """Compare with the next run; after the last one with none."""
        if self.context.runs is None or self._own is None:
            self.say(f"nothing to compare: {self.settings.words}")
        else:
            self.run_worker(self._compare(self.context.runs, self._own), exclusive=True)

    def action_changed_only(self) -> None:
        """Only what differs, or all."""
        self.settings.has_differences_only = not self.settings.has_differences_only
        self.context.redraw()

    async def _read_own(self, runs: Runs, name: str) -> None:
        try:
            self._own = await asyncio.to_thread(_settings, runs, name)
        except (RlTuiError, ValueError) as error:
            self.settings.words = f"the configuration cannot be read: {safe_text(str(error))}"
        else:
            self.settings.words = ""
            self.settings.settings = compared(self._own, {})
        self.context.redraw()

    async def _compare(self, runs: Runs, own: Settings) -> None:
        if self._others is None:
            self.say("looking for other runs")
            try:
                found = await asyncio.to_thread(runs.runs)
            except RlTuiError as error:
                self.say(str(error))
                return
            mine = self.context.view.run
            self._others = [run.run_id for run in found if mine is None or run.run_id != mine.run_id]
        if not self._others:
            self.say("there is no other run in this folder")
            return
        self._other_at = self._other_at + 1 if self._other_at + 1 < len(self._others) else -1
        name = self._others[self._other_at] if self._other_at >= 0 else ""
        there: Settings = {}
        self.say(f"compared with {name}; d compares with the next run" if name else "no longer compared")
        if name:
            try:
                there = await asyncio.to_thread(_settings, runs, name)
            except (RlTuiError, ValueError) as error:
                self.say(f"{name}: {error}")
                name = ""
        self.settings.other, self.settings.settings = name, compared(own, there)
        self.context.redraw()


def _settings(runs: Runs, name: str) -> Settings:
    return read_settings(runs.configuration(name))
