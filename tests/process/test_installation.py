"""The command that installs a missing package fits how rl-tui was installed."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.process import installation
from rl_tui.engine.process.installation import command_for, command_for_extra
from rl_tui.engine.sampling.environments.factory import make_environments, require_environment


class Installed:
    """How rl-tui was installed, according to its metadata and the folder of its environment."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._files: dict[str, str] = {}
        self._prefix = folder / "venv"
        (self._prefix / "bin").mkdir(parents=True)
        self.clone = folder / "my clone"
        self.clone.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "prefix", str(self._prefix))
        monkeypatch.setattr(sys, "executable", str(self._prefix / "bin/python"))
        monkeypatch.setattr(installation, "_read", lambda name: self._files.get(name, ""))

    def by(self, installer: str, *, editable: bool = False, marker: str = "") -> None:
        """installer: of its metadata. marker: a file that its tool leaves in the environment."""
        url = {"url": self.clone.as_uri(), "dir_info": {"editable": True} if editable else {}}
        self._files = {"INSTALLER": f"{installer}\n", "direct_url.json": json.dumps(url)}
        if marker:
            (self._prefix / marker).touch()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    return Installed(tmp_path, monkeypatch)


def test_editable_installation_stays_editable(installed: Installed) -> None:
    installed.by("pip", editable=True)
    assert command_for_extra("box2d") == "venv/bin/python -m pip install -e './my clone[box2d]'"


def test_copy_of_a_clone_is_installed_again_from_it(installed: Installed) -> None:
    installed.by("pip")
    assert command_for_extra("box2d") == "venv/bin/python -m pip install './my clone[box2d]'"


def test_without_the_clone_the_packages_themselves_are_named(installed: Installed) -> None:
    installed.by("pip")
    installed.clone.rmdir()
    assert command_for_extra("box2d") == "venv/bin/python -m pip install 'gymnasium[box2d]'"


def test_installation_by_uv_uses_uv(installed: Installed) -> None:
    installed.by("uv", editable=True)
    assert command_for_extra("mujoco") == "uv pip install --python venv/bin/python -e './my clone[mujoco]'"


def test_pipx_injects_the_packages(installed: Installed) -> None:
    installed.by("pip", marker="pipx_metadata.json")
    words = shlex.split(command_for_extra("record"))
    assert words[:3] == ["pipx", "inject", "rl-tui"]
    assert sorted(word.partition(">")[0] for word in words[3:]) == ["imageio", "imageio-ffmpeg"]
    assert command_for("ale-py") == "pipx inject rl-tui ale-py"


def test_tool_of_uv_is_installed_again_with_the_extra(installed: Installed) -> None:
    installed.by("uv", marker="uv-receipt.toml")
    assert command_for_extra("box2d") == "uv tool install --force './my clone[box2d]'"
    assert command_for("ale-py").startswith("uv pip install --python ")


@pytest.mark.parametrize("use", [lambda name: make_environments(name, "B", range(1), {}), require_environment])
def test_missing_package_is_named_once_with_the_command_that_installs_it(
    installed: Installed, monkeypatch: pytest.MonkeyPatch, use: Callable[[str], object]
) -> None:
    """Also before a run is started, as by --dry-run."""
    installed.by("pip", editable=True)
    monkeypatch.setitem(sys.modules, "Box2D", None)
    for module in [name for name in sys.modules if name.startswith("gymnasium.envs.box2d")]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(ConfigError) as refused:
        use("gymnasium:LunarLander-v3")
    assert str(refused.value) == (
        "gymnasium:LunarLander-v3: it needs Box2D, which is not installed. "
        "Install it with: venv/bin/python -m pip install -e './my clone[box2d]'"
    )
