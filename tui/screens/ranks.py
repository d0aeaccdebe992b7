"""The ranks of a run that has several."""

from __future__ import annotations

from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.rank_list import RankList
from rl_tui.tui.screens.context import Context
from rl_tui.tui.screens.list_screen import ListScreen


class RanksScreen(ListScreen):
    """enter shows all about one of them, also its whole host name."""

    BINDINGS = bindings("ranks")
    places = ("ranks",)

    def __init__(self, context: Context, name: str) -> None:
        super().__init__(context, name, RankList())
