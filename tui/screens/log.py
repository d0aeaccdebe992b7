"""The log by level and behavior, and the warnings alone."""

from __future__ import annotations

from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.log_list import LEVELS, LogList, WarningsList
from rl_tui.tui.screens.context import Context
from rl_tui.tui.screens.list_screen import ListScreen


class LogScreen(ListScreen):
    """The log."""

    BINDINGS = bindings("log")
    places = ("log",)

    def __init__(self, context: Context, name: str) -> None:
        super().__init__(context, name, LogList())

    def on_unmount(self) -> None:
        """It opens at its end, wherever the cursor was before."""
        self.context.state.cursors.pop(LogList.topic, None)

    def action_level(self) -> None:
        """The next lowest level."""
        state = self.context.state
        state.log_level = LEVELS[(LEVELS.index(state.log_level) + 1) % len(LEVELS)]
        self.context.redraw()

    def action_all_behaviors(self) -> None:
        """The selected behavior's lines, or all."""
        toggle_behavior(self.context)


class WarningsScreen(ListScreen):
    """The warnings; what is wrong now stands on top."""

    BINDINGS = bindings("warnings")
    places = ("warnings",)

    def __init__(self, context: Context, name: str) -> None:
        super().__init__(context, name, WarningsList())

    def action_all_behaviors(self) -> None:
        """The selected behavior's warnings, or all."""
        toggle_behavior(self.context)


def toggle_behavior(context: Context) -> None:
    """Show the lines of the selected behavior alone, or all again."""
    context.state.log_is_of_selected = not context.state.log_is_of_selected
    context.redraw()
