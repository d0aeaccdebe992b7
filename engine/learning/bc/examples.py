"""What behavioral cloning learns from, wherever it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from rl_tui.engine.learning.trainer import Metrics, Samples
from rl_tui.engine.specs import Json, Observations, State, Trajectories


class Examples(Protocol):
    """Steps with the actions to be learned there. Used by one thread."""

    @property
    def rows_per_update(self) -> int:
        """An update is due after so many rows."""

    def observations(self) -> Iterator[Observations]:
        """Those of every step that is known before anything is learned, in parts."""

    def add(self, block: Trajectories) -> Samples:
        """New experience of the policy that learns; returns samples of metrics."""

    def is_ready(self, num_waiting: int) -> bool:
        """Whether `learn` has something to learn from. num_waiting: rows that will have been added by then."""

    def learn(self, learning_rate: float, should_continue: Callable[[], bool]) -> Metrics:
        """The steps of one update. Raises NonFiniteError, DemonstrationError; it undoes nothing then."""

    def labeled(self, block: Trajectories) -> Trajectories:
        """The same experience with the actions that are to be learned in it."""

    def counts(self) -> dict[str, Json]:
        """What `load_counts` needs, of all that a checkpoint keeps."""

    def load_counts(self, counts: State) -> None:
        """Continue from these, without what was added after them."""
