"""Where the executable of a player is found, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.environments.factory import EnvironmentSource, require_environment
from rl_tui.engine.sampling.environments.unity.player_path import find_player


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("written", ["Ball", "Ball.x86_64", "Ball.exe", "Ball.app", "./Ball", "../builds/Ball"])
def test_ending_may_be_left_out_and_that_of_another_system_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    player = executable(tmp_path / "builds/Ball.x86_64")
    monkeypatch.chdir(tmp_path / "builds")
    monkeypatch.setattr("sys.platform", "linux")
    assert find_player(written).resolve() == player


def test_players_own_ending_comes_before_the_path_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    script = executable(tmp_path / "Ball")
    assert find_player(str(script)) == script
    older = executable(tmp_path / "Ball.x86")
    assert find_player(str(script)) == older
    newer = executable(tmp_path / "Ball.x86_64")
    assert find_player(str(script)) == newer


def test_player_is_found_within_the_bundle_of_macos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    player = executable(tmp_path / "Ball.app/Contents/MacOS/Product")
    assert find_player(str(tmp_path / "Ball")) == find_player(str(tmp_path / "Ball.app")) == player


def test_player_is_found_in_a_folder_of_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    executable(tmp_path / "Ball/UnityCrashHandler64.exe")
    player = executable(tmp_path / "Ball/Product.exe")
    assert find_player(str(tmp_path / "Ball")) == player


def test_home_folder_may_be_written_as_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    player = executable(tmp_path / "Ball")
    assert find_player("~/Ball") == player


def test_missing_player_is_refused_with_how_else_an_environment_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"Ball: no such Unity player. .* gymnasium:ID, one of PettingZoo pettingzoo:NAME, the"
    ):
        require_environment(f"unity:{tmp_path}/Ball")


def test_file_without_an_ending_is_found_by_a_path_that_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    player = executable(tmp_path / "Ball")
    assert find_player(str(tmp_path / "Ball.exe")) == player


@pytest.mark.parametrize(
    ("built", "system"), [("Ball.exe", "Windows"), ("Ball.app/Contents/MacOS/Ball", "macOS")], ids=["exe", "app"]
)
def test_build_for_another_system_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: str, system: str
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    executable(tmp_path / built)
    with pytest.raises(ConfigError, match=rf"Ball[.]\w+ was built for {system}: build one for this system"):
        find_player(str(tmp_path / "Ball"))


def test_missing_player_is_refused_with_a_file_of_a_similar_name_or_where_it_was_looked_for(tmp_path: Path) -> None:
    player = executable(tmp_path / "3DBall")
    with pytest.raises(ConfigError, match=rf"no such Unity player. Did you mean {player}[?] An environment"):
        find_player(str(tmp_path / "3DBal"))
    with pytest.raises(ConfigError, match=rf"It was looked for in {tmp_path}[.]"):
        find_player(str(tmp_path / "Walker"))
    with pytest.raises(ConfigError, match=rf"There is no folder {tmp_path}/build[.]"):
        find_player(str(tmp_path / "build/3DBall"))


@pytest.mark.parametrize("typed", ["my_world.py", "my_world"])
def test_module_is_refused_with_how_an_environment_in_it_is_named(tmp_path: Path, typed: str) -> None:
    (tmp_path / "my_world.py").touch()
    with pytest.raises(ConfigError, match=r"class or function that makes it, like my_world:NAME$"):
        find_player(str(tmp_path / typed))


def test_folder_is_refused_with_the_player_in_it(tmp_path: Path) -> None:
    player = executable(tmp_path / "build/Ball.x86_64")
    with pytest.raises(ConfigError, match=f"got a folder. Did you mean {player}?"):
        find_player(str(tmp_path / "build"))
    with pytest.raises(ConfigError, match=r"must be the executable of a Unity player, got a folder.$"):
        find_player(str(tmp_path))


def test_file_that_may_not_be_executed_is_refused_with_what_helps(tmp_path: Path) -> None:
    player = executable(tmp_path / "Ball.x86_64")
    player.chmod(0o644)
    with pytest.raises(ConfigError, match=f"^{player}: must be executable .* Try: chmod [+]x {player}$"):
        require_environment(f"unity:{tmp_path}/Ball")


def test_editor_needs_no_file() -> None:
    require_environment("unity:editor")


def test_player_that_is_to_be_drawn_is_refused_with_what_can_be_done(tmp_path: Path) -> None:
    source = EnvironmentSource(f"unity:{executable(tmp_path / 'Ball')}", "B", {})
    with pytest.raises(ConfigError, match=r"cannot be drawn here.* without --no-graphics, or use the exported .onnx"):
        source.showing_frames().make(0, 1)
