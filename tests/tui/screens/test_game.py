"""The screen of a person who plays a game: what it shows of real games, and every key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from rl_tui.engine.session.games import GameTurn
from rl_tui.tui.keys.game_keys import GAME_KEYS
from rl_tui.tui.play_app import PlayApp
from rl_tui.tui.screens.game import GameScreen
from tests.running.playing.opposed import CONNECT_FOUR, Opposed, tictactoe_run, trained
from tests.tui.settling import settle, until_shown
from tests.tui.snapshots import check, screen_text

pytest.importorskip("pettingzoo")
SIZES = [(80, 24), (120, 40), (200, 60)]
ODD = "tests.running.playing.odd"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        "tictactoe": tictactoe_run(tmp_path_factory.mktemp("tictactoe")),
        "connect-four": trained(tmp_path_factory.mktemp("four"), CONNECT_FOUR, random_agents="player_1"),
        "duel": trained(tmp_path_factory.mktemp("duel"), f"{ODD}:Duel", ["Duel"]),
        "alone": trained(tmp_path_factory.mktemp("alone"), "toy:catch"),
    }


class Played:
    """A game on a screen; what it shows comes back as text."""

    def __init__(self, app: PlayApp, pilot: Pilot[Any], person: Opposed) -> None:
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

    async def play_first(self) -> str:
        """What it shows at the end of a game in which each choice is the first that is allowed."""
        while not self.turn.is_over:
            await self.press(str(self.turn.is_allowed.index(True) + 1))
        return await self.text()

    @property
    def state(self) -> object:
        """What keys change, other than the size of the picture."""
        turn = self.turn
        return turn.scene.state, turn.scene.episode, turn.scene.step, turn.is_over, turn.advice

    @property
    def screen(self) -> GameScreen:
        assert isinstance(self.app.play, GameScreen)
        return self.app.play

    @property
    def turn(self) -> GameTurn:
        assert self.screen.turn is not None
        return self.screen.turn


@asynccontextmanager
async def played(
    run: Path, opponent: str | None = "random", size: tuple[int, int] = (80, 24), *, ascii: bool = False, **more: Any
) -> AsyncIterator[Played]:
    with Opposed(run, opponent, **more) as person:
        app = PlayApp(
            person.games, partial(GameScreen, person.games, "mine"), GAME_KEYS, nothing_to_save="", ascii=ascii
        )
        async with app.run_test(size=size) as pilot:
            screen = Played(app, pilot, person)
            person.games.resize(screen.screen.picture.pixels_wanted)
            await screen.until("YOUR TURN")
            yield screen


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", ["tictactoe", "connect-four", "duel", "alone"])
async def test_each_kind_of_game_has_its_board_or_picture_and_figures(
    name: str, size: tuple[int, int], runs: dict[str, Path]
) -> None:
    async with played(runs[name], "random", size) as screen:
        check(f"game-{name}-{size[0]}x{size[1]}", await screen.press("2", "3"))


async def test_game_that_is_over_says_how_it_ended_and_the_next_one_begins(runs: dict[str, Path]) -> None:
    async with played(runs["tictactoe"]) as screen:
        text = await screen.play_first()
        result = screen.turn.result
        assert result is not None
        word = {"won": "YOU WON", "drawn": "DRAWN", "lost": "YOU LOST"}[result]
        assert text.count(word) == 2, "above, and beside the board"
        assert f"game 1: {'it is a draw' if result == 'drawn' else f'you have {result}'} after " in text
        assert f"{result} 1" in text.splitlines()[0]
        check("game-over-80x24", text)
        await screen.pilot.press("1", "h")
        assert "hint: it is not your turn" in await screen.text()
        text = await screen.press("enter")
        assert "YOUR TURN" in text.splitlines()[0]
        assert "second, team 1" in text
        await screen.play_first()
        assert "game 3" in (await screen.press("space")).splitlines()[0]
        assert "game 4" in (await screen.press("n")).splitlines()[0]
        assert "does not count" not in await screen.text(), "nothing had been played"
        await screen.press("1")
        assert "game 4 does not count: another one begins" in await screen.press("n")


async def test_what_cannot_be_chosen_is_refused_with_a_line(runs: dict[str, Path]) -> None:
    async with played(runs["tictactoe"], number=1) as screen:
        await screen.press("5")
        await screen.pilot.press("5")
        assert "field 5 cannot be chosen now" in await screen.text()
        await screen.pilot.press("x")
        assert "x: no choice has this key" in await screen.text()
        assert screen.turn.scene.step == 1


async def test_hint_is_shown_on_the_board_and_as_chances(runs: dict[str, Path]) -> None:
    async with played(runs["tictactoe"], number=1) as screen:
        text = await screen.press("h")
        assert screen.turn.advice is not None
        choice, chances = screen.turn.advice.choice, screen.turn.advice.chances
        assert f"hint: field {choice + 1}" in text
        shown = [line.partition("★")[2].split() for line in text.splitlines() if "★" in line]
        assert [words[:2] for words in shown] == [[f"{100 * chances[choice]:.0f}", "%"]]
        assert text.count(" %") == 9
        assert " %" not in await screen.press("1"), "it is of one turn"


async def test_hint_of_a_file_has_no_chances(runs: dict[str, Path]) -> None:
    run = runs["connect-four"]
    async with played(run, str(run / "Player.onnx")) as screen:
        text = await screen.press("h")
        assert "hint: column" in text
        assert "Player.onnx" in text


async def test_view_changes_between_the_board_and_the_picture(runs: dict[str, Path]) -> None:
    async with played(runs["connect-four"], size=(120, 40)) as screen:
        text = await screen.text()
        assert "column 7" not in text
        await screen.pilot.press("v")
        text = await screen.text()
        assert "view: the picture of the environment" in text
        assert "column 7" in text
        assert "▀" in text
        await screen.pilot.press("v")
        assert "column 7" not in await screen.text()
    async with played(runs["duel"]) as screen:
        await screen.pilot.press("v")
        assert "view: there is only one" in await screen.text()


async def test_small_terminals_have_the_board_below_the_figures_or_say_so(runs: dict[str, Path]) -> None:
    async with played(runs["tictactoe"], size=(50, 20)) as screen:
        check("game-50x20", await screen.press("2", "h"))
        await screen.pilot.resize_terminal(38, 9)
        assert "terminal too small (38x9), need 40x10 - the game waits" in " ".join((await screen.text()).split())
    async with played(runs["duel"], size=(80, 12)) as screen:
        check("game-80x12", await screen.press("2"))


async def test_without_unicode_there_is_no_other_character(runs: dict[str, Path]) -> None:
    async with played(runs["connect-four"], ascii=True) as screen:
        text = await screen.press("4", "4", "h")
        assert text.isascii()


async def test_failed_environment_says_which_key_helps(runs: dict[str, Path], tmp_path: Path) -> None:
    run = trained(tmp_path, f"{ODD}:Duel", ["Duel"])
    path = run / "configuration.yaml"
    path.write_text(path.read_text().replace("env_kwargs: {}", "env_kwargs: {fails_at: 2}"))
    async with played(run, size=(120, 40)) as screen:
        text = await screen.press("1", "1")
        assert "FAILED" in text.splitlines()[0]
        assert "step raised ValueError:" in text
        assert "the environment has failed, and the game under way is lost" in text
        assert "n begins another game in a new" in text
        await screen.pilot.press("1", "h")
        assert "YOUR TURN" in (await screen.press("n")).splitlines()[0]


async def test_each_key_of_the_screen_does_what_it_is_for(runs: dict[str, Path]) -> None:
    others = {"suspend", "hint", "view", "begin", "finish"}  # on a real terminal, and in the other tests
    async with played(runs["tictactoe"]) as screen:
        footer = (await screen.text()).splitlines()[-1]
        for key in GAME_KEYS:
            assert (f"{key.shown} {key.label}" in footer) == (key.footer_rank is not None)
        theme = screen.app.theme
        await screen.pilot.press("T")
        assert f"theme {screen.app.theme}" in await screen.text()
        assert screen.app.theme != theme
        await screen.pilot.press("ctrl+l")
        assert "the whole screen was written again" in await screen.text()
        assert {key.id for key in GAME_KEYS} == {"theme", "repaint"} | others


@pytest.mark.parametrize("key", ["q", "escape", "ctrl+c", "ctrl+q"])
async def test_keys_that_leave(key: str, runs: dict[str, Path]) -> None:
    async with played(runs["tictactoe"]) as screen:
        await screen.pilot.press(key)
    assert screen.app.return_value == 0
