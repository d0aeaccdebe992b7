"""Writes players that can be started as a build of Unity is."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def make_player(folder: Path, *arguments: str, name: str = "player") -> Path:
    """An executable file that plays with these arguments, and with those it is started with after them."""
    words = shlex.join([sys.executable, "-m", "tests.unity_player", *arguments])
    path = folder / name
    paths = shlex.quote(f"{ROOT / 'src'}:{ROOT}")
    path.write_text(f'#!/bin/sh\nPYTHONPATH={paths} exec {words} "$@"\n')
    path.chmod(0o755)
    return path
