"""The seam of an algorithm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from rl_tui.engine.errors import NonFiniteError
from rl_tui.engine.specs import Policy, State, Trajectories, Weights

Metrics: TypeAlias = Mapping[str, float]  # by ML-Agents' tag
Samples: TypeAlias = Mapping[str, Sequence[float]]  # the same, each number counting as much as any other


def always() -> bool:
    """What an update asks between mini-batches where no one may end it."""
    return True


def require_finite(block: Trajectories) -> None:
    """Return if every reward is a finite number, else raise NonFiniteError naming the agent."""
    if not np.isfinite(block.rewards).all():
        row = int(np.flatnonzero(~np.isfinite(block.rewards))[0])
        agent = int(np.repeat(block.agent_ids, block.lengths)[row])
        raise NonFiniteError(f"agent {agent} got the reward {block.rewards[row]}; the policy as it stands was kept")


class Trainer(Protocol):
    """What a behavior learns with. Used by one thread; knows no thread, file, clock or event."""

    is_on_policy: bool  # experience must come from the newest policy, unless the user allows otherwise
    rows_per_update: int  # an update comes when at least so many rows are there
    time_horizon: int  # segments of experience are cut at so many steps
    replay_bytes: int  # what keeping experience over updates costs in memory; 0 where none is kept

    @property
    def num_parameters(self) -> int:
        """How many numbers are trained."""

    @property
    def num_updates(self) -> int:
        """Updates since the beginning of training, over all resumes."""

    def hyperparameters(self) -> Mapping[str, float]:
        """What `set_hyperparameter` may change, by its name in the configuration.

        Where a schedule moves a value, this is the one the schedule starts from.
        """

    def set_hyperparameter(self, name: str, value: float) -> None:
        """Use that value from the next update on. No part of `state()`: whoever sets it also keeps it.

        Raises ConfigError when there is no such name, or when a configuration could not hold the value.
        """

    def add(self, block: Trajectories) -> Samples:
        """Take experience in; numbers about it. Raises NonFiniteError naming what is not finite."""

    def is_ready(self) -> bool:
        """Whether `update` has enough to learn from."""

    def update(self, step: int, should_continue: Callable[[], bool] = always) -> Metrics:
        """Learn from what was added; schedules are read at `step`. Numbers about it.

        should_continue: called after each mini-batch, where other threads may use the interpreter. When it returns
        False, the update ends with what it has learned so far.

        Raises NonFiniteError after going back to the state before the update.
        """

    def loss(self, block: Trajectories) -> Metrics:
        """The losses on this experience as the networks stand; nothing is changed by asking, no draw is made."""

    def make_policy(self, seed: int) -> Policy:
        """A new policy that acts with `weights()`, drawing from its own generator."""

    def weights(self) -> Weights:
        """A copy of what a policy needs."""

    def state(self) -> State:
        """A copy of everything `load` needs to go on as if nothing had happened."""

    def load(self, state: State) -> None:
        """Go on from `state`, which the caller has checked against `state()`; what waits for an update is dropped, and
        of what is kept over updates, everything newer than `state`."""

    def replay(self) -> State | None:
        """A copy of the experience kept over updates, None where there is none or `save_replay_buffer` is off."""

    def load_replay(self, replay: State) -> None:
        """Learn from this experience too. Raises CheckpointError when it does not fit; nothing is changed then."""
