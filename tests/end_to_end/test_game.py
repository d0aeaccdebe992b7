"""A person at the keyboard of a real terminal plays against the policy of a run."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.program import run, terminal
from tests.end_to_end.test_play import said_at_the_end
from tests.pseudo_terminal import PseudoTerminal
from tests.running.playing.opposed import CONNECT_FOUR, tictactoe_run, trained

pytest.importorskip("pettingzoo")
OVER = r"YOU WON|YOU LOST|DRAWN"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the runs `ttt` and `four` in its results."""
    folder = tmp_path_factory.mktemp("games")
    for name, made in (("ttt", tictactoe_run), ("four", lambda folder: trained(folder, CONNECT_FOUR))):
        made(folder / name).rename(folder / name / "results" / name)
        shutil.copytree(folder / name / "results", folder / "results", dirs_exist_ok=True)
    return folder


def playing(folder: Path, *words: str, size: tuple[int, int] = (80, 24), **more: Any) -> PseudoTerminal:
    """The program, once it is the person's turn."""
    screen = terminal("play", *words, folder=folder, size=size, **more)
    screen.wait_for("YOUR TURN")
    return screen


def choices(screen: PseudoTerminal) -> list[str]:
    """The keys on the board, that are free."""
    board = [line[:46] for line in screen.text().splitlines()[2:-2]]
    return re.findall(r"(?<=  )\d(?=  |$)", "\n".join(board))


def play_out(screen: PseudoTerminal, keys: Sequence[str]) -> str:
    """How the game ended, in which the person takes the keys in turn, each time the next that is free."""
    moves = 0
    while not re.search(OVER, screen.text()):
        free = choices(screen)
        in_turn = [*keys[moves % len(keys) :], *keys]  # a column that is full has its number still
        screen.press(next(key for key in in_turn if key in free))
        moves += 1
        screen.wait_for(rf"(?s){OVER}|YOUR TURN.*moves +{moves}\b")  # once the other side has moved, too
    found = re.search(OVER, screen.text())
    assert found is not None
    return {"YOU WON": "won", "YOU LOST": "lost", "DRAWN": "drawn"}[found[0]]


def test_whole_games_of_tictactoe_against_a_checkpoint(folder: Path) -> None:
    results = []
    with playing(folder, "ttt") as screen:
        screen.wait_for("ttt at step 512")
        for number in (1, 2):
            screen.wait_for(rf"YOUR TURN +game {number} ")
            screen.wait_for(("first" if number == 1 else "second") + ", team ")
            assert len(choices(screen)) == 10 - number, "the policy has moved at once where it is first"
            results.append(play_out(screen, "123456789"))
            screen.press("n")
        screen.wait_for("YOUR TURN +game 3 ")
        screen.press("h")
        screen.wait_for(r"hint: field \d")
        screen.press("q")
        assert screen.wait() == 0
        tally = [f"{results.count(result)} {result}" for result in ("won", "drawn", "lost")]
        assert said_at_the_end(screen) == f"2 games against ttt at step 512: {', '.join(tally)}"


def test_a_game_of_connect_four_against_random_play(folder: Path) -> None:
    with playing(folder, "four", "--opponent", "random", "--seat", "2", "--seed", "4") as screen:
        screen.wait_for("second")
        result = play_out(screen, "4352617")
        screen.press("enter")
        screen.wait_for("YOUR TURN +game 2 ")
        screen.wait_for("second")
        screen.press("\x1b")
        assert screen.wait() == 0
        tally = {"won": 0, "drawn": 0, "lost": 0} | {result: 1}
        words = ", ".join(f"{count} {name}" for name, count in tally.items())
        assert said_at_the_end(screen) == f"1 game against random: {words}"


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGHUP, 129), (signal.SIGTERM, 143)])
def test_signal_ends_the_play_in_order(number: int, exit_code: int, folder: Path) -> None:
    with playing(folder, "ttt") as screen:
        os.kill(screen.process.pid, number)
        assert screen.wait() == exit_code


def test_window_may_change_in_a_game(folder: Path) -> None:
    with playing(folder, "ttt", "--team", "0") as screen:
        screen.resize(120, 40)
        screen.wait_for("╭─ Game")
        screen.press("5")
        screen.wait_for(r"moves +1\b")
        screen.press("ctrl+c")
        assert screen.wait() == 0


REFUSED = {
    ("walker",): "walker: no such run in results",
    ("ttt@7",): "ttt@7: no checkpoint at step 7; Player has 512",
    ("ttt", "--opponent", "four"): "four: none of its policies can play Player: ",
    ("ttt", "--opponent", "none.onnx"): "none.onnx: no such file",
    ("ttt", "--team", "5"): "--team: must be 0 or 1, got 5",
    ("ttt", "--theme", "pink"): "--theme: must be rl-dark,",
}


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_refusal_is_one_line_on_a_terminal_that_shows_no_screen(words: tuple[str, ...], folder: Path) -> None:
    with terminal("play", *words, folder=folder, size=(300, 24)) as screen:
        assert screen.wait() == (7 if "@7" in words[0] else 2)
        shown = screen.text().strip()
        assert REFUSED[words] in shown
        assert len(shown.splitlines()) == 1
        assert b"\x1b[?1049h" not in screen.raw


def test_without_a_terminal_it_says_so(folder: Path) -> None:
    code, said, errors = run("play", "ttt", folder=folder)
    assert (code, said, errors) == (2, "", "rl-tui play: needs a screen, but stdin is not a terminal\n")
