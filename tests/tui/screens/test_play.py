"""The screen of a person who plays: what it shows of real environments, and every key."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from rl_tui.engine.demonstrations.opening import open_demonstrations
from rl_tui.tui.keys.play_keys import MOST_CHOICES, PLAY_KEYS
from rl_tui.tui.play_app import PlayApp
from rl_tui.tui.screens.play import PlayScreen
from tests.deadline import DEADLINE_SECONDS
from tests.running.playing.by_hand import ByHand
from tests.tui.settling import settle, until_shown
from tests.tui.snapshots import check, screen_text

SIZES = [(80, 24), (120, 40), (200, 60)]
LAKE = "gymnasium:FrozenLake-v1"
WAY = ("down", "1", "right", "2", "down", "right")


class Played:
    """A play on a screen; what it shows comes back as text."""

    def __init__(self, app: PlayApp, pilot: Pilot[Any], person: ByHand) -> None:
        self.app, self.pilot, self.person = app, pilot, person

    async def text(self) -> str:
        """What it shows now."""
        await settle(self.app)
        self.app.redraw()
        await settle(self.app)
        return screen_text(self.app)

    async def until(self, words: str | Callable[[str], bool]) -> str:
        """What it shows as soon as it shows these words."""
        return await until_shown(self.text, words)

    async def press(self, *keys: str) -> str:
        """What it shows after these keys, each of which changes something, and was answered."""
        for key in keys:
            before = self.state
            await self.pilot.press(key)
            await self.until(lambda _, before=before: self.state != before)
        return await self.text()

    @property
    def state(self) -> object:
        """What actions change."""
        assert isinstance(self.app.play, PlayScreen)
        turn = self.app.play.turn
        assert turn is not None
        scene = turn.scene
        return scene.state, scene.episode, scene.step, scene.returns


@asynccontextmanager
async def played(
    env: str, path: Path, size: tuple[int, int] = (80, 24), num_episodes: int | None = None, *, ascii: bool = False,
    **kwargs: object,
) -> AsyncIterator[Played]:  # fmt: skip
    with ByHand(env, path, num_episodes, most_choices=MOST_CHOICES, **kwargs) as person:
        make_screen = partial(PlayScreen, person.turns, env, "my.demo", num_episodes)
        app = PlayApp(person.turns, make_screen, PLAY_KEYS, nothing_to_save="", ascii=ascii)
        async with app.run_test(size=size) as pilot:
            screen = Played(app, pilot, person)
            person.turns.resize(app.play.picture.pixels_wanted)
            await screen.until("YOUR TURN")
            yield screen


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("kind", ["text", "pixels", "numbers"])
async def test_each_kind_of_picture_has_figures_and_keys(kind: str, size: tuple[int, int], tmp_path: Path) -> None:
    env, kwargs, keys = {
        "text": (LAKE, {"is_slippery": False}, (*WAY, "down")),
        "pixels": ("toy:rooms", {"rooms": 3}, ("right", "up")),
        "numbers": ("toy:line", {"masked": True}, ("space",)),
    }[kind]
    async with played(env, tmp_path / "a.demo", size, **kwargs) as screen:  # type: ignore[arg-type]
        check(f"play-{kind}-{size[0]}x{size[1]}", await screen.press(*keys))


async def test_without_unicode_there_is_no_other_character(tmp_path: Path) -> None:
    async with played("toy:rooms", tmp_path / "a.demo", ascii=True, rooms=3) as screen:
        text = await screen.press("right")
        assert text.isascii()
        check("play-ascii-80x24", text)


async def test_choices_stand_beside_each_other_where_there_are_few_rows(tmp_path: Path) -> None:
    async with played(LAKE, tmp_path / "a.demo", (50, 20), is_slippery=False) as screen:
        check("play-50x20", await screen.press("down"))
    async with played(LAKE, tmp_path / "a.demo", (80, 12), is_slippery=False) as screen:
        check("play-80x12", await screen.press("down"))
    async with played(LAKE, tmp_path / "a.demo", (50, 20), is_slippery=False) as screen:
        await screen.pilot.resize_terminal(38, 9)
        assert "terminal too small (38x9), need 40x10 - nothing is lost" in " ".join((await screen.text()).split())


async def test_keys_act_and_the_complete_episodes_are_counted(tmp_path: Path) -> None:
    async with played(LAKE, tmp_path / "a.demo", (120, 40), is_slippery=False) as screen:
        text = await screen.press(*WAY)
        assert "episode 1 is complete: return 1 in 6 steps" in text
        assert "1 episode, 6 steps kept" in text.splitlines()[0]
        text = await screen.press("right", "right")
        assert "step        2" in text
        text = await screen.press("r")
        assert "the episode is discarded after 2 steps: another one begins" in text
        assert "step        0" in text
        text = await screen.press("delete")
        assert "episode 1 is dropped: return 1 in 6 steps" in text
        assert "no complete episode yet" in text.splitlines()[0]
        await screen.pilot.press("d")
        assert "drop last: there is no complete episode" in await screen.text()
        await screen.press(*WAY)
        await screen.pilot.press("q")
    assert screen.app.return_value == 0
    assert open_demonstrations(tmp_path / "a.demo").steps.episode_lengths.tolist() == [6]


async def test_keys_without_an_action_and_actions_that_are_not_allowed_say_so(tmp_path: Path) -> None:
    async with played("toy:one-step", tmp_path / "a.demo", masked=True) as screen:
        await screen.pilot.press("x")
        assert "x: no action has this key" in await screen.text()
        assert screen.person.turn is not None
        forbidden = screen.person.turn.is_allowed.index(False)
        text = await screen.text()
        assert f"{['left', 'stay', 'right'][forbidden]}, not now" in text
        await screen.pilot.press(str(forbidden))
        assert "the environment does not allow it now" in await screen.text()


async def test_failed_environment_says_which_keys_help(tmp_path: Path) -> None:
    async with played("tests.running.playing.odd:Breaking", tmp_path / "a.demo", (120, 40), at=2) as screen:
        await screen.press("0")
        text = await screen.press("0")
        assert "FAILED" in text.splitlines()[0]
        assert "ValueError: broken" in text
        assert "the environment has failed, and the episode under way is lost" in text
        assert "r begins another episode in a" in text
        await screen.pilot.press("0")
        await screen.press("r")
        assert "YOUR TURN" in (await screen.press("0")).splitlines()[0]


async def test_screen_is_left_after_so_many_episodes(tmp_path: Path) -> None:
    async with played("toy:catch", tmp_path / "a.demo", num_episodes=1) as screen:
        assert "episode     1 of 1" in await screen.press(*["left"] * 10)
        await screen.pilot.press("1")
        deadline = time.monotonic() + DEADLINE_SECONDS
        while screen.app.is_running and time.monotonic() < deadline:
            await screen.pilot.pause(0.01)
    assert screen.app.return_value == 0
    assert open_demonstrations(tmp_path / "a.demo").num_steps == 11


async def test_each_key_of_the_screen_does_what_it_is_for(tmp_path: Path) -> None:
    others = {"suspend"}  # on a real terminal
    async with played(LAKE, tmp_path / "a.demo", is_slippery=False) as screen:
        footer = (await screen.text()).splitlines()[-1]
        for key in PLAY_KEYS:
            assert (f"{key.shown} {key.label}" in footer) == (key.footer_rank is not None)
        theme = screen.app.theme
        await screen.pilot.press("T")
        assert f"theme {screen.app.theme}" in await screen.text()
        assert screen.app.theme != theme
        await screen.pilot.press("ctrl+l")
        assert "the whole screen was written again" in await screen.text()
        await screen.pilot.press("r")
        assert "another one begins" in await screen.text()
        assert {key.id for key in PLAY_KEYS} == {"theme", "repaint", "discard", "drop", "finish"} | others


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
async def test_keys_that_leave(key: str, tmp_path: Path) -> None:
    async with played("toy:one-step", tmp_path / "a.demo") as screen:
        await screen.press("0")
        await screen.pilot.press(key)
    assert screen.app.return_value == 0
    assert open_demonstrations(tmp_path / "a.demo").num_steps == 1
