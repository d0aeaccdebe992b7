"""The worker processes of every environment."""

from __future__ import annotations

from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.worker_list import WorkerList
from rl_tui.tui.screens.context import Context
from rl_tui.tui.screens.list_screen import ListScreen


class WorkersScreen(ListScreen):
    """enter shows all about one of them, also why it is restarting."""

    BINDINGS = bindings("workers")
    places = ("workers",)

    def __init__(self, context: Context, name: str) -> None:
        super().__init__(context, name, WorkerList())
