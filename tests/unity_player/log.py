"""What a player writes into its log: lines as Unity's, and what it received, as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO


class Log:
    """Written line by line, so that a crash loses nothing. Without a path: to the output."""

    def __init__(self, path: Path | None) -> None:
        self._file: TextIO = sys.stdout if path is None else path.open("w")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.flush()

    def say(self, line: str) -> None:
        """A line of words."""
        print(line, file=self._file, flush=True)

    def note(self, **what: object) -> None:
        """A line of JSON."""
        self.say(json.dumps(what))


def notes(path: Path) -> list[dict[str, object]]:
    """The lines of JSON in a log."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
