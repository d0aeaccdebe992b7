"""The configuration of this run, and how it differs from the defaults and from another run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rl_tui.engine.errors import RlTuiError
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.painting import Patch
from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.configuration_list import ConfigurationList
from rl_tui.tui.runs.configurations import Setting, Settings, compared, read_settings
from rl_tui.tui.runs.sources import Runs
from rl_tui.tui.screens.context import Context
from rl_tui.tui.screens.list_screen import ListScreen

if TYPE_CHECKING:
    from rl_tui.engine.config.default_configuration import DefaultConfiguration


class ConfigurationScreen(ListScreen):
    """Reads files in other threads; what was read stays as long as it is open."""

    BINDINGS = bindings("configuration")
    places = ("configuration",)

    def __init__(self, context: Context, name: str) -> None:
        self.settings = ConfigurationList()
        super().__init__(context, name, self.settings)
        self._own: Settings | None = None
        self._defaults: Settings = {}
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

    def action_open(self) -> None:
        """Open the section below the cursor or close it, or show the setting in full."""
        entry = self.settings.chosen()
        if entry is not None and self.settings.toggle(entry):
            self.context.redraw()
        else:
            super().action_open()

    def action_section(self, opens: bool) -> None:
        """Open the section below the cursor, or close the innermost one that the cursor is in."""
        entry = self.settings.chosen()
        if entry is not None:
            (self.settings.open_section if opens else self.settings.close_section)(entry)
            self.context.redraw()

    async def _read_own(self, runs: Runs, name: str) -> None:
        try:
            own, defaults = await asyncio.to_thread(_with_defaults, runs, name)
        except (RlTuiError, ValueError) as error:
            self.settings.words = f"the configuration cannot be read: {safe_text(str(error))}"
        else:
            self._own, self.settings.words = own, ""
            if isinstance(defaults, str):
                self.say(f"the defaults are not known: {defaults}")
            else:
                self._defaults = read_settings(defaults.text)
                self.settings.has_defaults = True
                paths = [tuple(safe_text(str(key)) for key in path) for path in defaults.added]
                self.settings.added = [Setting(path, "on", default="off") for path in paths]
            self.settings.settings = compared(own, None, self._defaults)
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
        there: Settings | None = None
        self.say(f"compared with {name}; d compares with the next run" if name else "no longer compared")
        if name:
            try:
                there = await asyncio.to_thread(_settings, runs, name)
            except (RlTuiError, ValueError) as error:
                self.say(f"{name}: {error}")
                name = ""
        self.settings.other, self.settings.settings = name, compared(own, there, self._defaults)
        self.context.redraw()


def _with_defaults(runs: Runs, name: str) -> tuple[Settings, DefaultConfiguration | str]:
    """Those of the run, and the defaults for it or why they are not known."""
    text = runs.configuration(name)
    settings = read_settings(text)
    from rl_tui.engine.config.default_configuration import default_configuration  # a third of a second where none was

    try:
        return settings, default_configuration(text)
    except RlTuiError as error:
        return settings, str(error).splitlines()[0]


def _settings(runs: Runs, name: str) -> Settings:
    return read_settings(runs.configuration(name))
