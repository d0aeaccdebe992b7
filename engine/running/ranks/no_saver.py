"""What learners of other ranks than 0 have instead of files."""

from __future__ import annotations

from rl_tui.engine.running.saver import RollBackJob, SaveJob, Saver


class NoSaver(Saver):
    """Writes nothing: rank 0 does."""

    def put_first(self, job: SaveJob) -> None:
        """See Saver."""

    def offer(self, job: SaveJob) -> bool:
        """See Saver."""
        return True

    def put(self, job: SaveJob | RollBackJob) -> None:
        """See Saver."""

    def has_written_replay(self, behavior: str, may_wait: bool = False) -> bool:
        """Never, so that no copy of a replay buffer is made for this."""
        return False

    def has_good(self, behavior: str) -> bool:
        """Rank 0 knows, and says when training is rolled back."""
        return True

    def report_unsaved(self, behavior: str, step: int) -> None:
        """See Saver."""
