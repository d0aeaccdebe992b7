"""A person at the keyboard of a real terminal: what is written, however the play ends, and that it can be learned."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.program import COMMAND, run, surroundings, terminal
from tests.pseudo_terminal import PseudoTerminal

LAKE = ("gymnasium:FrozenLake-v1", "my.demo", "--env-kwargs", '{"is_slippery": false}')
WAY = ("down", "down", "right", "2", "1", "right")
LEFT_ALTERNATE_SCREEN, SHOWN_CURSOR = b"\x1b[?1049l", b"\x1b[?25h"
CLONED = """\
behaviors:
  FrozenLake:
    trainer_type: bc
    hyperparameters: {demo_path: my.demo, batch_size: 16, samples_per_update: 32, learning_rate: 1e-2}
    network_settings: {hidden_units: 32, num_layers: 1}
    max_steps: 6400
env_settings:
  env: gymnasium:FrozenLake-v1
  env_kwargs: {is_slippery: false}
  num_envs: 1
"""


def playing(folder: Path, *words: str, **more: Any) -> PseudoTerminal:
    """The program, once it is the person's turn."""
    screen = terminal("demonstrations", "play", *(words or LAKE), folder=folder, **more)
    screen.wait_for("YOUR TURN")
    return screen


def walk(screen: PseudoTerminal, *keys: str) -> None:
    """Each of the keys was answered."""
    for number, key in enumerate(keys, 1):
        screen.press(key)
        is_last = number == len(WAY)
        screen.wait_for("is complete: return 1 in 6 steps" if is_last else rf"step +{number} ")


def said_at_the_end(screen: PseudoTerminal) -> str:
    """What the program printed once the terminal was as before."""
    before, left, after = bytes(screen.raw).rpartition(LEFT_ALTERNATE_SCREEN)
    assert left
    assert SHOWN_CURSOR in before + after
    return re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", after.decode()).strip()


def info(folder: Path) -> dict[str, Any]:
    """What `rl-tui demonstrations info` says of the file."""
    code, said, errors = run("demonstrations", "info", "--json", "my.demo", folder=folder)
    assert (code, errors) == (0, "")
    return dict(json.loads(said))


def test_what_was_played_is_written_and_can_be_learned(tmp_path: Path) -> None:
    with playing(tmp_path) as screen:
        walk(screen, *WAY)
        screen.wait_for(r"episode +2 ")
        screen.press("right", "right")
        screen.wait_for(r"step +2 ")
        assert not (tmp_path / "my.demo").exists()
        screen.press("q")
        assert screen.wait() == 0
        assert said_at_the_end(screen) == (
            f"gymnasium:FrozenLake-v1, seed 1: 1 episode, 6 steps, mean return 1\r\nrecorded    {tmp_path / 'my.demo'}"
        )
    found = info(tmp_path)
    assert (found["behavior"], found["num_episodes"], found["num_steps"]) == ("FrozenLake", 1, 6)
    assert (found["num_unfinished"], found["branches"]) == (0, [[0, 3, 3, 0]])
    assert os.listdir(tmp_path).count("my.demo") == 1
    assert not [name for name in os.listdir(tmp_path) if ".part-" in name]
    (tmp_path / "cloned.yaml").write_text(CLONED)
    code, _, errors = run("cloned.yaml", "--no-ui", "--run-id", "cloned", folder=tmp_path)
    assert code == 0, errors
    code, said, errors = run("evaluate", "cloned", "--deterministic", "--episodes", "2", folder=tmp_path)
    assert code == 0, errors
    assert next(line.split()[1] for line in said.splitlines() if line.startswith("mean ")) == "1"


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGHUP, 129), (signal.SIGTERM, 143)])
def test_signal_writes_the_complete_episodes(number: int, exit_code: int, tmp_path: Path) -> None:
    with playing(tmp_path) as screen:
        walk(screen, *WAY)
        os.kill(screen.process.pid, number)
        assert screen.wait() == exit_code
        assert LEFT_ALTERNATE_SCREEN in screen.raw
    assert info(tmp_path)["num_episodes"] == 1


@pytest.mark.parametrize("ignored", [(), (signal.SIGHUP,)], ids=["with-signal", "without-signal"])
def test_terminal_that_dies_loses_no_complete_episode(ignored: tuple[int, ...], tmp_path: Path) -> None:
    with playing(tmp_path, ignored=ignored) as screen:
        walk(screen, *WAY)
        screen.press("right")
        screen.wait_for(r"step +1 ")
        screen.hang_up()
        assert screen.process.wait(300) == 129
    found = info(tmp_path)
    assert (found["num_episodes"], found["num_steps"]) == (1, 6)


def test_without_a_complete_episode_no_file_is_written_and_one_line_says_so(tmp_path: Path) -> None:
    with playing(tmp_path) as screen:
        screen.press("right")
        screen.wait_for(r"step +1 ")
        screen.press("ctrl+c")
        assert screen.wait() == 1
        assert said_at_the_end(screen) == "my.demo: not written, because no episode was complete"
    assert not [name for name in os.listdir(tmp_path) if name.startswith("my.demo")]


def test_it_ends_after_so_many_episodes_and_replaces_a_file_only_with_force(tmp_path: Path) -> None:
    (tmp_path / "my.demo").write_text("an earlier one")
    code, _, errors = run("demonstrations", "play", *LAKE, folder=tmp_path)
    assert (code, errors) == (2, "my.demo: already exists; choose another name or use --force\n")
    with playing(tmp_path, *LAKE, "--force", "--episodes", "1") as screen:
        screen.wait_for("1 of 1")
        for number, key in enumerate(WAY[:-1], 1):
            screen.press(key)
            screen.wait_for(rf"step +{number} ")
        assert (tmp_path / "my.demo").read_text() == "an earlier one"
        screen.press(WAY[-1])
        assert screen.wait() == 0
    assert info(tmp_path)["num_episodes"] == 1


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs a shell with job control")
def test_screen_goes_to_the_shell_and_comes_back(tmp_path: Path) -> None:
    bash = ["bash", "--norc", "--noprofile", "-i"]
    with PseudoTerminal(bash, folder=tmp_path, variables=surroundings(PS1="shell> ")) as screen:
        screen.wait_for("shell> ")
        screen.press(f"clear; {shlex.join([*COMMAND, 'demonstrations', 'play', *LAKE])}", "enter")
        screen.wait_for("YOUR TURN(?s:.)*q finish")
        walk(screen, *WAY[:2])
        screen.press("ctrl+z")
        screen.wait_for("Stopped")
        screen.press("clear; echo still $((40 + 2))", "enter")
        screen.wait_for("still 42")
        screen.press("fg", "enter")
        screen.wait_for(r"YOUR TURN(?s:.)*step +2 (?s:.)*q finish")
        for number, key in enumerate(WAY[2:], 3):
            screen.press(key)
            screen.wait_for("is complete" if number == len(WAY) else rf"step +{number} ")
        screen.press("q")
        screen.wait_for("recorded")
        screen.press("exit", "enter")
        screen.wait()
    assert info(tmp_path)["num_steps"] == 6


def test_without_a_shell_there_is_nothing_to_go_to_and_the_window_may_change(tmp_path: Path) -> None:
    with playing(tmp_path) as screen:
        screen.press("ctrl+z")
        screen.wait_for("no shell could bring the screen back")
        screen.resize(80, 24)
        screen.press("down")
        screen.wait_for(r"step +1 ")
        screen.press("q")
        screen.wait()


BAD = """\
import os
import time

from gymnasium.envs.classic_control.cartpole import CartPoleEnv


class Bad(CartPoleEnv):
    def __init__(self, end):
        super().__init__()
        self.num_steps, self.end = 0, end

    def step(self, action):
        self.num_steps += 1
        if self.num_steps == 5:
            os._exit(7) if self.end == "dies" else time.sleep(10_000)
        print("printed")
        return *super().step(action)[:2], self.num_steps == 3, False, {}
"""


@pytest.mark.parametrize(("end", "words"), [("dies", "the process exited with code 7"), ("hangs", "WAITING")])
def test_environment_that_dies_or_hangs_costs_its_episode_only(end: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    with playing(tmp_path, "bad:Bad", "my.demo", "--env-kwargs", json.dumps({"end": end})) as screen:
        screen.press(*"01010")
        screen.wait_for(words)
        screen.press("q")
        assert screen.wait() == 0
        assert (words in said_at_the_end(screen)) == (end == "dies"), "for the person to find the error"
        assert b"printed" not in screen.raw
    assert (info(tmp_path)["num_episodes"], info(tmp_path)["num_steps"]) == (1, 3)


REFUSED = {
    ("FrozenLake-v1", "a.demo"): "Did you mean gymnasium:FrozenLake-v1, or unity:FrozenLake-v1 for a Unity player?",
    ("gymnasium:Pendulum-v1", "a.demo"): "gymnasium:Pendulum-v1: must have actions that are one choice among several",
    ("gymnasium:CartPool-v1", "a.demo"): "Did you mean gymnasium:CartPole-v1?",
    ("builds/3DBall", "a.demo"): "unity:builds/3DBall: a Unity player cannot be played here",
    ("toy:rooms", "a.demo", "--theme", "pink"): "--theme: must be rl-dark,",
    ("toy:rooms", "a.demo", "--env-kwargs", '{"room": 3}'): "env_kwargs.room: unknown key. Did you mean rooms?",
}


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_refusal_is_one_line_on_a_terminal_that_shows_no_screen(words: tuple[str, ...], tmp_path: Path) -> None:
    with terminal("demonstrations", "play", *words, folder=tmp_path, size=(300, 24)) as screen:
        assert screen.wait() == 2
        shown = screen.text().strip()
        assert REFUSED[words] in shown
        assert len(shown.splitlines()) == 1
        assert b"\x1b[?1049h" not in screen.raw
    assert not (tmp_path / "a.demo").exists()


def test_without_a_terminal_it_says_so(tmp_path: Path) -> None:
    code, said, errors = run("demonstrations", "play", *LAKE, folder=tmp_path)
    assert (code, said) == (2, "")
    assert errors == "rl-tui demonstrations play: needs a screen, but stdin is not a terminal\n"
