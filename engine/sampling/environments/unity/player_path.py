"""From the path of a player, as a user writes it, to the file that is started."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from rl_tui.engine.config.diagnostics import visible
from rl_tui.engine.errors import ConfigError

_ENDINGS = (".app", ".exe", ".x86_64", ".x86")  # Unity's, which may be left out
_MODULES = "an environment in Python is named by its module and the class or function that makes it"
_SYSTEMS = {".app": "macOS", ".exe": "Windows", ".x86_64": "Linux", ".x86": "Linux"}


def find_player(path: str) -> Path:
    """The executable of a player, absolute. Raises ConfigError if there is none or it may not be executed."""
    given = Path(os.path.expanduser(path)).absolute()
    bare = given.with_name(given.name.removesuffix(_ending(given)))
    found = next((file for file in _candidates(given, bare) if file.is_file()), None)
    if found is None:
        raise ConfigError(f"{visible(path, limit=4096)}: {_why_missing(given, bare)}")
    if found.suffix == ".py":
        raise ConfigError(f"{visible(path, limit=4096)}: {_MODULES}, like {found.stem}:NAME")
    if not os.access(found, os.X_OK):
        raise ConfigError(f"{found}: must be executable to be started as a player. Try: chmod +x {found}")
    return found


def _ending(path: Path) -> str:
    return next((ending for ending in _ENDINGS if path.name.endswith(ending)), "")


def _candidates(given: Path, bare: Path) -> Iterator[Path]:
    """Where Unity puts the executable on this system, as ML-Agents looks for it; the path itself comes last."""
    if sys.platform == "darwin":
        programs = bare.with_name(f"{bare.name}.app") / "Contents" / "MacOS"
        yield programs / bare.name
        yield from sorted(programs.glob("*"))
    elif sys.platform == "win32":
        yield bare.with_name(f"{bare.name}.exe")
        yield from sorted(file for file in bare.glob("*.exe") if not file.name.startswith("UnityCrashHandler"))
    else:
        yield bare.with_name(f"{bare.name}.x86_64")
        yield bare.with_name(f"{bare.name}.x86")
    yield given
    yield bare


def _why_missing(given: Path, bare: Path) -> str:
    """What is there instead, and how else an environment may be named."""
    if given.is_dir():
        inside = sorted(file.name for file in given.glob("*") if file.suffix in _ENDINGS)
        hint = f" Did you mean {given / inside[0]}?" if inside else ""
        return f"must be the executable of a Unity player, got a folder.{hint}"
    for ending, system in _SYSTEMS.items():
        other = bare.with_name(f"{bare.name}{ending}")
        if other.exists():
            return f"no such Unity player. {other} was built for {system}: build one for this system"
    if given.with_name(f"{given.name}.py").is_file():
        return f"no such Unity player; {_MODULES}, like {given.name}:NAME"
    return (
        f"no such Unity player.{_similar(given)} An environment of Gymnasium is named gymnasium:ID, one of PettingZoo "
        "pettingzoo:NAME, the Unity Editor unity:editor"
    )


def _similar(given: Path) -> str:
    """What the user may have meant, or where to look; starts with a space."""
    if not given.parent.is_dir():
        return f" There is no folder {given.parent}."
    close = difflib.get_close_matches(given.name, [file.name for file in given.parent.iterdir()], 1)
    return f" Did you mean {given.with_name(close[0])}?" if close else f" It was looked for in {given.parent}."
