"""Whether an interpreter that the user names can be measured against."""

from __future__ import annotations

import subprocess
from pathlib import Path


def fault_of(python: Path, module: str) -> str:
    """What is wrong with an interpreter that must have a module; "" where it can import it."""
    try:
        ended = subprocess.run([python, "-c", f"import {module}"], capture_output=True, text=True, check=False)
    except OSError as error:
        return f"must be a Python with {module}, but {python} cannot be started: {error.strerror}"
    said = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
    return f"must be a Python with {module}, got {python}: {said[-1]}" if ended.returncode else ""
