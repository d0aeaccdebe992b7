"""The tick stands for what has happened: never for a request, a refusal or an information."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import rl_tui.tui
from rl_tui.engine.session.messages import CommandFinished, Event, LogEmitted, RunStateChanged, WarningRaised
from tests.tui import scenes
from tests.tui.driver import Driven

TUI = Path(rl_tui.tui.__file__).parent
ALLOWED = {  # each draws the tick only where its condition says that it has happened
    "command_line/arena.py",  # a number of games, without a tick
    "panes/game_line.py",  # a game that the person has won
    "drawing/glyphs.py",  # a state: finished
    "panes/outcome.py",  # a command that the engine has carried out
    "screens/evaluation.py",  # an evaluation that has ended with exit code 0
    "screens/leave.py",  # a checkpoint that is on disk
    "screens/pick_metrics.py",  # a box that is ticked
}
KEYS = ("c", "C", "e", "E", "p", "P")


def with_tick() -> set[str]:
    """Files that read the tick of the glyphs, or have the character itself."""
    found = set()
    for path in TUI.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        reads = any(isinstance(node, ast.Attribute) and node.attr == "done" for node in ast.walk(ast.parse(text)))
        if reads or "✓" in text:
            found.add(path.relative_to(TUI).as_posix())
    return found


def test_only_these_files_draw_ticks() -> None:
    assert with_tick() == ALLOWED


@pytest.mark.parametrize("key", KEYS)
async def test_request_has_no_tick_until_it_is_carried_out(key: str) -> None:
    async with Driven(scenes.healthy(3).view(), (120, 40), answers=False) as screen:
        text = await screen.press(key)
        assert ": requested" in text
        assert "✓" not in text
        (command,) = screen.session.commands
        assert "✓" in await screen.publish(CommandFinished(command.id, True, "results/a"))


@pytest.mark.parametrize("key", KEYS)
async def test_request_that_failed_or_was_refused_has_no_tick(key: str) -> None:
    async with Driven(scenes.healthy(3).view(), (120, 40), answers=False) as screen:
        await screen.press(key)
        text = await screen.publish(CommandFinished(screen.session.commands[0].id, False, "disk full"))
        assert "✗" in text
        assert "✓" not in text
    async with Driven(scenes.healthy(3).view(), (120, 40), refuses="--readonly") as screen:
        text = await screen.press(key)
        assert "not possible, --readonly" in text
        assert "✓" not in text


@pytest.mark.parametrize("key", ["T", "s", "L", "t", "m", "b", "x", "i", "space", "ctrl+l", "y", "z", "9"])
async def test_what_is_only_said_has_no_tick(key: str) -> None:
    async with Driven(scenes.healthy(3).view(), (120, 40)) as screen:
        assert "✓" not in await screen.press(key)


@pytest.mark.parametrize(
    "event",
    [
        WarningRaised("entropy", "Walker", "entropy 0.003", "raise beta"),
        LogEmitted("error", "writer", "disk full"),
        RunStateChanged("stopping", "saving"),
    ],
)
async def test_alerts_have_no_tick(event: Event) -> None:
    async with Driven(scenes.healthy(3).view(), (120, 40)) as screen:
        assert "✓" not in await screen.publish(event)
