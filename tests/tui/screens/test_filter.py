"""The line in which a filter is typed: the list follows, and no letter acts."""

from __future__ import annotations

import pytest

from rl_tui.engine.session.messages import LogEmitted
from rl_tui.tui.panes.filter_line import FilterInput
from rl_tui.tui.panes.list import mistake
from tests.tui import scenes
from tests.tui.driver import Driven

SIZES = [(80, 24), (120, 40), (200, 60)]


@pytest.mark.parametrize("size", SIZES)
async def test_list_follows_every_letter_and_enter_keeps_the_filter(size: tuple[int, int]) -> None:
    async with Driven(scenes.healthy(2).view(), size, opened="checkpoints") as screen:
        text = await screen.press("slash", "1", "0")
        assert "filter checkpoints: /10" in text
        assert "Walker-000150000" not in text
        text = await screen.press("0", "k", "enter")
        assert "Checkpoints of Walker · 3 /100k/" in text
        assert "Walker-000100000" in text
        assert "filter checkpoints" not in text
        assert "rank 2 of 3" in await screen.press("down")
        assert screen.session.commands == []


@pytest.mark.parametrize("size", SIZES)
async def test_letters_type_and_never_act(size: tuple[int, int]) -> None:
    async with Driven(scenes.healthy(2).view(), size, opened="checkpoints") as screen:
        letters = "qpPcCeEkuaRz?1o"
        keys = ["question_mark" if letter == "?" else letter for letter in letters]
        await screen.press("slash")
        await screen.pilot.press(*keys, "space", "slash", "full_stop")
        text = await screen.text()
        assert f"/{letters} /." in text
        assert screen.session.commands == []
        assert screen.screen.name == "checkpoints"


async def test_escape_shows_all_again_first_while_typing_and_then_on_the_list() -> None:
    async with Driven(scenes.healthy(1).view(), opened="checkpoints") as screen:
        await screen.press("slash", "x", "x")
        text = await screen.press("escape")
        assert "/xx/" not in text
        assert "Walker-000150000" in text
        assert "/xx/" in await screen.press("slash", "x", "x", "enter")
        assert "/xx/" not in await screen.press("escape")
        assert screen.screen.name == "checkpoints"
        await screen.press("escape")
        assert screen.screen.name == "overview"


async def test_arrows_move_through_the_list_while_typing() -> None:
    async with Driven(scenes.healthy(1).view(), opened="checkpoints") as screen:
        assert "rank 3 of 3" in await screen.press("slash", "W", "down", "down")
        assert isinstance(screen.screen.focused, FilterInput)


async def test_filter_is_shown_again_when_it_is_changed() -> None:
    async with Driven(scenes.healthy(1).view(), opened="checkpoints") as screen:
        await screen.press("slash", "1", "0", "enter")
        text = await screen.press("slash", "0", "enter")
        assert "/100/" in text


async def test_bad_expression_is_reported_and_taken_literally() -> None:
    story = scenes.healthy(1)
    story.publish(LogEmitted("info", "run", "an odd (line"))
    async with Driven(story.view(), (120, 40), opened="log") as screen:
        text = await screen.press("slash", "left_parenthesis")
        assert "matched as plain text: missing )" in text
        assert "an odd (line" in text
        assert "keep_checkpoints" not in text


def test_good_expression_has_no_mistake() -> None:
    assert mistake("a|b.*") == ""
    assert "nothing to repeat" in mistake("*")


async def test_other_pane_that_gets_the_keys_closes_the_line_and_keeps_the_filter() -> None:
    async with Driven(scenes.healthy(1).view(), opened="hyperparameters") as screen:
        text = await screen.press("slash", "x", "tab")
        assert "filter hyperparameters" not in text
        assert screen.app.context.state.filters == {"hyperparameters": "x"}
        assert "-filtering" not in screen.screen.classes


async def test_terminal_that_loses_the_focus_closes_nothing() -> None:
    async with Driven(scenes.healthy(1).view(), opened="checkpoints") as screen:
        await screen.press("slash", "1")
        screen.app.app_focus = False
        await screen.text()
        screen.app.app_focus = True
        assert "/15" in await screen.press("5")


async def test_without_a_list_the_key_says_so() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        screen.screen.set_focus(None)
        assert "filter: no list has the focus" in await screen.press("slash")


async def test_nothing_matches_is_said_in_words() -> None:
    async with Driven(scenes.healthy(1).view(), opened="checkpoints") as screen:
        assert "no line matches /zzz/" in await screen.press("slash", "z", "z", "z", "enter")


async def test_pasted_escape_sequences_are_dropped() -> None:
    async with Driven(scenes.healthy(1).view(), opened="checkpoints") as screen:
        await screen.press("slash")
        screen.screen.query_one(FilterInput).value = "a\x1b[31mb\x07"
        assert "/ab" in await screen.text()
        assert screen.app.context.state.filters == {"checkpoints": "ab"}
