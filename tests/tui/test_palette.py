"""The command palette: every command that has a use, found by its words, doing what its key does."""

from __future__ import annotations

import re

import pytest
from textual.command import CommandPalette
from textual.widgets import Input

from rl_tui.engine.session.messages import BehaviorStarted, BehaviorStateChanged, RunStateChanged, SaveCheckpoint
from rl_tui.tui.keys.keymap import KEYMAP
from rl_tui.tui.screens.help import HelpScreen
from rl_tui.tui.screens.palette import ARROWS, Palette, offers
from tests.tui import scenes
from tests.tui.driver import Driven

SIZES = [(80, 24), (120, 40), (200, 60)]


async def choose(screen: Driven, words: str) -> None:
    """Run the first command found by these words; it runs in its own time, once the palette has gone."""
    await screen.press("ctrl+p")
    await screen.pilot.press(*(letter if letter != " " else "space" for letter in words))
    await screen.until(lambda text: text.count(words) >= 2)  # where they are typed, and in what was found
    await screen.pilot.app.workers.wait_for_complete()
    await screen.pilot.press("enter")
    await screen.until(lambda _: not isinstance(screen.app.screen, CommandPalette))


@pytest.mark.parametrize("size", SIZES)
async def test_commands_stand_with_their_keys(size: tuple[int, int]) -> None:
    async with Driven(scenes.healthy(3).view(), size) as screen:
        await screen.press("ctrl+p")
        text = await screen.until("select Hopper")
        assert re.search(r"│  1 +select Walker ", text)
        assert re.search(r"│  enter +open: ", text)


@pytest.mark.parametrize("size", [(60, 60), (80, 60), (99, 60), (120, 60)])
async def test_long_words_wrap_inside_their_column(size: tuple[int, int]) -> None:
    async with Driven(scenes.healthy(3).view(), size) as screen:
        await screen.press("ctrl+p")
        rows = (await screen.until("screenshot: ")).splitlines()
        column = next(row for row in rows if "screenshot: " in row).index("screenshot: ")
        listed = [row for row in rows if "─" not in row and "a command" not in row]
        left, right = zip(
            *((row[3:column].strip(" │"), row[column:].strip(" │▁▂▃▄▅▆▇█")) for row in listed), strict=True
        )
        assert "" in left, "some words are too long for this width"
        assert [key for key, words in zip(left, right, strict=True) if key and not words] == []


async def test_arrows_are_not_offered_and_the_theme_is_once() -> None:
    async with Driven(scenes.healthy(3).view(), (200, 60)) as screen:
        found = list(offers(screen.screen.context, screen.screen.key_owners))
        assert not {"up", "down", "left", "right", "pgup", "pgdn"} & {offer.shown for offer in found}
        assert [offer.action for offer in found if offer.shown == "T"] == ["theme"]
        await screen.press("ctrl+p")
        text = await screen.until("type theme to choose")
        assert "rl-light" not in text
        await screen.pilot.press(*"theme")
        text = await screen.until("theme high-contrast")
        assert text.count("theme rl-") == 2


async def test_every_screen_offers_the_commands_of_its_keys() -> None:
    async with Driven(scenes.healthy(3).view()) as screen:
        here = {"overview", "run", "anywhere", *(screen.screen.pane.places if screen.screen.pane else ())}
        wanted = {key.id for key in KEYMAP if not here.isdisjoint(key.places) and not ARROWS.issuperset(key.keys)}
        wanted -= {"palette", "select"}
        offered = {offer.action.partition("('")[0] for offer in offers(screen.screen.context, screen.screen.key_owners)}
        assert {key.id for key in KEYMAP if key.id in wanted and key.action.partition("('")[0] not in offered} == set()
        words = [offer.words for offer in offers(screen.screen.context, screen.screen.key_owners)]
        assert {"select Walker", "select Crawler", "select Hopper"} <= set(words)


async def test_chosen_command_does_what_its_key_does() -> None:
    async with Driven(scenes.healthy(3).view()) as screen:
        await choose(screen, "save a checkpoint of the selected")
        await screen.until("✓ checkpoint Walker: done")
        assert [(type(c), c.behavior) for c in screen.session.commands] == [(SaveCheckpoint, "Walker")]  # type: ignore[union-attr]
        assert not isinstance(screen.app.screen, CommandPalette)


async def test_behavior_is_selected_by_its_name() -> None:
    async with Driven(scenes.healthy(3).view()) as screen:
        await choose(screen, "select Crawler")
        await screen.until("▸ 2 Crawler")


async def test_other_screens_and_dialogs_open_from_it() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        await choose(screen, "details, roll back")
        await screen.until(lambda _: screen.app.screen.name == "checkpoints")
        await choose(screen, "the keys that have a use now")
        await screen.until(lambda _: isinstance(screen.app.screen, HelpScreen))


async def test_command_of_a_screen_runs_on_that_screen() -> None:
    async with Driven(scenes.healthy(1).view(), opened="checkpoints") as screen:
        await choose(screen, "roll back to the selected checkpoint")
        await screen.until("Roll Walker back to step 150k?")


async def test_command_of_a_list_runs_on_that_list() -> None:
    async with Driven(scenes.healthy(1).view(), opened="checkpoints") as screen:
        await choose(screen, "last: the last line")
        await screen.until("rank 3 of 3 on disk")


async def test_themes_are_chosen_by_name() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        await choose(screen, "theme rl-light")
        await screen.until("theme rl-light")
        assert screen.app.theme == "rl-light"


async def test_useless_commands_are_not_offered() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        ids = {offer.action for offer in offers(screen.screen.context, screen.screen.key_owners)}
        assert "pause(True)" not in ids  # with a single behavior
        assert "pause(False)" in ids
        assert "speed(1)" not in ids  # no replay
        assert "undo" not in ids  # of another screen
        await screen.publish(BehaviorStateChanged("Walker", "finished"), RunStateChanged("finished", exit_code=0))
        assert "pause(False)" not in {offer.action for offer in offers(screen.screen.context, screen.screen.key_owners)}
    async with Driven(scenes.healthy(1).view(), refuses="the screen is read-only") as screen:
        ids = {offer.action for offer in offers(screen.screen.context, screen.screen.key_owners)}
        assert "note" not in ids
        assert "help" in ids


async def test_commands_of_textual_itself_are_not_in_it() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        await screen.press("ctrl+p")
        text = await screen.until("enter          open: ")
        for words in ("Maximize", "Screenshot", "Theme", "Keys"):
            assert words not in text


async def test_hostile_name_is_plain_text_in_it() -> None:
    story = scenes.healthy(1)
    story.publish(BehaviorStarted("[red]evil[/]\x1b[2J", "ppo", "gymnasium:X", 0, 1, 1, 1, False))
    async with Driven(story.view()) as screen:
        await screen.press("ctrl+p")
        assert "select [red]evil[/]" in await screen.until("select [red]")


async def test_escape_closes_it_and_ctrl_c_asks_how_to_leave() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        await screen.press("ctrl+p", "escape")
        assert screen.screen.name == "overview"
        await screen.press("ctrl+p", "ctrl+c")
        assert type(screen.app.screen).__name__ == "LeaveScreen"
        assert screen.session.commands == []


@pytest.mark.parametrize("key", ["pageup", "pagedown"])
async def test_pages_of_a_list_without_room_are_harmless(key: str) -> None:
    async with Driven(scenes.healthy(1).view(), (20, 2)) as screen:
        await screen.press("ctrl+p", "down", key, key, "escape")
        assert screen.screen.name == "overview"


async def test_it_opens_while_a_filter_is_typed() -> None:
    async with Driven(scenes.healthy(1).view(), opened="checkpoints") as screen:
        await screen.press("slash", "1")
        await choose(screen, "roll back to the selected checkpoint")
        await screen.until("Roll Walker back")


def test_placeholder_is_ascii() -> None:
    assert Palette(lambda: iter(()))._placeholder.isascii()


async def test_commands_of_that_name_come_before_those_explained_with_it() -> None:
    async with Driven(scenes.healthy(3).view(), (120, 40)) as screen:
        await screen.press("ctrl+p")
        await screen.pilot.press("t", "h")
        text = await screen.until("theme rl-light")
        await screen.pilot.app.workers.wait_for_complete()
        text = await screen.text()
        assert text.index("theme: ") < text.index("theme rl-light") < text.index("open: open what")


async def test_its_cursor_does_not_blink() -> None:
    """Each change would be sent to the terminal."""
    async with Driven(scenes.healthy(3).view(), (120, 40)) as screen:
        await screen.press("ctrl+p")
        assert screen.app.screen.query_one(Input).cursor_blink is False
