"""The interpreter of another program that the user names: whether it can be used, and what it answers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ZERO = 1e-12  # a gradient that is rounding alone is smaller, such as that of a bias that a softmax cancels


def fault_of(python: Path, module: str) -> str:
    """What is wrong with an interpreter that must have a module; "" where it can import it."""
    try:
        ended = subprocess.run([python, "-c", f"import {module}"], capture_output=True, text=True, check=False)
    except OSError as error:
        return f"must be a Python with {module}, but {python} cannot be started: {error.strerror}"
    said = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
    return f"must be a Python with {module}, got {python}: {said[-1]}" if ended.returncode else ""


def ask(python: Path, script: Path, asked: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """What a script of the peer answers to each line, in order. Raises RuntimeError with its message if it fails."""
    lines = "".join(f"{json.dumps(one)}\n" for one in asked)
    ended = subprocess.run([python, script], input=lines, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise RuntimeError(ended.stderr)
    return map(json.loads, ended.stdout.splitlines())


def gradient_difference(
    own: Mapping[str, np.ndarray[Any, Any]],
    names: Mapping[str, Sequence[tuple[str, slice]]],
    peer: Mapping[str, Any],
) -> float:
    """The largest difference of two gradients, relative to the largest number of its array, and not to less than ZERO.
    names: the peer's by ours, with the rows that each has."""
    worst = 0.0
    for name, parts in names.items():
        for theirs, rows in parts:
            expected = np.array(peer[theirs])
            found = own[name][rows].reshape(expected.shape)
            worst = max(worst, float(np.abs(found - expected).max() / max(np.abs(expected).max(), ZERO)))
    return worst
