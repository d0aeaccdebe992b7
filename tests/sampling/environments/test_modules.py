"""A user's module may have a name that Python or an installed package has taken."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

from rl_tui.engine.sampling.environments.factory import EnvironmentSource, make_environments
from rl_tui.engine.sampling.environments.modules import PREFIX
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
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry and not Path(entry, "engine").is_dir()])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith(PREFIX) or str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def limit_of(env: str) -> int:
    """The longest episode of the environment, which says whose it is."""
    [environment] = make_environments(env, "B", range(1), {})
    copy = environment._copies[0]  # type: ignore[attr-defined]  # a GymnasiumLoop
    return int(copy.spec.max_episode_steps)


@pytest.mark.parametrize("name", ["engine", "tui", "random", "time", "yaml"])  # time is built into Python
def test_file_whose_name_is_taken_is_the_users(folder: Path, name: str) -> None:
    python_has = sys.modules.get(name)
    write(folder / f"{name}.py", GAME.format(imports="", limit=7))
    assert limit_of(f"{name}:make") == 7
    assert python_has is None or sys.modules[name] is python_has


@pytest.mark.parametrize(
    "imports",
    [
        "from json.rules import LIMIT",
        "import json.rules\nLIMIT = json.rules.LIMIT",
        "from .rules import LIMIT",
        "from json import rules\nLIMIT = rules.LIMIT",
        "import helpers\nLIMIT = helpers.limit()",
    ],
)
def test_package_whose_name_is_taken_imports_its_own_modules(folder: Path, imports: str) -> None:
    write(folder / "json/__init__.py", "")
    write(folder / "json/decoder.py", "NUMBER = 9")  # a name that Python's has too
    write(folder / "json/rules.py", "from json.decoder import NUMBER as LIMIT\n")
    write(folder / "json/game.py", GAME.format(imports=imports, limit="LIMIT"))
    write(folder / "helpers.py", "import json\n\ndef limit():\n    return int(json.dumps(9))\n")
    assert limit_of("json.game:make") == 9
    assert not hasattr(json.decoder, "NUMBER")


def test_package_without_an_init_file_is_the_users_too(folder: Path) -> None:
    write(folder / "json/game.py", GAME.format(imports="", limit=5))
    assert limit_of("json.game:make") == 5


def test_installed_package_is_found_next_to_a_folder_of_that_name(folder: Path) -> None:
    write(folder / "gymnasium/notes.txt", "")
    assert limit_of("gymnasium:gymnasium:CartPole-v1") == 500


def test_worker_finds_the_users_module_as_well(folder: Path) -> None:
    write(folder / "json/__init__.py", "from json.rules import LIMIT")
    write(folder / "json/rules.py", "LIMIT = 3")
    write(folder / "json/game.py", GAME.format(imports="from json import LIMIT", limit="LIMIT"))
    pool = ProcessPool(EnvironmentSource("json.game:make", "B", {}), 2, 1)
    try:
        pool.start()
        assert pool.num_agents == {"B": 2}
    finally:
        pool.close()


@pytest.mark.parametrize("identifier", ["Maze-v0", "games/Maze-v0"])
def test_id_that_a_module_of_the_user_registers_is_found_with_its_module(folder: Path, identifier: str) -> None:
    text = GAME.format(
        imports=f"gymnasium.register({identifier!r}, lambda: make().unwrapped, max_episode_steps=5)", limit=7
    )
    write(folder / "my_games.py", text)
    try:
        assert limit_of(f"gymnasium:my_games:{identifier}") == 5
        pool = ProcessPool(EnvironmentSource(f"gymnasium:my_games:{identifier}", "B", {}), 2, 1)
        pool.start()
        pool.close()
    finally:
        gymnasium.registry.pop(identifier)
