"""Run ids without --run-id: the name of the configuration or preset, then the same with -2, -3 and so on.

When that name itself ends in a number, every run id gets one: walker-2 is the second run of walker.yaml, walker-2-1 the
first of walker-2.yaml.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from rl_tui.engine.storage.file_names import EVENTS
from rl_tui.engine.storage.ownership import has_learned, writing_process

LONGEST_NAME = 56  # of the 64 characters of a folder's name: the rest is for the number
_COUNT = r"-([1-9][0-9]{0,5})"  # shorter than a date, which is part of the user's own name


def run_name(file: str) -> str:
    """The run id for a configuration file, without a number: CartPole for config/ppo/CartPole.yaml."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(file).stem)
    return plain.lstrip("-._")[:LONGEST_NAME] or "run"


def first_run_id(name: str) -> str:
    """The run id of the first run of a name."""
    return f"{name}-1" if _is_numbered(name) else name


def next_run_id(results_dir: Path, name: str) -> str:
    """The name with the next free number. Raises OSError."""
    newest = max(_counts(results_dir, name), default=0)
    return f"{name}-{newest + 1}" if newest else first_run_id(name)


def newest_run_id(results_dir: Path, name: str) -> str | None:
    """The run of that name with the highest number, preferring runs that did not fail before they learned anything.

    None when there is no run of that name. Raises OSError.
    """
    counts = _counts(results_dir, name)
    if not counts:
        return None
    newest_first = [counts[number] for number in sorted(counts, reverse=True)]
    return next((name for name in newest_first if not _has_failed_at_start(results_dir / name)), newest_first[0])


def _has_failed_at_start(folder: Path) -> bool:
    return (folder / EVENTS).is_file() and not has_learned(folder) and writing_process(folder) is None


def _is_numbered(name: str) -> bool:
    return re.fullmatch(f".*{_COUNT}", name) is not None


def _counts(results_dir: Path, name: str) -> dict[int, str]:
    """The folders of that name, by number; case is ignored, as macOS does."""
    try:
        found = os.listdir(results_dir)
    except FileNotFoundError:
        return {}
    pattern = re.escape(name) + (_COUNT if _is_numbered(name) else f"(?:{_COUNT})?")
    matches = (re.fullmatch(pattern, entry, re.IGNORECASE) for entry in sorted(found))
    return {int(match[1] or 1): match[0] for match in matches if match}
