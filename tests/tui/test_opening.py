"""What opening a screen costs: its widgets are styled once."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode

from tests.tui import scenes
from tests.tui.driver import Driven

ALL = 20  # widgets of a screen, about


@pytest.fixture
def styled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many widgets were styled at a time."""
    numbers: list[int] = []
    update = Stylesheet.update_nodes

    def counted(sheet: Stylesheet, nodes: Iterable[DOMNode], animate: bool = False) -> None:
        found = list(nodes)
        numbers.append(len(found))
        update(sheet, found, animate)

    monkeypatch.setattr(Stylesheet, "update_nodes", counted)
    return numbers


@pytest.mark.parametrize("opened", ["", "detail"])
async def test_a_screen_is_styled_once_for_its_size(opened: str, styled: list[int]) -> None:
    async with Driven(scenes.healthy(3).view(), (200, 60)) as driven:
        if opened:
            styled.clear()
            driven.screen.action_open_screen(opened)
            await driven.tick()
        assert sum(number >= ALL for number in styled) == 1
        assert {"-wide", "-high"} <= driven.screen.classes
