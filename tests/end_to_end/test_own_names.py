"""One package is installed, rl_tui: every other name is the user's, in the program and in its worker processes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.program import CARTPOLE, ROOT, finish, surroundings
from tests.packages import MAZE, Packages
from tests.warm_start import COLD, WarmProcess

# As the installed command is: the working folder is not searched by itself.
RL_TUI = ["-P", "-m", "rl_tui"]
GAME = """\
import gymnasium

from rl_tui.engine.specs import Steps
{imports}


def make():
    return gymnasium.make("CartPole-v1", max_episode_steps=LIMIT)
"""


def run_python(*words: str, folder: Path, from_cold: bool = False, **variables: str) -> str:
    """What this interpreter prints, which must succeed; PYTHONPATH is set only where it is given."""
    process = WarmProcess(
        [*COLD * from_cold, sys.executable, *words], cwd=folder, env=surroundings(**variables),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    exit_code, stdout, stderr = finish(process)
    assert exit_code == 0, stdout + stderr
    return stdout


def write_package(folder: Path, name: str) -> str:
    """A package of that name with two modules that import each other; the text that names its environment."""
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text("")
    (folder / name / "errors.py").write_text("LIMIT = 7\n")  # rl_tui.engine has an errors, too
    (folder / name / "game.py").write_text(GAME.format(imports=f"from {name}.errors import LIMIT"))
    return f"{name}.game:make"


@pytest.mark.parametrize(
    ("name", "place"), [("engine", "working folder"), ("engine", "PYTHONPATH"), ("engine", "file"), ("tui", "file")]
)
def test_module_called_as_a_folder_of_this_project_is_the_users(name: str, place: str, tmp_path: Path) -> None:
    """`check-env` makes two copies in its own process, then one in a worker."""
    variables = {}
    if place == "file":
        (tmp_path / f"{name}.py").write_text(GAME.format(imports="LIMIT = 7"))
        env = f"{name}:make"
    elif place == "PYTHONPATH":
        env, variables = write_package(tmp_path / "elsewhere", name), {"PYTHONPATH": str(tmp_path / "elsewhere")}
    else:
        env = write_package(tmp_path, name)
    said = run_python(*RL_TUI, "check-env", env, folder=tmp_path, **variables)
    assert re.search(r"episodes: mean length [67]\.\d, .* truncated", said), said
    assert "a worker process (num_workers) can step it" in said


@pytest.mark.parametrize("from_cold", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_run_trains_in_it_in_worker_processes(from_cold: bool, tmp_path: Path) -> None:
    env = write_package(tmp_path, "engine")
    (tmp_path / "game.yaml").write_text(CARTPOLE.replace("gymnasium:CartPole-v1", env))
    short = ("--num-envs=2", "--num-workers=2", "--set=behaviors.CartPole.max_steps=600", "--run-id=a")
    said = run_python(*RL_TUI, "game.yaml", "--no-ui", *short, folder=tmp_path, from_cold=from_cold)
    assert "Mean Reward: 7.000" in said, said


def test_no_other_package_is_installed(tmp_path: Path) -> None:
    ask = "from importlib.util import find_spec; print(*map(find_spec, ('engine', 'tui', 'config', 'presets')))"
    assert run_python("-c", ask, folder=tmp_path, from_cold=True) == "None None None None\n"


def test_package_is_made_of_links_to_the_folders_of_the_project() -> None:
    """For editable installations; tests/test_packaging.py shows what others are made of."""
    package = ROOT / "src/rl_tui"
    links = {path.name: path.resolve() for path in package.iterdir() if path.is_symlink()}
    assert links == {"engine": ROOT / "engine", "tui": ROOT / "tui", "presets": ROOT / "config"}
    files = {path.name for path in package.iterdir()} - set(links) - {"__pycache__"}
    assert files == {"__init__.py", "__main__.py", "py.typed"}


def test_kind_of_environment_is_added_by_an_installed_package(tmp_path: Path) -> None:
    """Through its entry point, in the program and in a worker; PYTHONPATH does here what installing it would."""
    plugins = Packages(tmp_path / "plugins")
    plugins.install("maze", MAZE, environments="maze = maze:MazeSettings")
    words = [*RL_TUI, "check-env", "maze:small", "--env-kwargs", '{"size": 3}']
    said = run_python(*words, folder=tmp_path, PYTHONPATH=str(plugins.folder))
    assert "observation 'position': a vector of 1, float32" in said
    assert "a worker process (num_workers) can step it" in said
