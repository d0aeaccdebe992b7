"""A user's module may have a name that is taken, by this program or by Python."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rl_tui.engine.sampling.environments.factory import EnvironmentSource, make_environments
from rl_tui.engine.sampling.environments.shadowed import PREFIX
from rl_tui.engine.sampling.pools.process import ProcessPool

GAME = """\
import gymnasium

{imports}


def make():
    return gymnasium.make("CartPole-v1", max_episode_steps={limit})
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's folder, which is the working folder; afterwards nothing of it is left in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith(PREFIX)]:
        del sys.modules[name]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def limit_of(env: str) -> int:
    """The longest episode of the environment, which says whose it is."""
    [environment] = make_environments(env, "B", 1, {})
    copy = environment._copies[0]  # type: ignore[attr-defined]  # a GymnasiumLoop
    return int(copy.spec.max_episode_steps)


@pytest.mark.parametrize("name", ["engine", "tui", "random"])
def test_file_whose_name_is_taken_is_the_users(folder: Path, name: str) -> None:
    write(folder / f"{name}.py", GAME.format(imports="", limit=7))
    assert limit_of(f"{name}:make") == 7
    assert "engine" not in sys.modules
    assert sys.modules["random"] is random


@pytest.mark.parametrize(
    "imports",
    [
        "from engine.rules import LIMIT",
        "import engine.rules\nLIMIT = engine.rules.LIMIT",
        "from .rules import LIMIT",
        "from engine import rules\nLIMIT = rules.LIMIT",
        "import helpers\nLIMIT = helpers.limit()",
    ],
)
def test_package_whose_name_is_taken_imports_its_own_modules(folder: Path, imports: str) -> None:
    write(folder / "engine/__init__.py", "")
    write(folder / "engine/errors.py", "NUMBER = 9")  # a name that ours has too
    write(folder / "engine/rules.py", "from engine.errors import NUMBER as LIMIT\n")
    write(folder / "engine/game.py", GAME.format(imports=imports, limit="LIMIT"))
    write(folder / "helpers.py", "def limit():\n    return 9\n")
    assert limit_of("engine.game:make") == 9
    assert hasattr(sys.modules["rl_tui.engine.errors"], "ConfigError")
    sys.modules.pop("helpers", None)


def test_package_without_an_init_file_is_the_users_too(folder: Path) -> None:
    write(folder / "tui/game.py", GAME.format(imports="", limit=5))
    assert limit_of("tui.game:make") == 5


def test_our_own_modules_are_found_beside_a_folder_of_that_name(folder: Path) -> None:
    write(folder / "engine/game.py", GAME.format(imports="", limit=5))
    [environment] = make_environments("rl_tui.engine.sampling.environments.toys.frames:Frames", "B", 1, {})
    assert environment.num_agents == {"B": 1}


def test_worker_finds_the_users_module_as_well(folder: Path) -> None:
    write(folder / "engine/__init__.py", "from engine.rules import LIMIT")
    write(folder / "engine/rules.py", "LIMIT = 3")
    write(folder / "engine/game.py", GAME.format(imports="from engine import LIMIT", limit="LIMIT"))
    pool = ProcessPool(EnvironmentSource("engine.game:make", "B", {}), 2, 1)
    try:
        pool.start()
        assert pool.num_agents == {"B": 2}
    finally:
        pool.close()
