"""What a rank does for what all agree on: rank 0 decides (leader.py), the others follow (follower.py)."""

from __future__ import annotations

from typing import Protocol

from rl_tui.engine.errors import RlTuiError, SyncError
from rl_tui.engine.running.ranks.messages import Change, Failure, Report, Turn


class Agreement(Protocol):
    """A rank's part of what all agree on: Leader, Follower. Every method but `leave` raises SyncError once a rank is
    lost.

    num_turns: that were taken, with changes after which what was collected before counts no more.
    """

    num_turns: int

    def report(self, report: Report) -> None:
        """What this rank has."""

    def exchange(self) -> None:
        """Hear what other ranks have, and send what is new here."""

    def beat(self) -> None:
        """Called where this rank waits for a disk. Raises nothing."""

    def announce(self, change: Change) -> None:
        """This was changed on rank 0, between two updates."""

    def next_turn(self) -> Turn | None:
        """What all ranks do next, which this rank does before it calls anything else here."""

    def wait(self, seconds: float) -> None:
        """Return once there may be a turn, or after that time."""

    def note_heard(self) -> None:
        """All ranks have just finished an update together."""

    def named(self, error: SyncError) -> SyncError | None:
        """The same error of an update, with the rank that was lost in it; None where one has left, being asked to,
        and all stop."""

    def fail(self, error: RlTuiError) -> None:
        """Training has ended on this rank because of that, and not in an update."""

    def leave(self, failure: Failure | None) -> None:
        """This rank ends; None where it has not failed."""
