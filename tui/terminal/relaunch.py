"""Command lines of this program: run in another process, or instead of this one."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence

from rl_tui.engine.process.vital_signs import SIGNS


def relaunch_command(words: Sequence[str]) -> list[str]:
    """What runs rl-tui with those arguments: the same interpreter, whatever is in the working directory."""
    return [sys.executable, "-P", "-m", "rl_tui", *words]


def shell_command(words: Sequence[str]) -> str:
    """The same as a user would type it."""
    return shlex.join(["rl-tui", *words])


def relaunch(words: Sequence[str]) -> None:
    """Replace this process by rl-tui with those arguments. Returns where another process watches this one: that is
    replaced, once this one has ended."""
    if SIGNS.watcher:
        SIGNS.next_command = words
        return
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, relaunch_command(words))
