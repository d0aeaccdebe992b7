"""The context of a writer that is tested without a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rl_tui.engine.running.writers.base import WriterContext
from rl_tui.engine.session.messages import LogLevel


@dataclass
class Logged:
    """What a writer has logged."""

    lines: list[tuple[LogLevel, str]] = field(default_factory=list)

    def add(self, level: LogLevel, message: str) -> None:
        """One line more."""
        self.lines.append((level, message))


def context_in(
    folder: Path, behaviors: Mapping[str, Any] | None = None, resumed: bool = False, logged: Logged | None = None
) -> WriterContext:
    """A run `run` in that folder, each behavior in its own below it."""
    return WriterContext(
        run_id="run",
        folder=folder,
        started_at=500.0,
        resumed=resumed,
        configuration={"default_settings": None, "behaviors": dict(behaviors or {}), "debug": False},
        folder_of=lambda behavior: folder / behavior,
        log=(logged or Logged()).add,
    )
