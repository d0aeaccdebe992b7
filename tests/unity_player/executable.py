"""Writes players that can be started as a build of Unity is."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FIRST, _LAST = "#!/bin/sh\n", ' "$@"\n'


def make_player(folder: Path, *arguments: str, name: str = "player") -> Path:
    """An executable file that plays with these arguments, and with those it is started with after them."""
    words = shlex.join([sys.executable, "-m", "tests.unity_player", *arguments])
    path = folder / name
    paths = shlex.quote(f"{ROOT / 'src'}:{ROOT}")
    path.write_text(f"{_FIRST}PYTHONPATH={paths} exec {words}{_LAST}")
    path.chmod(0o755)
    return path


def read_player(path: str) -> tuple[dict[str, str], list[str]] | None:
    """The variables and the command line of such a file; None of another one."""
    try:
        with open(path, "rb") as file:
            if file.read(len(_FIRST)) != _FIRST.encode():
                return None
            line = file.read().decode(errors="replace")
    except OSError:
        return None
    if not line.startswith("PYTHONPATH=") or not line.endswith(_LAST) or line.count("\n") > 1:
        return None
    assigned, _exec, *words = shlex.split(line.removesuffix(_LAST))
    name, _, value = assigned.partition("=")
    return {name: value}, words
