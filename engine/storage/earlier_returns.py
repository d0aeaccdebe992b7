"""Whether the episodes that a run recorded before it was resumed had different returns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from rl_tui.engine.process.files import open_regular
from rl_tui.engine.session.returns import differ
from rl_tui.engine.storage.summary_fold import number


def earlier_returns(path: Path, behavior: str) -> tuple[float, ...]:
    """Two returns of that behavior's episodes that differ, or the one that all had; empty where none can be read.

    path: events.jsonl. It is read up to the first two that differ, in most runs its first lines.
    """
    lowest = highest = None
    for one in _returns(path, behavior):
        lowest, highest = min(one, one if lowest is None else lowest), max(one, one if highest is None else highest)
        if differ(lowest, highest):
            return lowest, highest
    return () if highest is None else (highest,)


def _returns(path: Path, behavior: str) -> Iterator[float]:
    """The lowest and the highest finite one of each group of episodes that ended together."""
    try:
        with open(open_regular(path, follows_links=False), encoding="utf-8", errors="replace") as file:
            for line in file:
                if '"EpisodesFinished"' in line:
                    yield from _of_line(line, behavior)
    except OSError:  # the run goes on without its history, whose loss is reported where it is written
        return


def _of_line(line: str, behavior: str) -> Iterator[float]:
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):  # a torn line
        return
    if isinstance(body, dict) and body.get("event") == "EpisodesFinished" and body.get("behavior") == behavior:
        for name in ("min_return", "max_return"):
            if (value := number(body.get(name))) is not None:
                yield value
