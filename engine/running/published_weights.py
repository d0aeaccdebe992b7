"""The weights that a learner publishes, for policies that act, are evaluated or watched."""

from __future__ import annotations

from dataclasses import replace

from rl_tui.engine.learning.trainer import Trainer
from rl_tui.engine.running.threads import Mailbox
from rl_tui.engine.running.watching.policy import LatestPolicy, PolicySnapshot
from rl_tui.engine.specs import Weights


class PublishedWeights:
    """Numbers the versions of a trainer's weights: no two that were ever published have the same.

    Other threads call `pop`, and read `latest` and `first_version`: the oldest version whose experience is learned
    from, which grows with every roll back.
    """

    def __init__(self, trainer: Trainer, step: int | None):
        """step: from how many steps they were learned; None where the policy only plays."""
        self.first_version = 0
        self.latest = LatestPolicy(PolicySnapshot(trainer.weights(), step))
        self._mailbox: Mailbox[Weights] = Mailbox()
        self._trainer = trainer
        self._ahead = 0  # of the trainer's own count, which a roll back resets

    @property
    def version(self) -> int:
        """Of the newest."""
        return self._trainer.num_updates + self._ahead

    def newest(self) -> Weights:
        """A copy. Raises PluginError."""
        return replace(self._trainer.weights(), version=self.version)

    def publish(self, step: int) -> None:
        """Publish the newest. Raises PluginError."""
        weights = self.newest()
        self._mailbox.put(weights)
        self.latest.snapshot = PolicySnapshot(weights, step)

    def replace(self, step: int) -> None:
        """Publish weights that no update has made. Raises PluginError."""
        self._ahead += 1
        self.publish(step)

    def pop(self) -> Weights | None:
        """Those that the acting policy does not have yet; None where it has the newest."""
        return self._mailbox.pop()

    def abandon(self, version: int) -> None:
        """No experience of this version or an earlier one counts, now that the trainer was rolled back."""
        self._ahead = version + 1 - self._trainer.num_updates
        self.first_version = self.version
