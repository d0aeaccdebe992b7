"""Runs that were recorded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rl_tui.engine.session.messages import Envelope
from rl_tui.engine.storage.archive import Archive


def events(run: str | os.PathLike[str]) -> Iterator[Envelope]:
    """The recorded events of a run, oldest first, up to the newest one of a run that still trains.

    run: its folder, or the path of an events file. Raises ConfigError where there is none, or at a line that cannot be
    read.
    """
    path = Path(run)
    yield from Archive(path.parent).events(str(path))
