"""Who sees a run for the first time is shown the three keys that matter, until one of them was pressed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rl_tui.tui.state.choices import ScreenState
from rl_tui.tui.state.preferences import Preferences, to_json
from tests.tui import scenes
from tests.tui.driver import Driven

SIZES = [(40, 10), (80, 24), (120, 40)]


def driven(folder: Path, size: tuple[int, int] = (80, 24), refuses: str = "") -> Driven:
    """A screen that remembers in that folder."""
    return Driven(scenes.healthy(2).view(), size, preferences=Preferences(folder), refuses=refuses)


def words_of(text: str) -> str:
    """The line above the keys."""
    return text.splitlines()[-2]


@pytest.mark.parametrize("size", SIZES)
async def test_three_keys_are_said_above_the_others(size: tuple[int, int], tmp_path: Path) -> None:
    async with driven(tmp_path, size) as screen:
        words = words_of(await screen.text())
        assert [word for word in words.split() if word in ("?", "c", "q")] == ["?", "c", "q"]
        assert ("q asks how to leave" in words) == (size[0] >= 80)
        assert ("results/walker-ppo" in words) == (size[0] >= 120)


@pytest.mark.parametrize("key", ["question_mark", "c", "q", "ctrl+c"])
async def test_they_are_gone_once_one_was_pressed_and_at_the_next_start(key: str, tmp_path: Path) -> None:
    async with driven(tmp_path) as screen:
        assert "? shows every key" in await screen.press("m", "tab")
        await screen.press(key, "escape")
        assert "? shows every key" not in await screen.text()
    async with driven(tmp_path) as screen:
        assert "results/walker-ppo" in words_of(await screen.text())


async def test_letter_that_is_typed_into_a_note_is_no_such_key(tmp_path: Path) -> None:
    async with driven(tmp_path) as screen:
        await screen.press("a", "c")
        assert "? shows every key" in await screen.press("escape")


async def test_who_has_a_run_remembered_is_not_new(tmp_path: Path) -> None:
    Preferences(tmp_path).save_view(Path("results/other"), to_json(ScreenState(), ""))
    async with driven(tmp_path) as screen:
        assert "results/walker-ppo" in words_of(await screen.text())


async def test_key_that_is_refused_is_not_said(tmp_path: Path) -> None:
    async with driven(tmp_path, refuses="--readonly was given") as screen:
        words = words_of(await screen.text())
        assert "? shows every key" in words
        assert "checkpoint" not in words


def test_theme_and_keys_are_remembered_beside_each_other(tmp_path: Path) -> None:
    preferences = Preferences(tmp_path)
    preferences.save_theme("ansi")
    preferences.save_keys_known()
    assert (preferences.theme(), preferences.knows_keys()) == ("ansi", True)
    preferences.save_theme("rl-light")
    assert json.loads((tmp_path / "settings.json").read_text()) == {"theme": "rl-light", "knows_keys": True}
