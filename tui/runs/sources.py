"""What a screen needs of recorded runs: a folder of them, and one that is played."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from rl_tui.engine.session.messages import Envelope

if TYPE_CHECKING:
    from rl_tui.engine.session.summaries import Removal, RunSummary
    from rl_tui.tui.runs.seeking import Seek


class Runs(Protocol):
    """The runs of a folder. Every call may take a while: make it in a thread. Each raises RlTuiError, with a message
    for the user, on what it cannot read."""

    def runs(self) -> Sequence[RunSummary]:
        """All of them, newest first."""

    def events(self, name: str) -> Iterator[Envelope]:
        """The events of one run, by its id, oldest first."""

    def configuration(self, name: str) -> str:
        """The effective configuration of one run as YAML."""

    def preview_removal(self, name: str) -> Removal:
        """What removing that run would remove."""

    def remove(self, name: str) -> None:
        """That run is gone with its folder."""

    def resume_command(self, name: str) -> tuple[str, ...]:
        """The command line, without rl-tui itself, that resumes that run."""

    def evaluate_command(self, name: str) -> tuple[str, ...]:
        """The command line, without rl-tui itself, that evaluates that run."""


class Player(Protocol):
    """A recorded run that is played."""

    def change_speed(self, by: int) -> str:
        """Faster or slower by so many notches; returns the speed in words."""

    def pause(self) -> str:
        """Pause, or continue; returns the speed in words."""

    def seek(self, seek: Seek) -> None:
        """Go to another place."""
