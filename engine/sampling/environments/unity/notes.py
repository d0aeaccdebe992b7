"""What an environment has to say to the user, besides steps."""

from __future__ import annotations

from collections import deque
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["debug", "info", "warning"]
_MOST = 100  # that wait to be read; the oldest are dropped


class Notes:
    """Lines for the user. Added and popped by any thread."""

    def __init__(self) -> None:
        self._lines: deque[tuple[Level, str]] = deque(maxlen=_MOST)

    def add(self, level: Level, text: str) -> None:
        """One more line."""
        self._lines.append((level, text))

    def warn(self, text: str) -> None:
        """One more line, about something that is probably wrong."""
        self.add("warning", text)

    def pop(self) -> list[tuple[Level, str]]:
        """The lines since the last call."""
        return [self._lines.popleft() for _ in range(len(self._lines))]
