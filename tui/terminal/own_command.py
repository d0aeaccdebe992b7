"""Command lines of this program: run beside it, or in its place."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence


def own_command(words: Sequence[str]) -> list[str]:
    """What runs rl-tui with those words, by the same interpreter and whatever lies in the working directory."""
    return [sys.executable, "-P", "-m", "rl_tui", *words]


def shown_command(words: Sequence[str]) -> str:
    """The same as a user would type it."""
    return shlex.join(["rl-tui", *words])


def become(words: Sequence[str]) -> None:
    """This process runs that command line of rl-tui from now on; it never returns."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, own_command(words))
