"""A note: one line about the selected behavior, or about the run."""

from __future__ import annotations

import pytest
from textual.events import Key, Paste

from rl_tui.engine.session.messages import AddNote, NoteAdded, RunStateChanged
from rl_tui.tui.screens.prompt import PromptScreen
from tests.tui import scenes
from tests.tui.driver import Driven

SIZES = [(80, 24), (120, 40), (200, 60)]


@pytest.mark.parametrize("size", SIZES)
async def test_note_is_about_the_selected_behavior(size: tuple[int, int]) -> None:
    async with Driven(scenes.healthy(2).view(), size) as screen:
        assert "about Crawler" in await screen.press("2", "a")
        text = await screen.press("q", "space", "k", "enter")
        (command,) = screen.session.commands
        assert isinstance(command, AddNote)
        assert (command.text, command.behavior) == ("q k", "Crawler")
        assert "✓ note: done" in text


async def test_tab_makes_it_about_the_run() -> None:
    async with Driven(scenes.healthy(2).view()) as screen:
        assert "about the run" in await screen.press("a", "tab")
        await screen.press("x", "enter")
        assert screen.session.commands[0].behavior is None  # type: ignore[union-attr]  # a note has one


async def test_empty_note_is_not_taken_and_escape_writes_none() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        text = await screen.press("a", "space", "enter")
        assert isinstance(screen.app.screen, PromptScreen)
        assert "one line: what you saw" in text
        assert not screen.app.screen.query_one(".verdict").has_class("tone--warning"), "nothing is wrong so far"
        await screen.press("escape")
        assert screen.session.commands == []


async def test_keys_typed_faster_than_they_are_drawn_act_in_their_order() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        await screen.press("a")
        for key, character in (("x", "x"), ("backspace", "\x7f"), ("o", "o"), ("home", None), ("n", "n")):
            screen.app.post_message(Key(key, character))
        assert " no " in await screen.text()


async def test_note_of_too_many_characters_is_reported() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        await screen.press("a")
        screen.app.screen.query_one("PromptInput").value = "x" * 201  # type: ignore[attr-defined]  # an Input
        assert "201 characters, must be at most 200" in await screen.press("enter")
        assert isinstance(screen.app.screen, PromptScreen)


async def test_note_is_refused_where_nothing_may_be_changed() -> None:
    async with Driven(scenes.healthy(1).view(), refuses="the screen is read-only") as screen:
        assert "note: not possible, the screen is read-only" in await screen.press("a")
    async with Driven(scenes.healthy(1).view()) as screen:
        await screen.publish(RunStateChanged("finished", exit_code=0))
        assert "note: not possible, the run is over" in await screen.press("a")


async def test_quitting_keys_work_while_something_is_typed() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        assert "training" in await screen.press("a", "x", "ctrl+c")
        assert type(screen.app.screen).__name__ == "LeaveScreen"
        await screen.press("escape", "escape")
        assert screen.session.commands == []


async def test_lines_that_are_pasted_stand_side_by_side() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        await screen.press("a", "x", "space")
        screen.app.post_message(Paste("lower rate\n  after the second plateau\r\n\nas planned\n"))
        await screen.text()
        await screen.press("enter")
        (command,) = screen.session.commands
        assert isinstance(command, AddNote)
        assert command.text == "x lower rate after the second plateau as planned"


async def test_longest_note_can_be_read_whole_on_the_page_and_in_the_log() -> None:
    words = " ".join(f"word{number}" for number in range(28))
    async with Driven(scenes.healthy(1).view(), (120, 40)) as screen:
        await screen.publish(NoteAdded(words, "Walker"))
        page = await screen.press("enter", "end")
        left = " ".join(line.split("│")[1] for line in page.splitlines() if line.startswith("│"))
        assert words in " ".join(left.split())
        log = await screen.press("l", "enter")
        assert words in " ".join(log.replace("│", " ").split())
