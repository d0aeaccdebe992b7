"""Fresh interpreters for measurements: nothing that one of them imports or sets reaches the next."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.warm_start import COLD

ROOT = Path(__file__).resolve().parents[2]
UNSET = "PYTHONDONTWRITEBYTECODE"  # an installed program is compiled once, not at every start
PYTHON = (*COLD, "-u", UNSET, sys.executable)  # begins a command line on a terminal, which could be forked otherwise


def limit_cpus(count: int) -> int:
    """This process and all it starts from now on use so many CPUs at most; returns how many there are then."""
    if not hasattr(os, "sched_setaffinity"):  # macOS has no such call
        return os.cpu_count() or 1
    usable = sorted(os.sched_getaffinity(0))[:count]
    os.sched_setaffinity(0, usable)
    return len(usable)


def surroundings() -> dict[str, str]:
    """Environment variables under which a child finds the project from any folder."""
    others = {name: value for name, value in os.environ.items() if name != UNSET}
    return {**others, "PYTHONPATH": str(ROOT / "src"), "TERM": "xterm-256color"}


def run_python(*words: str, folder: Path, variables: Mapping[str, str] | None = None) -> str:
    """What a fresh interpreter with these words and environment variables, working in `folder`, said on stdout.

    Raises RuntimeError with its stderr when it fails.
    """
    ended = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**surroundings(), **(variables or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode != 0:
        raise RuntimeError(f"python {' '.join(words)} ended with {ended.returncode}:\n{ended.stderr}")
    return ended.stdout
