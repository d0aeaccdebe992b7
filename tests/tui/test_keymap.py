"""One table of keys: whatever it holds is bound, explained and spelled one way."""

from __future__ import annotations

import pytest

from engine.session.view import RunView
from tests.fakes import FakeSession
from tui.app import TrainerApp
from tui.keymap import KEYMAP, Key, bindings
from tui.screens.help import HelpScreen, help_blocks
from tui.screens.leave import LeaveScreen
from tui.screens.overview import OverviewScreen

OWNERS = {"anywhere": TrainerApp, "overview": OverviewScreen, "leaving": LeaveScreen, "help": HelpScreen}


@pytest.mark.parametrize("key", KEYMAP, ids=lambda key: f"{key.place}-{key.shown}")
def test_every_key_is_on_the_help_page(key: Key) -> None:
    rows = [row for _, rows in help_blocks() for row in rows]
    assert any(row.split("  ")[1] == key.shown and row.endswith(key.explained) for row in rows)


@pytest.mark.parametrize("key", KEYMAP, ids=lambda key: f"{key.place}-{key.shown}")
def test_every_key_has_its_action(key: Key) -> None:
    assert hasattr(OWNERS[key.place], f"action_{key.action.partition('(')[0]}")


@pytest.mark.parametrize("place", OWNERS)
def test_no_key_is_bound_twice_in_one_place(place: str) -> None:
    names = [binding.key for binding in bindings(place)]
    assert len(names) == len(set(names))


def test_help_page_fits_the_smallest_full_screen() -> None:
    blocks = help_blocks()
    assert sum(1 + len(rows) for _, rows in blocks) <= 22
    assert max(len(row) for _, rows in blocks for row in rows) <= 72


def test_app_makes_no_binding_outside_the_table() -> None:
    app = TrainerApp(FakeSession(), RunView())
    table = {binding.key for binding in bindings("anywhere")}
    assert set(app._bindings.key_to_bindings) == table
