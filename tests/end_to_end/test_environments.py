"""The user's own environments in the whole program: what they print and where they fail."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deadline import DEADLINE_SECONDS
from tests.end_to_end.program import CARTPOLE, finish, run, start, terminal

WORLD = """\
import os
import sys
import warnings

import gymnasium


class World(gymnasium.Wrapper):
    steps = 0

    def step(self, action):
        self.steps += 1
        if self.steps == 10:
            print("printed")
            os.write(1, b"written\\n")
            os.system("echo from a child")
            warnings.warn("worn out")
        if self.steps > {last}:
            raise RuntimeError("the leg broke off")
        return super().step(action)


def make():
    print("made")
    return World(gymnasium.make("CartPole-v1"))
"""
TALKATIVE_WORLD = """\
import gymnasium


class World(gymnasium.Wrapper):
    def step(self, action):
        print("printed" * 1000)
        return super().step(action)


def make():
    print("made")
    return World(gymnasium.make("CartPole-v1"))
"""
LEAVING_WORLD = """\
import os

import gymnasium


class World(gymnasium.Wrapper):
    def step(self, action):
        os._exit(0)


def make():
    return World(gymnasium.make("CartPole-v1"))
"""
UNFINISHED = """\
import gymnasium

print("about to build\\x1b]0;gone\\x07")


class Maze(gymnasium.Env):
    def __init__(self):
        self.build()

    def build(self):
        raise KeyError("entrance")
"""
SHORT = ("--set", "behaviors.CartPole.max_steps=600", "--run-id", "a")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder with one configuration in it."""
    (tmp_path / "cartpole.yaml").write_text(CARTPOLE)
    return tmp_path


@pytest.mark.parametrize("workers", ["0", "1"])
@pytest.mark.parametrize("log_format", ["text", "json"])
def test_what_an_environment_prints_goes_to_the_log(folder: Path, workers: str, log_format: str) -> None:
    (folder / "world.py").write_text(WORLD.format(last=10_000))
    words = ("--no-ui", "--env", "world:make", "--num-workers", workers, "--log-format", log_format, *SHORT)
    exit_code, stdout, stderr = run("cartpole.yaml", *words, folder=folder)
    assert (exit_code, stderr) == (0, ""), stdout
    lines = stdout.splitlines()
    if log_format == "json":
        assert {json.loads(line)["v"] for line in lines} == {1}
    else:
        assert all(line.startswith("[") for line in lines), stdout
    name = "worker-0.log" if workers == "1" else "output.log"
    log = (folder / "results/a/run_logs" / name).read_text()
    for said in ("made\n", "printed\n", "written\n", "from a child\n", "UserWarning: worn out"):
        assert said in log, log
        assert said not in stdout


def test_what_an_environment_prints_under_a_screen_goes_to_the_log(folder: Path) -> None:
    (folder / "world.py").write_text(WORLD.format(last=10_000))
    path = folder / "results/a/run_logs/output.log"
    with terminal("cartpole.yaml", "--env", "world:make", *SHORT, folder=folder) as screen:
        screen.wait_for("FINISHED")
        at_once = path.read_text()
        screen.press("q")
        assert screen.wait() == 0
    log = path.read_text()
    assert "printed\n" in at_once
    assert log.startswith(at_once)  # a child that began before the run had its folder may have added a line
    assert log.count("from a child\n") == 4
    for said in ("made\n", "printed\n", "written\n", "from a child\n", "UserWarning: worn out"):
        assert said in log, log


@pytest.mark.parametrize("workers", ["0", "1"])
def test_what_an_environment_prints_on_a_full_disk_is_lost_and_nothing_else(folder: Path, workers: str) -> None:
    (folder / "world.py").write_text(TALKATIVE_WORLD)
    words = ("--no-ui", "--env", "world:make", "--num-workers", workers, *SHORT)
    exit_code, stdout, stderr = finish(start("cartpole.yaml", *words, folder=folder, file_bytes=1 << 21))
    assert exit_code == 0, stdout + stderr
    name = "worker-0.log" if workers == "1" else "output.log"
    assert "made\nprintedprinted" in (folder / "results/a/run_logs" / name).read_text()


@pytest.mark.parametrize("workers", ["0", "1"])
def test_step_that_raises_shows_its_traceback_and_names_the_log(folder: Path, workers: str) -> None:
    (folder / "world.py").write_text(WORLD.format(last=100))
    words = ("--no-ui", "--env", "world:make", "--num-workers", workers, "--max-lifetime-restarts", "0", *SHORT)
    exit_code, stdout, _ = run("cartpole.yaml", *words, folder=folder)
    assert exit_code == 3, stdout
    assert "step raised RuntimeError: the leg broke off (copy 0), at world.py:19 in step" in stdout
    assert f'  File "{folder}/world.py", line 19, in step\n    raise RuntimeError("the leg broke off")' in stdout
    assert "RuntimeError: the leg broke off\n[" in stdout, "nothing follows the traceback"
    assert re.search(r"the whole traceback of world:make is in \S*results/a/run_logs/output\.log\n", stdout)
    log = (folder / "results/a/run_logs/output.log").read_text()
    assert "world:make failed: world:make, instance 0" in log
    assert f'Traceback (most recent call last):\n  File "{folder}/world.py", line 19, in step' in log


@pytest.mark.parametrize("workers", ["0", "1"])
def test_constructor_that_raises_shows_where_and_what_was_printed_before(folder: Path, workers: str) -> None:
    (folder / "maze.py").write_text(UNFINISHED)
    words = ("--no-ui", "--env", "maze:Maze", "--num-workers", workers, *SHORT)
    exit_code, stdout, stderr = run("cartpole.yaml", *words, folder=folder)
    assert exit_code == 3, stdout + stderr
    assert "start raised KeyError: 'entrance', at maze.py:11 in build\nTraceback (most recent call last):\n" in stderr
    assert f'  File "{folder}/maze.py", line 8, in __init__\n    self.build()\n' in stderr
    assert "engine/" not in stderr
    assert "Traceback" not in stdout
    assert "\x1b" not in stderr
    log = (folder / "results/a/run_logs/output.log").read_text()
    assert 'in build\n    raise KeyError("entrance")' in log
    assert ("about to build" in log) == (workers == "0"), "a worker has a log of its own"
    assert re.search(r"the whole traceback of maze:Maze is in \S*results/a/run_logs/output\.log\n", stdout)


def test_output_is_shown_if_its_log_was_removed_with_the_folder_of_the_run(folder: Path) -> None:
    program = f"""if True:
        from pathlib import Path
        from rl_tui.tui.terminal.captured_output import CapturedOutput
        with CapturedOutput() as output:
            print("made")
            output.save_to(Path({str(folder / "results/a/run_logs/output.log")!r}))
    """
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=DEADLINE_SECONDS
    )
    assert (done.stdout, done.stderr) == ("", "made\n")


def test_environment_that_ends_the_process_while_it_is_checked_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "leaving_world.py").write_text(LEAVING_WORLD)
    exit_code, stdout, stderr = run("check-env", "leaving_world:make", folder=tmp_path)
    assert exit_code == 3
    assert "is ready for training" not in stdout
    assert "leaving_world:make: step ended the process with exit code 0" in stderr
